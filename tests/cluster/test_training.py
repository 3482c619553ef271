"""The main promise: `helm install` alone trains a model over several pods and leaves its checkpoints behind.

One release with a parameter server, installed by helm 4 in a restricted namespace with a quota, serves the tests here
in their order: it trains, is looked at, is uninstalled, and is installed again over the claim that it left. All that an
engineer does is done as a user who has the ClusterRole `edit` in this namespace, and nothing else anywhere.
"""

from __future__ import annotations

import dataclasses
import http.client
import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.models.core_v1 import NodeSpec
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, ResourceQuota, ServiceAccount

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.notes import find_commands, forward_port, paste
from tests.cluster.testcluster.releases import (
    PROJECT,
    TRAINING_SECONDS,
    Release,
    list_objects,
    merge_values,
    mnist_values,
)
from tests.cluster.testcluster.users import make_user
from trainchart_runtime.termination import Termination

pytestmark = pytest.mark.cluster

CHIEF = "exp1-mnist-chief-0"
EVALUATOR = "exp1-mnist-evaluator-0"
GPU_QUOTA = "requests.nvidia.com/gpu"
CHANGES = {
    # Ready means trained for a while: the pods must find each other long before they are ready.
    "readinessProbe": {"exec": {"command": ["test", "-e", "/checkpoints/ckpt-100.index"]}, "periodSeconds": 2},
    "roles": {
        "worker": {
            "gpus": 1,
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
            ],
        }
    },
}
READ_TF_CONFIG = """
import pathlib
for file in pathlib.Path("/proc").glob("[0-9]*/environ"):
    try:
        variables = dict(line.partition("=")[::2] for line in file.read_text().split("\\0"))
    except OSError:
        # Process 1 of the pod is the runtime's own, and others end meanwhile.
        continue
    if "TF_CONFIG" in variables:
        print(variables["TF_CONFIG"])
        break
"""


@pytest.fixture(scope="module")
def engineer(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Access:
    user = make_user(admin, module_namespace, "engineer", "edit", tmp_path_factory.mktemp("engineer"))
    can_make_roles = user.kubectl("auth", "can-i", "create", "roles", f"--namespace={module_namespace}", check=False)
    assert can_make_roles == "no\n"
    return user


@pytest.fixture(scope="module")
def before(admin: Access, engineer: Access, module_namespace: str) -> set[str]:
    """What is in the namespace before anything is installed: the engineer, and two objects of Kubernetes' own."""

    def is_furnished(client: Client) -> bool:
        client.get(ServiceAccount, "default", namespace=module_namespace)
        client.get(ConfigMap, "kube-root-ca.crt", namespace=module_namespace)
        return True

    admin.wait_for(is_furnished, "a namespace with its own objects", namespace=module_namespace)
    return list_objects(admin, module_namespace)


@pytest.fixture(scope="module")
def release(engineer: Access, module_namespace: str) -> Release:
    values = merge_values(mnist_values(), CHANGES)
    return Release(engineer, module_namespace, "exp1", PROJECT / "charts" / "mnist", values)


@pytest.fixture(scope="module")
def pods(release: Release, before: set[str], notes: dict[str, str]) -> dict[str, Pod]:
    """The installed release's pods, all started."""
    notes.update(find_commands(release.install()))
    return release.wait_until_running(6, deadline_seconds=120)


@pytest.fixture(scope="module")
def notes() -> dict[str, str]:
    """Commands of NOTES.txt as `helm install` printed them."""
    return {}


@pytest.fixture(scope="module")
def trained(release: Release, pods: dict[str, Pod]) -> dict[str, Termination]:
    """What the launchers of the pods that end had to say at the end of the training."""
    return {pod: release.wait_until_succeeded(pod) for pod in (CHIEF, EVALUATOR)}


def test_the_pods_run_over_several_nodes(admin: Access, pods: dict[str, Pod]) -> None:
    nodes = [node for node in admin.client().list(Node) if not (node.spec or NodeSpec()).taints]
    used = {pod.spec.nodeName for pod in pods.values() if pod.spec}

    assert len(used) >= min(2, len(nodes))


def test_the_log_can_be_followed_to_the_end_of_the_training(
    engineer: Access, pods: dict[str, Pod], notes: dict[str, str]
) -> None:
    log = paste(engineer, notes["Log"], timeout_seconds=TRAINING_SECONDS)

    assert "step 300/300" in log
    assert "saved /checkpoints/ckpt-300" in log


def test_chief_and_evaluator_reach_the_hyperparameters_steps(trained: dict[str, Termination]) -> None:
    assert {end.task_type: (end.step, end.own_failures) for end in trained.values()} == {
        "chief": (300, 0),
        "evaluator": (300, 0),
    }
    # Ten kinds of digits: by chance it would be a tenth.
    assert trained[EVALUATOR].metrics["accuracy"] > 0.6


def test_the_programs_know_each_other_by_the_names_of_their_pods(
    engineer: Access, release: Release, trained: dict[str, Termination]
) -> None:
    """As TensorFlow in a worker was told it, which goes on serving when the chief has finished."""
    config = json.loads(run_in_pod(engineer, release, "exp1-mnist-worker-1", "python3", "-c", READ_TF_CONFIG))

    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"] == {
        "chief": ["exp1-mnist-chief-0.exp1-mnist:2222"],
        "ps": ["exp1-mnist-ps-0.exp1-mnist:2222"],
        "worker": ["exp1-mnist-worker-0.exp1-mnist:2222", "exp1-mnist-worker-1.exp1-mnist:2222"],
    }


