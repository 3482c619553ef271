"""How far the start of a pod had come, as a verdict on a late start says it."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart_runtime.cluster import SINGLE, Cluster, Role
from trainchart_runtime.pod_starts import describe_start
from trainchart_runtime.run.observation import parse_pod

AT = "2026-11-29T08:00:00Z"
LATER = "2026-11-29T08:05:00Z"
IMAGE = "registry.example.com/vision/train:1.4.0"
FETCH = {"name": "fetch", "image": "busybox:1.37"}
SIDECAR = {"name": "proxy", "image": "envoy:1.31", "restartPolicy": "Always"}
WAITING = {"waiting": {"reason": "PodInitializing"}}
DONE = {"terminated": {"exitCode": 0, "finishedAt": LATER}}
PULLS = f": the node may still have been pulling its image {IMAGE}, since "


def make_pod(*init: dict[str, Any], states: Any = (), prepared: str = "True", claim: str = "") -> dict[str, Any]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    conditions = [{"type": "PodReadyToStartContainers", "status": prepared, "lastTransitionTime": AT}]
    statuses = [{"name": each["name"], **seen} for each, seen in zip(init, states, strict=True)]
    return {
        "metadata": {"name": "exp1-worker-0"},
        "spec": {
            "nodeName": "node-2",
            "initContainers": list(init),
            "containers": [{"name": "training", "image": IMAGE}],
            "volumes": volumes,
        },
        "status": {
            "conditions": conditions if prepared else [],
            "initContainerStatuses": statuses,
            "containerStatuses": [{"name": "training", "state": WAITING}],
        },
    }


RUNS = {"state": {"running": {"startedAt": LATER}}}
AGAIN = {**RUNS, "restartCount": 3, "lastState": {"terminated": {"exitCode": 7}}}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (make_pod(FETCH, states=[RUNS]), f"its init container fetch still ran, since {LATER}"),
        (
            make_pod(FETCH, states=[AGAIN]),
            f"its init container fetch still ran, since {LATER}, after 3 restarts (last exit code 7)",
        ),
        (
            make_pod(SIDECAR, FETCH, states=[{**RUNS, "started": False}, {"state": WAITING}]),
            f"its sidecar proxy had not started (startupProbe), running since {LATER}",
        ),
        (
            make_pod(SIDECAR, FETCH, states=[{**RUNS, "started": True}, RUNS]),
            f"its init container fetch still ran, since {LATER}",
        ),
        (
            make_pod(FETCH, states=[{"state": WAITING}]),
            f"its init container fetch was not started: the node may still have been pulling its image busybox:1.37, "
            f"since {AT}",
        ),
        (
            make_pod(SIDECAR, states=[{}], prepared="False"),
            f"its sidecar proxy was not started: its volumes or its network were not ready, since {AT}",
        ),
        (make_pod(FETCH, states=[{"state": DONE}]), f"the container was not started{PULLS}{LATER}"),
        (make_pod(), f"the container was not started{PULLS}{AT}"),
        (
            make_pod(prepared="False", claim="exp1-checkpoints"),
            "the container was not started: its volumes (claims exp1-checkpoints) or its network were not ready, "
            f"since {AT}",
        ),
        (make_pod(prepared=""), "the container was not started"),
    ],
)
def test_what_a_start_waited_for_is_named(pod: dict[str, Any], words: str) -> None:
    assert describe_start(pod) == words


def test_only_a_pod_that_starts_on_a_node_says_how_far_it_is() -> None:
    cluster = Cluster(SINGLE, "exp1", 2222, 2223, {"worker": Role("exp1-worker", 1)})
    pod = make_pod(FETCH, states=[RUNS])
    view = parse_pod(cluster, pod)
    assert view is not None and view.start == f"its init container fetch still ran, since {LATER}"
    for changed in ({"nodeName": ""}, {"containerStatuses": [{"name": "training", "state": RUNS["state"]}]}):
        other = {**pod, "spec": {**pod["spec"], **changed}, "status": {**pod["status"], **changed}}
        view = parse_pod(cluster, other)
        assert view is not None and view.start == ""
