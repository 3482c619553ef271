"""What a run survives: deaths of containers, evictions, its controller, the API server, kubelets, and whole nodes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.core_v1 import Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.components import VOLUMES
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.faults import Faults, daemons, network, nodes
from tests.cluster.testcluster.faults.fault import Change, Fault, Kubectl
from tests.cluster.testcluster.faults.processes import Container, Victim, kill_process
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import Release, merge_values
from tests.cluster.testcluster.runs import TINY, read_state, training_pods, wait_for_job, wait_for_phase
from tests.cluster.testcluster.scheduled_pods import ScheduledPod
from tests.cluster.testcluster.traced import Line, Traces, leave_slowly

pytestmark = pytest.mark.cluster

ON_NODE2 = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "preference": {
                    "matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node2"]}]
                },
            }
        ]
    }
}
"""On node2 as long as there is one."""
PHASES = ("Starting", "Running", "Finishing", "Stopping")
GATE = "trainchart-test/gate"
SMALL_GROUP = {"roles": {"worker": {"replicas": 1}}}


@pytest.fixture(scope="module")
def traces(admin: Access, module_namespace: str) -> Traces:
    traces = Traces(admin, module_namespace)
    # The one that is never lost.
    traces.prepare("node1")
    return traces


def on_node(name: str) -> dict[str, Any]:
    return {"nodeSelector": {"kubernetes.io/hostname": name}}


def uids(pods: Mapping[str, Pod]) -> dict[str, str]:
    return {name: str(pod.metadata.uid) for name, pod in pods.items() if pod.metadata}


def wait_until_trained_by(traces: Traces, release: Release, name: str, not_by: str) -> str:
    """Wait until a pod trains that is not the one with uid `not_by`, and return its uid."""

    def read(client: Client) -> str | None:
        pod = training_pods(release, client).get(name)
        uid = str(pod.metadata.uid) if pod and pod.metadata else not_by
        trains = any(line.uid == uid and line.what == "trains" for line in traces.read(release))
        return uid if trains and uid != not_by else None

    what = f"another {name} trains"
    return release.access.wait_for(read, what, namespace=release.namespace, deadline_seconds=150)


def count_starts(traces: Traces, release: Release, pod: str) -> int:
    return [(line.pod, line.what) for line in traces.read(release)].count((pod, "started"))


def wait_until_trained_again(traces: Traces, release: Release, pod: str, starts: int) -> None:
    """Wait until the program of a pod has been started more often, and trains."""

    def read(_: Client) -> bool:
        lines = [line.what for line in traces.read(release) if line.pod == pod]
        return lines.count("started") > starts and lines[-1] == "trains"

    release.access.wait_for(read, f"{pod} trains again", namespace=release.namespace)


def test_killed_containers_and_evicted_pods_come_back(traces: Traces, faults: Faults) -> None:
    release = traces.plan("hurt", {"run": {"maxRestarts": 5}})
    access, namespace = release.access, release.namespace
    release.install()
    wait_for_phase(release, "Running")
    before = uids(training_pods(release, access.client()))
    ps = Container(namespace, "hurt-mnist-ps-0", "training")

    starts = count_starts(traces, release, ps.pod)
    kill_process(faults.site, ps, Victim.LAUNCHER)
    wait_until_trained_again(traces, release, ps.pod, starts)
    kill_process(faults.site, ps, Victim.LAUNCHER)
    # The kubelet would wait for ten seconds now.
    after = wait_until_trained_by(traces, release, ps.pod, before[ps.pod])
    faults.inflict(nodes.evict_pod(namespace, "hurt-mnist-worker-1"))
    wait_until_trained_by(traces, release, "hurt-mnist-worker-1", before["hurt-mnist-worker-1"])

    now = uids(training_pods(release, access.client()))
    assert {name for name, uid in now.items() if uid == before[name]} == {"hurt-mnist-chief-0", "hurt-mnist-worker-0"}
    state = read_state(release, access.client())
    assert state is not None
    assert (state["phase"], state["attempt"]) == ("Running", 1)
    assert state["deaths"]["ps-0"] == {"uid": after, "earlier": 2, "current": 0}
    told = [(incident["pod"], incident["cause"]) for incident in state["incidents"]]
    assert told == [(ps.pod, "killed"), (ps.pod, "killed"), ("hurt-mnist-worker-1", "evicted-by-client")]
    traces.end(release)
    assert wait_for_phase(release, "Succeeded")["roles"]["ps"]["failures"] == 2


def test_controller_killed_in_any_phase_has_a_successor(traces: Traces, faults: Faults) -> None:
    evaluated = {"roles": {"worker": {"replicas": 1}, "evaluator": {"replicas": 1, **TINY}}}
    releases = {
        "Starting": traces.plan("starting", {"roles": {"worker": {"nodeSelector": {GATE: "open"}}}}, "digits"),
        "Running": traces.plan("running", {}, "digits"),
        "Finishing": traces.plan("finishing", evaluated),
        "Stopping": traces.plan("stopping", leave_slowly(8), "digits"),
    }
    for release in releases.values():
        release.install()
    for phase in PHASES[1:]:
        wait_for_phase(releases[phase], "Running")
    killed = {}
    for phase, release in releases.items():
        if phase in ("Finishing", "Stopping"):
            traces.end(release)
        wait_for_phase(release, phase)
        (killed[phase],) = release.pods(release.access.client(), "controller")
        kill_process(faults.site, Container(release.namespace, killed[phase]), Victim.LAUNCHER)
    open_gate = Kubectl(("label", "node", "node1", f"{GATE}=open"))
    faults.inflict(Fault("gate open", (Change(open_gate, (Kubectl(("label", "node", "node1", f"{GATE}-")),)),)))
    for phase, release in releases.items():
        release.access.wait_for(
            lambda client, release=release, phase=phase: set(release.pods(client, "controller")) - {killed[phase]},
            f"another controller of {release.name}",
            namespace=release.namespace,
        )

    wait_for_phase(releases["Starting"], "Running")
    for phase in ("Starting", "Running"):
        traces.end(releases[phase])
    traces.end(releases["Finishing"], "end-evaluator")

    for release in releases.values():
        state = wait_for_phase(release, "Succeeded")
        assert [entry["phase"] for entry in state["history"]] == [*PHASES, "Succeeded"]
        assert not training_pods(release, release.access.client())
        wait_for_job(release, "Complete")


def test_run_survives_restarts_of_kubelets_and_the_api_server(traces: Traces, faults: Faults) -> None:
    release = traces.plan("calm", SMALL_GROUP)
    access = release.access
    release.install()
    wait_for_phase(release, "Running")
    before = uids(training_pods(release, access.client()))

    kubelets = [faults.inflict(daemons.stop_kubelet(node)) for node in ("node1", "node2")]
    for stopped in kubelets:
        faults.undo(stopped)
    faults.inflict(daemons.restart_api_server())
    assert uids(training_pods(release, access.client())) == before
    down = faults.inflict(daemons.stop_api_server())
    stopped_at = time.time()
    end = f"cd {VOLUMES}/*/calm && touch end && timeout 60 sh -c 'until grep -q done trace; do sleep 0.1; done'"
    faults.site.cluster.run_inside(["sh", "-c", end])
    started_at = time.time()
    faults.undo(down)

    state = wait_for_phase(release, "Succeeded", deadline_seconds=150)
    assert state["verdict"]["pod"] == "calm-mnist-chief-0"
    assert state["attempt"] == 1
    lines = traces.read(release)
    assert {line.uid for line in lines} == set(before.values())
    (done,) = [line for line in lines if line.what == "done"]
    assert stopped_at < done.at < started_at


def test_what_was_on_a_lost_node_is_named_and_goes_on_elsewhere(traces: Traces, faults: Faults) -> None:
    moving = {
        "run": {"lostNodeTimeout": "1s", "forceDeleteLostPods": True},
        **on_node("node1"),
        "roles": {
            "worker": {"nodeSelector": {"kubernetes.io/os": "linux"}, "affinity": ON_NODE2, "stopGraceSeconds": 2}
        },
    }
    moved = traces.plan("moved", moving, "digits")
    waiting = traces.plan("waiting", merge_values(moving, {"run": {"forceDeleteLostPods": False}}), "digits")
    access, namespace = traces.access, traces.namespace
    headless = traces.plan("headless", {"affinity": ON_NODE2, "roles": {"worker": on_node("node1")}}, "digits")
    for release in (moved, waiting, headless):
        release.install()
    for release in (moved, waiting, headless):
        wait_for_phase(release, "Running")
    controllers = headless.pods(access.client(), "controller")
    assert [pod.spec.nodeName for pod in controllers.values() if pod.spec] == ["node2"]
    (lost,) = uids(training_pods(moved, access.client())).values()

    faults.inflict(nodes.cordon_node("node2"))
    cut = faults.inflict(network.partition_node("node2"))

    def read_incident(client: Client) -> dict[str, Any] | None:
        state = read_state(waiting, client)
        return next(iter(state["incidents"]), None) if state else None

    incident = access.wait_for(read_incident, "an incident", namespace=namespace, deadline_seconds=90)
    assert (incident["pod"], incident["node"], incident["cause"]) == ("waiting-digits-worker-0", "node2", "node-lost")
    wait_until_trained_by(traces, moved, "moved-digits-worker-0", lost)
    assert_one_after_the_other(traces.read(moved))
    traces.end(moved)
    state = wait_for_phase(moved, "Succeeded")
    assert (state["verdict"]["node"], state["incidents"][0]["cause"]) == ("node1", "node-lost")

    state = read_state(waiting, access.client())
    assert state is not None
    assert state["phase"] == "Running"
    assert [problem["cause"] for problem in state["problems"]] == ["node-lost"]

    def has_successor(client: Client) -> bool:
        pods = headless.pods(client, "controller")
        return any(pod.spec and pod.spec.nodeName == "node1" for name, pod in pods.items() if name not in controllers)

    access.wait_for(has_successor, "another controller", namespace=namespace, deadline_seconds=90)
    traces.end(headless)
    assert [entry["phase"] for entry in wait_for_phase(headless, "Succeeded")["history"]].count("Starting") == 1
    faults.undo(cut)
    wait_for_job(headless, "Complete", deadline_seconds=150)
    traces.end(waiting)
    wait_for_phase(waiting, "Succeeded", deadline_seconds=150)


def test_a_pod_that_makes_room_for_a_more_urgent_one_comes_back(traces: Traces, faults: Faults) -> None:
    access, namespace = traces.access, traces.namespace
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    priority["metadata"] = {"name": f"{namespace}-urgent"}
    make = Kubectl(("apply", "-f", "-"), text=dump_objects(priority))
    drop = Kubectl(("delete", "priorityclass", f"{namespace}-urgent"))
    faults.inflict(Fault("a class of priority", (Change(make, (drop,)),)))
    release = traces.plan("outbid", {"roles": {"worker": {"gpus": 4, **on_node("node1")}}}, "digits")
    release.install()
    wait_for_phase(release, "Running")
    (before,) = uids(training_pods(release, access.client())).values()

    urgent = ScheduledPod("urgent", node="node1", spec={"priorityClassName": f"{namespace}-urgent"}).manifest()
    urgent["spec"]["containers"][0]["resources"]["limits"][GPU_RESOURCE] = "1"
    access.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(urgent))
    access.kubectl("wait", "pod/urgent", "-n", namespace, "--for=condition=Ready", "--timeout=60s")

    def is_told(client: Client) -> bool:
        state = read_state(release, client)
        return bool(state and state["problems"])

    def is_named(client: Client) -> bool:
        state = read_state(release, client)
        uid = access.kubectl("get", "pod/urgent", "-n", namespace, "-o", "jsonpath={.metadata.uid}")
        words = f"it made room for the pod with the uid {uid}"
        return bool(state and any(each["error"].endswith(words) for each in state["incidents"]))

    access.wait_for(is_told, "a problem in the record", namespace=namespace)
    access.wait_for(is_named, "who took its place", namespace=namespace)
    access.kubectl("delete", "pod/urgent", "-n", namespace)
    wait_until_trained_by(traces, release, "outbid-digits-worker-0", before)
    state = read_state(release, access.client())
    assert state is not None
    assert [(incident["pod"], incident["cause"]) for incident in state["incidents"]] == [
        ("outbid-digits-worker-0", "preempted")
    ]
    traces.end(release)
    wait_for_phase(release, "Succeeded")


def assert_one_after_the_other(lines: list[Line]) -> None:
    """Assert that no pod began before the one before it had written its last."""
    order = list(dict.fromkeys(line.uid for line in lines))
    assert [line.uid for line in lines] == [uid for uid in order for line in lines if line.uid == uid]
    assert {line.node for line in lines if line.uid == order[0]} == {"node2"}