def test_every_pod_sees_the_checkpoints(
    engineer: Access, release: Release, pods: dict[str, Pod], trained: dict[str, Termination]
) -> None:
    """The chief and the parameter server wrote them, the evaluator its results; the workers are on both nodes."""
    for pod in ("exp1-mnist-worker-0", "exp1-mnist-worker-1"):
        files = run_in_pod(engineer, release, pod, "ls", "/checkpoints").split()
        assert {"checkpoint", "ckpt-300.index", "saved_model"} <= set(files)
        assert len([file for file in files if file.startswith("ckpt-300.data-")]) == 2
        assert 'model_checkpoint_path: "ckpt-300"' in run_in_pod(
            engineer, release, pod, "cat", "/checkpoints/checkpoint"
        )
        evaluations = json.loads(run_in_pod(engineer, release, pod, "cat", "/checkpoints/evaluations.json"))
        assert list(evaluations) == ["0", "100", "200", "300"]


def test_tensorboard_shows_the_run_through_its_service(
    engineer: Access, release: Release, notes: dict[str, str], trained: dict[str, Termination]
) -> None:
    accuracies: list[float] = []
    # kubectl gives a forward up for good when the pod does not listen yet.
    deployment = "deployment/exp1-mnist-tensorboard"
    engineer.kubectl("rollout", "status", deployment, f"--namespace={release.namespace}", "--timeout=100s")
    with forward_port(engineer, notes["TensorBoard"]) as port:
        scalars = f"http://127.0.0.1:{port}/data/plugin/scalars"

        def read_tags(client: Client) -> dict[str, Any] | None:
            """Return the list of scalars as soon as TensorBoard, which looks every few seconds, has seen the end."""
            points = read_json(f"{scalars}/scalars?run=evaluator&tag=accuracy") or []
            accuracies[:] = [value for _, step, value in points if step == 300]
            return read_json(f"{scalars}/tags") if accuracies else None

        tags = engineer.wait_for(read_tags, "TensorBoard's scalars of the last step", namespace=release.namespace)

    assert {run: sorted(names) for run, names in tags.items()} == {
        "chief": ["examples_per_second", "loss"],
        "evaluator": ["accuracy", "loss"],
    }
    assert accuracies == [pytest.approx(trained[EVALUATOR].metrics["accuracy"], abs=1e-3)]


def test_the_other_commands_of_the_notes_work_when_pasted(
    engineer: Access, notes: dict[str, str], pods: dict[str, Pod], trained: dict[str, Termination]
) -> None:
    assert [label for label in notes if "free its resources" not in label] == [
        "Pods",
        "Log",
        "Status",
        "Test",
        "TensorBoard",
    ]
    assert all(pod in paste(engineer, notes["Pods"]) for pod in pods)
    status = json.loads(paste(engineer, notes["Status"]))
    assert (status["taskType"], status["state"], status["step"]) == ("chief", "parked", 300)
    assert "Succeeded" in paste(engineer, notes["Test"])


