"""How runs begin on a real cluster, and what stays of a release: docs/checkpoints.md, docs/lifecycle.md.

The tests here go on from each other: exp1 trains, exp2 begins from its checkpoints and goes back, exp3 is refused its
claim, and exp1 is uninstalled and installed again.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.releases import Release, list_objects, make_mnist_chart, make_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED, wait_for_phase

pytestmark = pytest.mark.cluster

SECONDS = 120
CLAIM = "exp1-mnist-checkpoints"


@pytest.fixture(scope="module")
def first(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """A release of one process that has trained to step 60, with a checkpoint every twenty steps."""
    chart = make_mnist_chart(tmp_path_factory.mktemp("chart"), "single", {"worker": {}})
    values = merge_values(make_values("mnist", ("worker",), maxSteps=60, checkpointSteps=20), CONTROLLED)
    release = Release(admin, module_namespace, "exp1", chart, values)
    release.install()
    wait_for_phase(release, "Succeeded", deadline_seconds=SECONDS)
    return release


def change(release: Release, name: str, **changes: Any) -> Release:
    return dataclasses.replace(release, name=name, values=merge_values(release.values, changes))


def trainchart(release: Release, *arguments: str) -> str:
    argv = [sys.executable, "-m", "trainchart", *arguments, f"--namespace={release.namespace}"]
    return release.access.run(argv).stdout


@pytest.fixture(scope="module")
def second(first: Release) -> Release:
    run = {"resume": "latest", "resumeRelease": "exp1"}
    release = change(first, "exp2", run=run, hyperparameters={"maxSteps": 80})
    release.install()
    wait_for_phase(release, "Succeeded", deadline_seconds=SECONDS)
    return release


def test_a_release_begins_from_another_one(second: Release) -> None:
    log = trainchart(second, "logs", "exp2")
    assert "copied the checkpoint of step 60 of release exp1 to /checkpoints" in log
    assert "restored step 60 from /checkpoints/ckpt-60" in log
    assert "step 80/80" in log


def test_a_rerun_goes_back_to_a_step_and_keeps_the_rest(second: Release) -> None:
    said = trainchart(second, "rerun", "exp2", "--resume", "60")
    assert "run.resume=60" in said and "run.resumeRelease=," in said
    wait_for_phase(second, "Starting", "Running", "Finishing")
    wait_for_phase(second, "Succeeded", deadline_seconds=SECONDS)
    log = trainchart(second, "logs", "exp2")
    assert "moved the checkpoints of step 80, written by an earlier run, to /checkpoints/earlier/1" in log
    assert "restored step 60 from /checkpoints/ckpt-60" in log
    # The values of before would begin the first run again.
    with pytest.raises(CommandFailed, match="the values do not set it, so they would end run "):
        second.upgrade()
    # Nothing of the other release is needed any more.
    pods = json.loads(second.access.kubectl("get", "statefulsets", "-n", second.namespace, "-o", "json"))
    assert "exp1" not in json.dumps([each["spec"] for each in pods["items"] if "exp2" in each["metadata"]["name"]])


def test_the_claim_of_another_release_is_not_gone_on_from(first: Release) -> None:
    third = change(first, "exp3", volumes={"checkpoints": {"existingClaim": CLAIM}})
    third.install()
    wait_for_phase(third, "Failed", deadline_seconds=SECONDS)
    why = trainchart(third, "why", "exp3")
    assert "run.resume is never, and /checkpoints already holds checkpoints of release exp1" in why
    assert "set run.resume=latest" in why
    third.uninstall()


def test_what_stays_of_a_release_is_its_kept_claim(admin: Access, first: Release, second: Release) -> None:
    namespace = first.namespace
    second.uninstall()
    before = {name for name in list_objects(admin, namespace) if "exp1" in name}
    assert {f"persistentvolumeclaim/{CLAIM}", "configmap/exp1-mnist-state"} <= before
    first.uninstall()

    def is_gone(_: object) -> bool:
        return {name for name in list_objects(admin, namespace) if "exp1" in name} == {f"persistentvolumeclaim/{CLAIM}"}

    admin.wait_for(is_gone, "nothing but the kept claim", namespace=namespace)
    with pytest.raises(CommandFailed, match=f"an earlier release has left claim {CLAIM}: set latest, or a step"):
        first.install()
    again = change(first, "exp1", run={"resume": 40, "id": "second"}, hyperparameters={"maxSteps": 80})
    again.install()
    wait_for_phase(again, "Succeeded", deadline_seconds=SECONDS)
    log = trainchart(again, "logs", "exp1")
    assert "moved the checkpoints of step 60, written by an earlier run, to /checkpoints/earlier/1" in log
    assert "restored step 40 from /checkpoints/ckpt-40" in log
    again.uninstall()
