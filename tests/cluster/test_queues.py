"""Releases that wait in a Kueue queue: as a whole, until there is quota, and again when one of higher priority comes.

The tests follow each other in one namespace, with quota for one release at a time. The flavor's node has a label and a
taint, so that pods run at all only where the admission has put them.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.generic_resource import create_namespaced_resource

from tests.cluster.test_cli_releases import trainchart
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.kueue import COMPONENT, VIEWER, run_kueue
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.runs import (
    CONTROLLED,
    find_jobs,
    read_replicas,
    read_state,
    training_pods,
    wait_for_job,
    wait_for_phase,
)
from tests.cluster.testcluster.traced import Traces
from tests.cluster.testcluster.users import make_user
from trainchart_runtime.pod_causes import QUEUE_UNUSABLE

pytestmark = [pytest.mark.cluster, pytest.mark.long]

API = "kueue.x-k8s.io/v1beta2"
Workload = create_namespaced_resource("kueue.x-k8s.io", "v1beta2", "Workload", "workloads")
GPU_NODE = "node2"
LABEL, TAINT = "trainchart.test/pool", "trainchart.test/reserved"
QUEUE = "research"
QUOTA = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", GPU_RESOURCE: "2"}


def make(kind: str, name: str, namespace: str = "", **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": API, "kind": kind, "metadata": metadata, **fields}


def plan_queues(namespace: str) -> list[dict[str, Any]]:
    """Plan a flavor on one node, quota for two GPUs there, and two priorities."""
    tolerations = [{"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}]
    resources = [{"name": name, "nominalQuota": amount} for name, amount in QUOTA.items()]
    group = {"coveredResources": list(QUOTA), "flavors": [{"name": "reserved", "resources": resources}]}
    spec = {
        "namespaceSelector": {},
        "preemption": {"withinClusterQueue": "LowerPriority"},
        "resourceGroups": [group],
    }
    return [
        make("ResourceFlavor", "reserved", spec={"nodeLabels": {LABEL: "gpu"}, "tolerations": tolerations}),
        make("ClusterQueue", "research", spec=spec),
        make("WorkloadPriorityClass", "low", value=10),
        make("WorkloadPriorityClass", "high", value=100),
        make("LocalQueue", QUEUE, namespace, spec={"clusterQueue": "research"}),
    ]


@pytest.fixture(scope="module")
def kueue(lasting_cluster: Cluster, admin: Access) -> Iterator[None]:
    with run_kueue(lasting_cluster, admin):
        yield


@pytest.fixture(scope="module")
def traces(kueue: None, admin: Access, module_namespace: str) -> Iterator[Traces]:
    """The namespace with its queue, and a node that only admitted pods can use."""
    traces = Traces(admin, module_namespace)
    traces.prepare("node1")
    admin.kubectl("create", "-f", "-", text=dump_objects(*plan_queues(module_namespace)))
    admin.kubectl("label", "node", GPU_NODE, f"{LABEL}=gpu")
    admin.kubectl("taint", "node", GPU_NODE, f"{TAINT}=true:NoSchedule")
    try:
        yield traces
    finally:
        admin.kubectl("taint", "node", GPU_NODE, f"{TAINT}-")
        admin.kubectl("label", "node", GPU_NODE, f"{LABEL}-")


@pytest.fixture(scope="module")
def engineer(admin: Access, traces: Traces, tmp_path_factory: pytest.TempPathFactory) -> Access:
    """Who may look at the namespace and its queues, as Kueue's installation lets users, and at no quota."""
    folder = tmp_path_factory.mktemp("engineer")
    user = make_user(admin, traces.namespace, "engineer", "view", folder)
    subject = f"--serviceaccount={traces.namespace}:engineer"
    admin.kubectl("create", "rolebinding", "queues", f"--clusterrole={VIEWER}", subject, "-n", traces.namespace)
    return user


def plan(traces: Traces, name: str, changes: dict[str, Any] | None = None) -> Release:
    """Plan chief, ps and two workers with a GPU each: all of the quota."""
    queued = {"run": {"queue": QUEUE}, "roles": {"worker": {"gpus": 1}}}
    return traces.plan(name, merge_values(queued, changes or {}))


@pytest.fixture(scope="module")
def first(traces: Traces) -> Release:
    return plan(traces, "first")


@pytest.fixture(scope="module")
def second(traces: Traces) -> Release:
    return plan(traces, "second")


def read_workloads(client: Client, namespace: str) -> dict[str, Any]:
    return {str(each.metadata.name): each for each in client.list(Workload, namespace=namespace) if each.metadata}


def conditions_of(workload: Any) -> dict[str, str]:
    found = (workload.status or {}).get("conditions") or []
    return {each["type"]: each["status"] for each in found}


