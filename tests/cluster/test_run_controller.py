"""The run controller: a training that ends frees everything and stays ended, and its verdict outlives its pods."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ResourceQuota

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.images.plan import RUNTIME_IMAGE
from tests.cluster.testcluster.releases import PROJECT, Release, digits_values, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED as RUNTIME_CONTROLLED
from tests.cluster.testcluster.runs import (
    ENDED,
    find_jobs,
    read_replicas,
    read_state,
    training_pods,
    wait_for_job,
    wait_for_phase,
)
from tests.cluster.testcluster.users import make_user

pytestmark = pytest.mark.cluster

CONTROLLED = {"run": {"controller": {"enabled": True}}}
WAITS_FOR_A_FILE = """
import os, time
while os.environ["TASK_TYPE"] != "chief" or not os.path.exists("/checkpoints/end"):
    time.sleep(0.1)
"""
"""Stands in for a training that ends when a test says so; like the real ones, only its chief ends."""


def wait_until_ended(release: Release, run_id: str = "") -> dict[str, Any]:
    return wait_for_phase(release, *ENDED, deadline_seconds=180, runId=run_id)


@pytest.fixture(scope="module")
def digits(admin: Access, module_namespace: str) -> Iterator[Release]:
    """A release of one process that trains for real, on a GPU as the scheduler sees it, until it has ended."""
    values = merge_values(digits_values(epochs=2), CONTROLLED)
    values = merge_values(values, {"roles": {"worker": {"gpus": 1}}})
    release = Release(admin, module_namespace, "exp1", PROJECT / "charts" / "digits", values)
    release.install()
    wait_until_ended(release)
    yield release


@pytest.fixture
def steered(admin: Access, namespace: str) -> Release:
    """A parameter-server release whose chief ends when /checkpoints/end appears; controlled from the runtime image."""
    values = merge_values(mnist_values(), CONTROLLED)
    changes = {
        "command": ["python", "-c", WAITS_FOR_A_FILE],
        "run": {"controller": {"image": RUNTIME_IMAGE}},
        # Kubernetes gives a set that does not say how many one pod.
        "roles": {"evaluator": {"replicas": 0}},
    }
    values = merge_values(values, changes)
    release = Release(admin, namespace, "exp2", PROJECT / "charts" / "mnist", values)
    release.install()
    return release


def test_finished_training_frees_its_gpu_and_leaves_its_verdict(digits: Release) -> None:
    client = digits.access.client()
    state = read_state(digits, client)
    assert state is not None

    def is_free(client: Client) -> bool:
        quota = client.get(ResourceQuota, "tests", namespace=digits.namespace)
        return ((quota.status and quota.status.used) or {})[f"requests.{GPU_RESOURCE}"] == "0"

    assert state["verdict"]["result"] == "Succeeded"
    assert state["verdict"]["pod"] == "exp1-digits-worker-0"
    assert any("accuracy" in line for line in state["verdict"]["lines"])
    assert not training_pods(digits, client)
    digits.access.wait_for(is_free, "a GPU that is free again", namespace=digits.namespace)
    wait_for_job(digits, "Complete")


@pytest.mark.parametrize("major", [3, 4])
def test_no_upgrade_brings_a_finished_training_back(
    digits: Release, major: int, request: pytest.FixtureRequest
) -> None:
    """Not even where the controller's Job was cleaned up and Helm makes a new one."""
    helm: Path = request.getfixturevalue(f"helm{major}")
    client = digits.access.client()
    before = read_state(digits, client)
    for name in find_jobs(digits, client):
        client.delete(Job, name, namespace=digits.namespace)
    values = merge_values(digits.values, {"hyperparameters": {"epochs": 3}, "commonLabels": {"helm": f"v{major}"}})

    dataclasses.replace(digits, helm=helm, values=values).upgrade()

    wait_for_job(digits, "Complete")
    assert read_replicas(digits, client) == {"exp1-digits-worker": 0}
    assert not training_pods(digits, client)
    after = read_state(digits, client)
    assert before is not None
    assert after is not None
    assert after["verdict"] == before["verdict"]