@pytest.mark.parametrize("options", [[], ["--server-side"]], ids=["client", "server"])
def test_nothing_differs_between_what_is_rendered_and_what_lives(
    engineer: Access, release: Release, trained: dict[str, Termination], options: list[str]
) -> None:
    argv = ["kubectl", "diff", f"--namespace={release.namespace}", *options, "--filename=-"]

    # The pod of `helm test` lives only while it runs.
    done = engineer.run(argv, text=release.template("--skip-tests"), check=False)

    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


def test_uninstall_leaves_the_checkpoints_and_nothing_else(
    admin: Access,
    engineer: Access,
    release: Release,
    before: set[str],
    notes: dict[str, str],
    trained: dict[str, Termination],
) -> None:
    assert read_used_gpus(admin.client(), release.namespace) == "2"
    (command,) = [command for label, command in notes.items() if "free its resources" in label]
    claim = "persistentvolumeclaim/exp1-mnist-checkpoints"

    assert claim.partition("/")[2] in paste(engineer, command)

    wait_until_only(admin, release.namespace, before | {claim})
    admin.wait_for(
        lambda client: read_used_gpus(client, release.namespace) == "0", "free GPUs", namespace=release.namespace
    )


def test_release_installed_again_goes_on_from_its_checkpoints(
    admin: Access, engineer: Access, release: Release, before: set[str], trained: dict[str, Termination], helm3: Path
) -> None:
    """By helm 3 this time: it takes over the claim of the same release, whichever helm made it.

    With one worker less and no evaluator, since checkpoints do not depend on who made them.
    """
    changes = {
        "hyperparameters": {"maxSteps": 400},
        "tensorboard": {"enabled": False},
        "roles": {
            "worker": {"replicas": 1, "saveWaitSeconds": 0},
            "ps": {"saveWaitSeconds": 0},
            "evaluator": {"replicas": 0},
        },
    }
    again = dataclasses.replace(release, helm=helm3, values=merge_values(release.values, changes))
    with pytest.raises(CommandFailed, match="an earlier release has left claim exp1-mnist-checkpoints: set latest"):
        again.install()
    again = dataclasses.replace(again, values=merge_values(again.values, {"run": {"resume": "latest"}}))

    again.install()

    assert again.wait_until_succeeded(CHIEF).step == 400
    argv = ("logs", CHIEF, f"--namespace={release.namespace}", "--container=training", "--previous")
    # It is the previous container's only once the kubelet has started the next one.
    log = engineer.wait_for(
        lambda _: engineer.kubectl(*argv, check=False) or None, "the ended container's log", namespace=release.namespace
    )
    assert "/checkpoints/ckpt-300" in log
    assert "step 50/400" not in log
    again.uninstall()
    wait_until_only(admin, release.namespace, before | {"persistentvolumeclaim/exp1-mnist-checkpoints"})


def run_in_pod(user: Access, release: Release, pod: str, *argv: str) -> str:
    return user.kubectl("exec", pod, f"--namespace={release.namespace}", "--container=training", "--", *argv)


def read_json(url: str) -> Any:
    """Return what the address serves; None while it serves nothing."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return json.load(answer)
    except (OSError, http.client.HTTPException):
        return None


def read_used_gpus(client: Client, namespace: str) -> str:
    quota = client.get(ResourceQuota, "tests", namespace=namespace)
    assert quota.status is not None
    return str((quota.status.used or {})[GPU_QUOTA])


def wait_until_only(admin: Access, namespace: str, wanted: set[str]) -> None:
    """Wait until the namespace holds these objects and no others."""

    def read(client: Client) -> bool:
        # To list everything costs most of a second of CPU, which the pods that are ending have use for.
        return not any(client.list(Pod, namespace=namespace)) and list_objects(admin, namespace) == wanted

    admin.wait_for(read, f"a namespace with nothing but {sorted(wanted)}", namespace=namespace)