def wait_until_trains(traces: Traces, release: Release, attempt: int = 1) -> None:
    wait_for_phase(release, "Running", attempt=attempt)
    names = set(training_pods(release, release.access.client()))

    def read(_: Client) -> bool:
        return {line.pod for line in traces.read(release) if line.what == "trains"} == names

    release.access.wait_for(read, f"{release.name} trains", namespace=release.namespace)


def wait_for_words(release: Release, cause: str, words: str) -> None:
    """Wait until the record gives this cause in these words as the reason why a release waits in its queue."""

    def read(client: Client) -> bool:
        found = [(each["subject"], each["cause"], words in each["message"]) for each in read_problems(release, client)]
        return (f"queue {release.values['run']['queue']}", cause, True) in found

    wait_for_phase(release, "Queued")
    release.access.wait_for(read, f"{cause}: {words}", namespace=release.namespace)


def read_problems(release: Release, client: Client) -> list[dict[str, Any]]:
    state = read_state(release, client)
    return list(state["problems"]) if state else []


def test_unreadable_flavor_is_named_and_its_cure_works(admin: Access, traces: Traces, first: Release) -> None:
    first.install()
    wait_for_words(first, "queue-unusable", "resourceflavors/reserved: 403")
    assert not training_pods(first, admin.client())

    commands = re.findall(r"kubectl (create [^&]+?)(?: &&|\.$)", QUEUE_UNUSABLE.hint)
    assert len(commands) == 2
    for command in commands:
        admin.kubectl(*shlex.split(command))
    wait_until_trains(traces, first)
    pods = training_pods(first, admin.client())
    assert {pod.spec.nodeName for pod in pods.values() if pod.spec} == {GPU_NODE}
    (workload,) = read_workloads(admin.client(), traces.namespace).values()
    assert conditions_of(workload)["PodsReady"] == "True"


def test_second_release_waits_as_a_whole(admin: Access, engineer: Access, traces: Traces, second: Release) -> None:
    second.install()
    wait_for_words(second, "queued", "insufficient unused quota")
    client = admin.client()
    assert not training_pods(second, client)
    assert set(read_replicas(second, client).values()) == {0}
    (job,) = find_jobs(second, client).values()
    assert not job.spec.suspend and "kueue.x-k8s.io/queue-name" not in (job.metadata.labels or {})

    status = json.loads(trainchart(admin, traces.namespace, "status", "second", "--format=json"))
    needs, free = {GPU_RESOURCE: 2.0}, {GPU_RESOURCE: 0.0}
    assert status["queue"] == {"name": QUEUE, "position": 1, "length": 1, "needs": needs, "free": free}
    said = trainchart(engineer, traces.namespace, "why", "second")
    assert f"waits in queue {QUEUE}, position 1 of 1, needs 2 {GPU_RESOURCE}\n" in said
    assert f"waits in queue {QUEUE}, position 1 of 1" in trainchart(engineer, traces.namespace, "list")


def test_another_controller_goes_on_with_the_same_workload(admin: Access, traces: Traces, second: Release) -> None:
    before = read_workloads(admin.client(), traces.namespace)
    (first_pod,) = second.pods(admin.client(), "controller")
    admin.kubectl("delete", "pod", first_pod, "-n", traces.namespace, "--grace-period=0", "--force")

    def read(client: Client) -> bool:
        others = (pod for name, pod in second.pods(client, "controller").items() if name != first_pod)
        return any(pod.status and pod.status.phase == "Running" for pod in others)

    admin.wait_for(read, "another controller", namespace=traces.namespace)
    after = read_workloads(admin.client(), traces.namespace)
    assert {name: each.metadata.uid for name, each in after.items()} == {
        name: each.metadata.uid for name, each in before.items()
    }


def test_end_of_the_first_release_starts_the_second(
    admin: Access, traces: Traces, first: Release, second: Release
) -> None:
    traces.end(first)
    wait_for_phase(first, "Succeeded")
    wait_for_job(first, "Complete")
    wait_until_trains(traces, second)
    workloads = read_workloads(admin.client(), traces.namespace)
    assert conditions_of(workloads["first-mnist-queue"])["Finished"] == "True"
    ended, started = traces.read(first)[-1].at, traces.read(second)[0].at
    assert ended < started


def test_suspended_release_frees_its_quota_and_waits_again(admin: Access, traces: Traces, second: Release) -> None:
    held = dataclasses.replace(second, values=merge_values(second.values, {"run": {"desiredState": "suspended"}}))
    held.upgrade()
    wait_for_phase(second, "Suspended")
    admin.wait_for(
        lambda client: "second-mnist-queue" not in read_workloads(client, traces.namespace),
        "quota given back",
        namespace=traces.namespace,
    )
    second.upgrade()
    wait_until_trains(traces, second, attempt=2)