def test_a_new_run_id_trains_again_and_a_failure_is_explained(digits: Release) -> None:
    failing = {
        "run": {"id": "second", "maxRestarts": 1},
        "command": ["python", "-c", "raise ValueError('no data today')"],
    }
    release = dataclasses.replace(digits, values=merge_values(digits.values, failing))
    release.upgrade()

    verdict = wait_until_ended(release, "second")["verdict"]

    assert verdict["result"] == "Failed"
    assert verdict["cause"] == "program-error"
    assert verdict["error"] == "ValueError: no data today"
    assert verdict["pod"] == "exp1-digits-worker-0"
    assert verdict["exitCode"] == 1
    assert verdict["node"].startswith("node")
    wait_for_job(release, "Failed")
    assert not training_pods(release, release.access.client())


def test_the_controllers_token_can_do_nothing_else(digits: Release) -> None:
    account = f"system:serviceaccount:{digits.namespace}:exp1-digits-controller"

    def may(*question: str) -> bool:
        arguments = ("auth", "can-i", *question, f"--as={account}", f"--namespace={digits.namespace}")
        return digits.access.kubectl(*arguments, check=False).strip() == "yes"

    assert may("list", "pods")
    assert may("patch", "statefulsets/exp1-digits-worker", "--subresource=scale")
    assert may("get", "statefulsets/exp1-digits-worker")
    assert may("delete", "pods/exp1-digits-worker-0")
    assert may("patch", "configmaps/exp1-digits-state")
    (job,) = find_jobs(digits, digits.access.client())
    assert may("patch", f"jobs/{job}")
    for question in (
        ("delete", "pods/exp1-digits-tensorboard"),
        ("patch", "statefulsets/exp1-digits-worker"),
        ("patch", "statefulsets/another", "--subresource=scale"),
        ("delete", "pods"),
        ("create", "pods"),
        ("create", "pods", "--subresource=exec"),
        ("get", "pods", "--subresource=log"),
        ("get", "secrets"),
        ("list", "configmaps"),
        ("patch", "configmaps/another"),
        ("patch", "jobs/another"),
        ("create", "jobs"),
        ("get", "nodes"),
        ("list", "pods", "--all-namespaces"),
    ):
        assert not may(*question), question


def test_rights_that_somebody_else_has_given_are_enough(admin: Access, namespace: str, tmp_path: Path) -> None:
    """A user who may not make roles installs, after an administrator has applied the rights that the chart prints."""
    user = make_user(admin, namespace, "engineer", "edit", tmp_path)
    account = "exp3-digits-controller"
    fails = {
        "command": ["python3", "-c", "raise ValueError('no data today')"],
        "run": {"maxRestarts": 0, "controller": {"serviceAccountName": account}},
        "rbac": {"create": False},
    }
    values = merge_values(merge_values(digits_values(), RUNTIME_CONTROLLED), fails)
    release = Release(user, namespace, "exp3", PROJECT / "charts" / "digits", values)
    rights = dataclasses.replace(release, values=merge_values(values, {"rbac": {"create": True}}))
    admin.kubectl(
        "apply", "-n", namespace, "-f", "-", text=rights.template("--show-only=templates/controller-rights.yaml")
    )
    release.install()
    assert wait_for_phase(release, "Failed")["verdict"]["error"] == "ValueError: no data today"
    wait_for_job(release, "Failed")


def test_killed_controller_has_a_successor_that_goes_on(steered: Release) -> None:
    access, namespace = steered.access, steered.namespace
    # The controller, the chief, two workers, a ps, TensorBoard: nobody but the controller asked for the second worker.
    steered.wait_until_running(6)
    pods = {name: pod.metadata and pod.metadata.uid for name, pod in steered.pods(access.client()).items()}
    (controller,) = steered.pods(access.client(), "controller")

    access.kubectl("delete", "pod", controller, f"--namespace={namespace}", "--grace-period=0", "--force")
    access.wait_for(
        lambda client: set(steered.pods(client, "controller")) - {controller}, "another controller", namespace=namespace
    )
    still = {name: pod.metadata and pod.metadata.uid for name, pod in steered.pods(access.client()).items()}
    assert {name: uid for name, uid in pods.items() if name != controller}.items() <= still.items()

    chief = "exp2-mnist-chief-0"
    access.kubectl("exec", chief, f"--namespace={namespace}", "--", "touch", "/checkpoints/end")
    state = wait_until_ended(steered)
    assert state["verdict"]["result"] == "Succeeded"
    assert [entry["phase"] for entry in state["history"]] == [
        "Starting",
        "Running",
        "Finishing",
        "Stopping",
        "Succeeded",
    ]
    assert not training_pods(steered, access.client())
    assert set(read_replicas(steered, access.client()).values()) == {0}
