"""What people change on a run: suspend, resume, stop, other values, other numbers, roll back, apply again, uninstall.

All releases of the module run side by side; each test follows its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Event, Pod

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.releases import Release, list_objects, merge_values
from tests.cluster.testcluster.runs import (
    find_jobs,
    read_replicas,
    read_state,
    training_pods,
    wait_for_job,
    wait_for_phase,
)
from tests.cluster.testcluster.traced import Line, Traces, leave_slowly

pytestmark = pytest.mark.cluster

HELD = {"run": {"desiredState": "suspended"}}
RATE = {"hyperparameters": {"learningRate": 0.05}}
OTHER_RATE = {"hyperparameters": {"learningRate": 0.01}}
GROUP = ("chief-0", "ps-0", "worker-0", "worker-1")


@dataclasses.dataclass(frozen=True)
class Scene:
    """The releases of this module, and what they wrote."""

    traces: Traces
    held: Release
    paused: Release
    restarted: Release
    patient: Release
    applied: Release
    rolled: Release
    leaving: tuple[Release, ...]
    """To be uninstalled in the phase that is the end of their names."""


@pytest.fixture(scope="module")
def scene(admin: Access, module_namespace: str) -> Scene:
    traces = Traces(admin, module_namespace)
    traces.prepare()
    own_claim = {"volumes": {"checkpoints": {"existingClaim": ""}}}
    nowhere = {"roles": {"worker": {"nodeSelector": {"kubernetes.io/os": "plan9"}}}}
    failing = {"command": ["python3", "-c", "raise ValueError"], "run": {"maxRestarts": 0}}
    scene = Scene(
        traces,
        held=traces.plan("held", merge_values(HELD, {"roles": {"worker": {"gpus": 1}}}), "digits"),
        paused=traces.plan("paused", {}),
        restarted=traces.plan("restarted", RATE),
        patient=traces.plan("patient", merge_values(RATE, {"run": {"onChange": "finish-first"}})),
        applied=traces.plan("applied", {}),
        rolled=traces.plan("rolled", with_claim("ReadWriteOnce"), "digits"),
        leaving=(
            traces.plan("leaves-starting", merge_values(own_claim, nowhere), "digits"),
            traces.plan("leaves-running", own_claim, "digits"),
            traces.plan("leaves-suspended", merge_values(own_claim, HELD), "digits"),
            traces.plan("leaves-stopping", merge_values(own_claim, leave_slowly(10)), "digits"),
            traces.plan("leaves-failed", merge_values(own_claim, failing), "digits"),
        ),
    )
    for release in (scene.held, scene.paused, scene.restarted, scene.patient, scene.rolled, *scene.leaving):
        release.install()
    return scene


def with_claim(mode: str) -> dict[str, Any]:
    """Return values with a claim, which does not allow another access mode at an upgrade."""
    spec = {"accessModes": [mode], "storageClassName": "", "resources": {"requests": {"storage": "1Mi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "rolled-extra"}, "spec": spec}
    return {"extraManifests": [claim]}


def upgrade(release: Release, changes: dict[str, Any]) -> Release:
    """Upgrade a release with changed values and return it as it is then."""
    changed = dataclasses.replace(release, values=merge_values(release.values, changes))
    changed.upgrade()
    return changed


def wait_until_training(scene: Scene, release: Release, attempt: int, tasks: Iterable[str] = GROUP) -> list[Line]:
    """Wait until every task of an attempt trains, and return the trace."""
    wait_for_phase(release, "Running", attempt=attempt)
    pods = {f"{release.name}-{Path(release.chart).name}-{task}" for task in tasks}

    def read(client: Client) -> list[Line] | None:
        uids = {pod.metadata.uid for pod in training_pods(release, client).values() if pod.metadata}
        lines = scene.traces.read(release)
        return lines if {line.pod for line in lines if line.uid in uids and line.what == "trains"} == pods else None

    return release.access.wait_for(read, f"{release.name} trains", namespace=release.namespace)


def find(lines: Iterable[Line], what: str, pod: str = "") -> list[Line]:
    return [line for line in lines if line.what == what and pod in line.pod]


def test_suspended_at_the_installation_no_pod_is_made(scene: Scene) -> None:
    release = scene.held
    state = wait_for_phase(release, "Suspended")
    client = release.access.client()
    assert [entry["phase"] for entry in state["history"]] == ["Starting", "Suspended"]
    assert set(read_replicas(release, client).values()) == {0}
    made = [event for event in client.list(Event, namespace=release.namespace) if event.reason == "SuccessfulCreate"]
    assert not [event for event in made if event.involvedObject.name == "held-digits-worker"]

    release = upgrade(release, {"run": {"desiredState": "running"}})
    wait_for_phase(release, "Running", attempt=2)
    scene.traces.end(release)
    assert wait_for_phase(release, "Succeeded")["verdict"]["pod"] == "held-digits-worker-0"


def test_a_suspended_run_saves_first_goes_on_and_can_be_stopped(scene: Scene) -> None:
    first = wait_until_training(scene, scene.paused, attempt=1)
    release = upgrade(scene.paused, HELD)
    wait_for_phase(release, "Suspended")
    release.access.wait_for(
        lambda client: not training_pods(release, client), "every pod gone", namespace=release.namespace
    )
    lines = scene.traces.read(release)
    (saved,) = find(lines, "saved")
    assert saved.pod == "paused-mnist-chief-0"
    others = [line for line in find(lines, "stopped") if line.uid != saved.uid]
    assert sorted(line.pod for line in others) == [f"paused-mnist-{task}" for task in GROUP[1:]]
    assert all(saved.at < line.at for line in others)
    last = lines[-1].at

    release = upgrade(release, {"run": {"desiredState": "running"}})
    again = wait_until_training(scene, release, attempt=2)
    assert {line.uid for line in first}.isdisjoint(line.uid for line in again if line.at > last)
    release = upgrade(release, {"run": {"desiredState": "stopped"}})
    state = wait_for_phase(release, "Stopped")
    assert (state["verdict"]["result"], state["verdict"]["cause"]) == ("Stopped", "stopped")
    assert not training_pods(release, release.access.client())
    assert len(find(scene.traces.read(release), "saved")) == 2
    assert set(read_replicas(release, release.access.client()).values()) == {0}


def test_changed_value_or_another_number_of_pods_restarts_group(scene: Scene) -> None:
    wait_until_training(scene, scene.restarted, attempt=1)
    release = upgrade(scene.restarted, OTHER_RATE)
    lines = wait_until_training(scene, release, attempt=2)
    assert_never_mixed(lines, "0.05", "0.01")

    # The group becomes smaller: no pod is needed for longer than the rest of the module needs it.
    release = upgrade(release, {"roles": {"worker": {"replicas": 1}}})
    lines = wait_until_training(scene, release, attempt=3, tasks=("chief-0", "ps-0", "worker-0"))
    two, one = ([line.at for line in lines if line.workers == number] for number in (2, 1))
    assert max(two) < min(one)

    scene.traces.end(release)
    assert wait_for_phase(release, "Succeeded")["verdict"]["pod"] == "restarted-mnist-chief-0"
    wait_for_job(release, "Complete")
    before = scene.traces.read(release)
    for revision in ("1", "2"):
        release.access.run([release.helm, "rollback", release.name, revision, f"--namespace={release.namespace}"])
        wait_for_job(release, "Complete")
    client = release.access.client()
    assert set(read_replicas(release, client).values()) == {0}
    assert not training_pods(release, client)
    assert scene.traces.read(release) == before
    state = read_state(release, client)
    assert state is not None
    assert (state["phase"], state["verdict"]["result"]) == ("Succeeded", "Succeeded")


def test_rollback_of_a_failed_upgrade_keeps_the_controller(scene: Scene) -> None:
    release = scene.rolled
    access, namespace = release.access, release.namespace
    wait_until_training(scene, release, attempt=1, tasks=["worker-0"])
    (job,) = find_jobs(release, access.client())
    with pytest.raises(CommandFailed, match="immutable"):
        upgrade(release, {**with_claim("ReadOnlyMany"), "run": {"maxRestarts": 5}})

    def wait_for_words(words: str) -> None:
        access.wait_for(lambda client: words in read_log(client, namespace, job), words, namespace=namespace)

    wait_for_words("this controller does nothing unless a rollback returns to its plan")
    access.run([release.helm, "rollback", release.name, "1", f"--namespace={namespace}"])
    wait_for_words("the release has this controller's plan again, so the controller continues")
    scene.traces.end(release)
    assert wait_for_phase(release, "Succeeded")["verdict"]["pod"] == "rolled-digits-worker-0"


def test_finish_first_trains_on_until_a_pod_is_recreated(scene: Scene) -> None:
    wait_until_training(scene, scene.patient, attempt=1)
    access, namespace = scene.patient.access, scene.patient.namespace
    before = set(find_jobs(scene.patient, access.client()))
    release = upgrade(scene.patient, OTHER_RATE)
    (job,) = set(find_jobs(release, access.client())) - before
    access.wait_for(
        lambda client: "controlling run" in read_log(client, namespace, job), "the next controller", namespace=namespace
    )
    count = len(scene.traces.read(release))
    lines = access.wait_for(
        lambda _: lines if len(lines := scene.traces.read(release)) > count + 80 else None,
        "two seconds of training",
        namespace=namespace,
    )
    assert len(find(lines, "started")) == len(GROUP)
    state = read_state(release, access.client())
    assert state is not None
    assert (state["phase"], state["attempt"]) == ("Running", 1)

    access.kubectl("delete", "pod", "patient-mnist-worker-1", "-n", namespace)
    lines = wait_until_training(scene, release, attempt=2)
    assert_never_mixed(lines, "0.05", "0.01")


def test_manifests_that_are_applied_twice_change_nothing(scene: Scene) -> None:
    release = scene.applied
    access, namespace = release.access, release.namespace
    manifests = release.template("--skip-tests")
    access.kubectl("apply", "-n", namespace, "-f", "-", text=manifests)
    wait_until_training(scene, release, attempt=1)

    said = access.kubectl("apply", "-n", namespace, "-f", "-", text=manifests).splitlines()

    assert len(said) > 5
    # kubectl sends a budget's selector each time, whatever it is; the API server then finds nothing to change.
    changed = {line for line in said if not line.endswith(" unchanged")}
    assert changed <= {"poddisruptionbudget.policy/applied-mnist configured"}
    pods = training_pods(release, access.client())
    assert sorted(pods) == [f"applied-mnist-{task}" for task in GROUP]
    scene.traces.end(release)
    wait_for_phase(release, "Succeeded")
    access.kubectl("apply", "-n", namespace, "-f", "-", text=manifests)
    assert set(read_replicas(release, access.client()).values()) == {0}


@pytest.mark.parametrize("phase", ["Starting", "Running", "Suspended", "Stopping", "Failed"])
def test_an_uninstallation_leaves_the_claim_alone(scene: Scene, phase: str) -> None:
    name = f"leaves-{phase.lower()}"
    release = next(release for release in scene.leaving if release.name == name)
    if phase == "Stopping":
        wait_for_phase(release, "Running")
        release = upgrade(release, {"run": {"desiredState": "stopped"}})
    wait_for_phase(release, phase)

    release.uninstall()

    def read(_: Client) -> bool:
        left = {each for each in list_objects(release.access, release.namespace) if name in each}
        return left == {f"persistentvolumeclaim/{name}-digits-checkpoints"}

    release.access.wait_for(read, "nothing left but the claim", namespace=release.namespace)


def assert_never_mixed(lines: Iterable[Line], old: str, new: str) -> None:
    """Assert that no pod of the new value began before the last one of the old value had stopped."""
    last, first = ([line for line in lines if line.rate == rate] for rate in (old, new))
    assert last, "nobody trained with the old value"
    assert {line.uid for line in last}.isdisjoint(line.uid for line in first)
    assert max(last, key=lambda line: line.at).at < min(first, key=lambda line: line.at).at


def read_log(client: Client, namespace: str, job: str) -> str:
    """Return what the pods of a Job have said."""
    labels: Any = {"batch.kubernetes.io/job-name": job}
    pods = [pod for pod in client.list(Pod, namespace=namespace, labels=labels) if pod.status and pod.metadata]
    running = [str(pod.metadata.name) for pod in pods if pod.metadata and pod.status and pod.status.phase == "Running"]
    return "".join(line for pod in running for line in client.log(pod, namespace=namespace))