def test_deleted_workload_makes_the_run_save_and_wait_again(admin: Access, traces: Traces, second: Release) -> None:
    admin.kubectl("delete", "workload", "second-mnist-queue", "-n", traces.namespace)
    state = wait_for_phase(second, "Running", attempt=3)
    assert [entry["phase"] for entry in state["history"]][-4:] == ["Restarting", "Queued", "Starting", "Running"]
    assert "its Workload in queue research was deleted" in state["history"][-4]["message"]


def test_running_release_survives_kueue_and_its_queue(
    lasting_cluster: Cluster, admin: Access, traces: Traces, second: Release
) -> None:
    lasting_cluster.stop_component(COMPONENT)
    count = len(traces.read(second))
    admin.wait_for(lambda _: len(traces.read(second)) > count + 40, "training continues", namespace=traces.namespace)
    state = read_state(second, admin.client())
    assert state is not None
    assert (state["phase"], state["attempt"], state["problems"]) == ("Running", 3, [])
    lasting_cluster.start_component(COMPONENT)


def test_preempted_training_saves_waits_and_loses_no_step(admin: Access, traces: Traces, second: Release) -> None:
    second.uninstall()
    low = plan_training(traces)
    low.install()
    chief = "low-mnist-chief-0"
    wait_for_phase(low, "Running")
    with follow(admin, traces.namespace, chief) as log:
        wait_for_line(log, r"step \d+/100000")
        high = traces.plan(
            "high",
            {"run": {"queue": QUEUE, "queuePriorityClass": "high"}, "roles": {"worker": {"gpus": 2}}},
            "digits",
        )
        high.install()
        stopped = wait_for_line(log, r"stopped on request at step (\d+)")
    wait_for_phase(low, "Queued", attempt=2)
    wait_until_trains(traces, high)
    state = read_state(low, admin.client())
    assert state is not None
    assert "takes the quota back: Preempted" in next(
        entry["message"] for entry in reversed(state["history"]) if entry["phase"] == "Restarting"
    )
    gone = next(entry["at"] for entry in reversed(state["history"]) if entry["phase"] == "Queued")
    assert gone < traces.read(high)[0].at + 0.5
    traces.end(high)
    wait_for_phase(high, "Succeeded")
    wait_for_phase(low, "Running", attempt=2)
    with follow(admin, traces.namespace, chief) as log:
        assert wait_for_line(log, r"restored step (\d+) from") == stopped
    dataclasses.replace(low, values=merge_values(low.values, {"run": {"desiredState": "stopped"}})).upgrade()
    wait_for_phase(low, "Stopped")
    admin.wait_for(
        lambda client: conditions_of(read_workloads(client, traces.namespace)["low-mnist-queue"]).get("Finished"),
        "quota given back",
        namespace=traces.namespace,
    )


def test_missing_queue_is_named_and_waited_for(admin: Access, traces: Traces) -> None:
    lost = plan(traces, "lost", {"run": {"queue": "nowhere"}})
    lost.install()
    wait_for_words(lost, "queue-closed", "LocalQueue nowhere doesn't exist")
    assert "kubectl get localqueues" in trainchart(admin, traces.namespace, "why", "lost")
    queue = make("LocalQueue", "nowhere", traces.namespace, spec={"clusterQueue": "research"})
    admin.kubectl("create", "-f", "-", text=dump_objects(queue))
    wait_for_phase(lost, "Running")
    lost.uninstall()
    admin.wait_for(
        lambda client: "lost-mnist-queue" not in read_workloads(client, traces.namespace),
        "the Workload gone with its release",
        namespace=traces.namespace,
    )


def plan_training(traces: Traces) -> Release:
    """Plan a real training whose only checkpoints are those of its stops."""
    small = {"cpu": "100m", "cpuLimit": "2", "saveWaitSeconds": 0}
    values = merge_values(mnist_values(maxSteps=100_000, checkpointSteps=100_000), CONTROLLED)
    changes = {
        "volumes": {"checkpoints": {"existingClaim": ""}},
        "run": {"queue": QUEUE, "queuePriorityClass": "low"},
        "roles": {
            "chief": small,
            "ps": small,
            "worker": {**small, "replicas": 1, "gpus": 1},
            "evaluator": {"replicas": 0},
        },
    }
    return Release(traces.access, traces.namespace, "low", PROJECT / "charts" / "mnist", merge_values(values, changes))


def follow(access: Access, namespace: str, pod: str) -> subprocess.Popen[str]:
    """Follow the log of a pod until its container ends."""
    argv = ["kubectl", "logs", "--follow", pod, f"--namespace={namespace}", "--container=training"]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=dict(access.environment))


def wait_for_line(log: subprocess.Popen[str], pattern: str) -> str:
    """Return the first group of the first line that matches, or the line."""
    assert log.stdout is not None
    seen = []
    for line in log.stdout:
        found = re.search(pattern, line)
        if found:
            return found[found.re.groups]
        seen.append(line)
    raise AssertionError(f"no line like {pattern!r}:\n{''.join(seen[-15:])}")
