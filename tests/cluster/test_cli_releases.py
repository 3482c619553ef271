"""The program's commands against a real cluster: what they say of a run at every stage, and what they change.

One release goes through these tests in their order: it runs, fails, is damaged, runs again, is suspended and resumed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.images.plan import RUNTIME_IMAGE
from tests.cluster.testcluster.releases import PROJECT, Release, digits_values, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY
from tests.cluster.testcluster.users import make_user

pytestmark = pytest.mark.cluster

ENDS_WHEN_TOLD = """
import os, time
while True:
    if os.environ["TASK_TYPE"] == "chief" and os.path.exists("/checkpoints/fail"):
        os.remove("/checkpoints/fail")
        raise ValueError("no data today")
    time.sleep(0.1)
"""
FAILS = "import time; print('step 1', flush=True); raise ValueError('no data today')"


def trainchart(access: Access, namespace: str, *arguments: str, code: int = 0) -> str:
    """Run a command of the program and return its stdout; its exit code must be `code`."""
    argv = [sys.executable, "-m", "trainchart", *arguments, f"--namespace={namespace}"]
    argv += [f"--context={access.context}"] if access.context else []
    done = access.run(argv, check=False)
    assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + (done.stderr if code else "")


def read_status(release: Release) -> dict[str, Any]:
    status = json.loads(trainchart(release.access, release.namespace, "status", release.name, "--format=json"))
    assert isinstance(status, dict)
    return status


def wait_for_phase(release: Release, phase: str, **fields: Any) -> dict[str, Any]:
    def read(_: object) -> dict[str, Any] | None:
        status = read_status(release)
        is_there = status["phase"] == phase and all(status[name] == value for name, value in fields.items())
        return status if is_there else None

    return release.access.wait_for(read, f"phase {phase} of {release.name}", namespace=release.namespace)


@pytest.fixture(scope="module")
def controlled(admin: Access, module_namespace: str) -> Release:
    """A parameter-server run whose chief fails when a test says so."""
    changes = {
        "command": ["python3", "-c", ENDS_WHEN_TOLD],
        "tensorboard": {"enabled": False},
        "run": {"maxRestarts": 0, "controller": {"enabled": True, "image": RUNTIME_IMAGE}},
        # Nothing is saved at the end, so nobody needs to wait for it.
        "roles": {
            "worker": {"gpus": 1, "saveWaitSeconds": 0},
            "ps": {"saveWaitSeconds": 0},
            "evaluator": {"replicas": 0},
        },
    }
    values = merge_values(mnist_values(), changes)
    release = Release(admin, module_namespace, "exp1", PROJECT / "charts" / "mnist", values)
    release.install()
    return release


@pytest.fixture(scope="module")
def uncontrolled(admin: Access, module_namespace: str) -> Iterator[Release]:
    """A run without a controller that has given up."""
    changes = {"command": ["python3", "-c", FAILS], "run": {"maxRestarts": 0}}
    values = merge_values(digits_values(), changes)
    release = Release(admin, module_namespace, "exp2", PROJECT / "charts" / "digits", values)
    release.install()
    yield release


def test_without_a_controller_the_pods_tell_what_failed(uncontrolled: Release) -> None:
    access, namespace = uncontrolled.access, uncontrolled.namespace
    told = trainchart(access, namespace, "wait", "exp2", "--timeout=60", code=10)
    assert "exp2: Failed: program-error, exp2-digits-worker-0: ValueError: no data today" in told
    why = trainchart(access, namespace, "why", "exp2")
    assert "What failed first: exp2-digits-worker-0 on node" in why
    assert "by its pods: no record could be read" in why
    assert "[worker-0] ValueError: no data today" in trainchart(access, namespace, "logs", "exp2", "--since-failure")
    assert "has no run controller" in trainchart(access, namespace, "stop", "exp2", code=9)


def test_a_release_of_the_longest_name_is_known_by_its_record(admin: Access, module_namespace: str) -> None:
    name = f"{'a-name-as-long-as-helm-allows-':x<53}"
    changes = merge_values(CONTROLLED, {"command": ["python3", "-c", "pass"], "roles": {"worker": TINY}})
    Release(
        admin, module_namespace, name, PROJECT / "charts" / "digits", merge_values(digits_values(), changes)
    ).install()
    assert f"{name} " in trainchart(admin, module_namespace, "wait", name, "--timeout=60")


def test_a_run_is_listed_with_what_it_holds(controlled: Release) -> None:
    wait_for_phase(controlled, "Running")
    controlled.wait_until_running(5)  # pods are read before the record, which may be newer
    status = wait_for_phase(controlled, "Running")
    assert (status["phaseFrom"], status["controller"], status["attempt"]) == ("record", "running", 1)
    assert status["gpus"] == {GPU_RESOURCE: 2}
    assert [(role["role"], role["running"]) for role in status["roles"]] == [("chief", 1), ("worker", 2), ("ps", 1)]
    assert {pod["node"] for pod in status["pods"]} <= {"node1", "node2"}
    assert (status["problems"], status["unknown"], status["remarks"]) == ([], [], [])
    row = next(line for line in trainchart(controlled.access, controlled.namespace, "list", "-A").splitlines()
               if line.startswith(f"{controlled.namespace} "))  # fmt: skip
    assert row.split()[1:4] == ["exp1", "mnist-0.1.0", "Running"]
    assert f"2 {GPU_RESOURCE}" in row
    assert "[chief-0] trainchart-launcher" in trainchart(controlled.access, controlled.namespace, "logs", "exp1")


def test_releases_are_compared_by_their_objects(controlled: Release, uncontrolled: Release) -> None:
    names = (controlled.name, uncontrolled.name)
    told = json.loads(trainchart(controlled.access, controlled.namespace, "compare", *names, "--format=json"))
    assert [run["model"] for run in told["runs"]] == ["mnist", "digits"]
    rows = {row["name"]: [cell["value"] for cell in row["cells"]] for row in (*told["settings"], *told["results"])}
    assert rows["chart"] == ["mnist-0.1.0", "digits-0.1.0"]
    assert rows["strategy"] == ["parameter-server", "single"]
    assert rows["roles.chief.replicas"] == [1, None]
    assert rows["roles.worker.gpus"] == [f"1 {GPU_RESOURCE}", None]
    for name in ("mnist", "digits"):
        defaults = yaml.safe_load((PROJECT / "charts" / name / "values.yaml").read_text())["hyperparameters"]
        own = {key.partition(".")[2] for key in rows if key.startswith("hyperparameters.")}
        assert set(defaults) <= own
    assert rows["image"][0] and rows["image"][1]
    assert rows["phase"] == ["Running", "Failed"]
    shown = trainchart(controlled.access, controlled.namespace, "compare", *names)
    assert "strategy" in shown and "program-error" in shown


def test_not_found_forbidden_and_unreachable_are_told_apart(controlled: Release, tmp_path: Path) -> None:
    access, namespace = controlled.access, controlled.namespace
    absent = trainchart(access, namespace, "status", "exp9", "--format=json", code=9)
    assert json.loads(absent)["error"] == "NotFound"
    assert "exp1" in json.loads(absent)["hint"]
    user = make_user(access, namespace, "reader", "view", tmp_path)
    assert "Running" in trainchart(user, namespace, "status", "exp1")
    assert json.loads(trainchart(user, "default", "status", "exp1", "--format=json", code=9))["error"] == "Forbidden"
    assert "cannot list secrets" in trainchart(user, namespace, "stop", "exp1", code=9)
    text = user.kubeconfig.read_text()
    port = json.loads(text)["clusters"][0]["cluster"]["server"].rpartition(":")[2]
    user.kubeconfig.write_text(text.replace(f":{port}", ":1"))
    lost = trainchart(user, namespace, "status", "exp1", "--format=json", code=9)
    assert json.loads(lost)["error"] == "Unreachable"


def test_a_failure_is_explained_and_waited_for(controlled: Release) -> None:
    access, namespace = controlled.access, controlled.namespace
    waiting = subprocess.Popen(
        [sys.executable, "-m", "trainchart", "wait", "exp1", f"--namespace={namespace}"],
        env=dict(access.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    assert "Running" in waiting.stderr.readline()
    access.kubectl("exec", "exp1-mnist-chief-0", f"--namespace={namespace}", "--", "touch", "/checkpoints/fail")
    _, told = waiting.communicate(timeout=90)
    assert waiting.returncode == 10
    assert "ValueError: no data today" in told
    access.kubectl("delete", "events", "--all", f"--namespace={namespace}")
    why = trainchart(access, namespace, "why", "exp1")
    assert "What failed first: exp1-mnist-chief-0 on node" in why
    assert "error      ValueError: no data today" in why
    assert "Then: trainchart rerun exp1" in why
    assert "[chief-0] ValueError: no data today" in trainchart(access, namespace, "logs", "exp1", "--since-failure")


def test_a_damaged_record_is_said_and_nothing_is_changed(controlled: Release) -> None:
    access, namespace = controlled.access, controlled.namespace
    name = "exp1-mnist-state"
    record = json.loads(access.kubectl("get", "configmap", name, f"--namespace={namespace}", "--output=json"))
    patch = json.dumps({"data": {"state.json": "{oops"}})
    access.kubectl("patch", "configmap", name, f"--namespace={namespace}", "--type=merge", f"--patch={patch}")
    assert f"the record {name} is damaged: it is not JSON" in trainchart(access, namespace, "status", "exp1")
    assert "nothing was changed" in trainchart(access, namespace, "rerun", "exp1", code=9)
    patch = json.dumps({"data": record["data"]})
    access.kubectl("patch", "configmap", name, f"--namespace={namespace}", "--type=merge", f"--patch={patch}")
    assert read_status(controlled)["phase"] == "Failed"


def test_rerun_starts_a_new_run(controlled: Release) -> None:
    before = read_status(controlled)["runId"]
    trainchart(controlled.access, controlled.namespace, "rerun", "exp1")
    status = wait_for_phase(controlled, "Running")
    assert status["runId"] not in ("", before)
    assert status["outcome"] is None


def test_suspend_frees_everything_and_resume_goes_on(controlled: Release) -> None:
    access, namespace = controlled.access, controlled.namespace
    assert "the run is not over" in trainchart(access, namespace, "rerun", "exp1", code=9)
    assert "run.desiredState=suspended" in trainchart(access, namespace, "suspend", "exp1")
    status = wait_for_phase(controlled, "Suspended", pods=[])
    assert status["gpus"] == {}
    assert "nothing was changed" in trainchart(access, namespace, "suspend", "exp1")
    assert "not over within" in trainchart(access, namespace, "wait", "exp1", "--timeout=0", code=11)
    trainchart(access, namespace, "resume", "exp1")
    wait_for_phase(controlled, "Running")
