"""What a launcher says about its pod over HTTP: one snapshot as JSON and as Prometheus text.

Pure rendering; report.py serves it.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence

from trainchart_runtime.contract import PEER_UNASKED
from trainchart_runtime.metrics_text import Family, dump_families
from trainchart_runtime.progress import Progress
from trainchart_runtime.termination import Failure, dump_failures
from trainchart_runtime.throttling import Throttling, dump_throttling

STATES = ("starting", "running", "paused", "waiting", "stopping", "parked")
"""paused: the checkpoint storage does not answer (docs/fencing.md); waiting: the program has failed and will be started
again; parked: it has succeeded."""

_PEERS_SHOWN = 50
"""A thousand peers would be more than the run controller reads."""


class WaitingPeer(NamedTuple):
    """A peer that has not answered yet."""

    address: str
    reason: str
    seconds: float


class Status(NamedTuple):
    """What the supervisor knows right now. Replaced as a whole, so that readers never see half a change."""

    task_type: str
    task_index: int
    run_id: str
    state: str = "starting"
    since: float = 0.0
    """Unix seconds of the last change of `state`."""
    attempt: int = 0
    own_failures: int = 0
    peer_failures: int = 0
    last_cause: str = ""
    last_error: str = ""
    ended: int = 0
    """Ends of the program in this pod that were no success."""
    failures: Sequence[Failure] = ()
    """The last of them, oldest first."""
    memory_kill: str = ""
    """That the kernel killed processes of the container for memory, while the program goes on."""
    memory_killed_at: float = 0.0
    """Unix seconds at which the last of them was noticed."""
    silent_storage: str = ""
    """Why the program stands still, or is not started: the checkpoint storage does not answer."""
    throttling: Optional[Throttling] = None
    """How the kernel has held the container to its CPU limit in the last minute; None where that is not known."""
    use: Optional[Mapping[str, Any]] = None
    """What the container uses; None where no one asked."""


def dump_status(status: Status, progress: Progress, peers: Sequence[WaitingPeer]) -> str:
    """Return the snapshot as JSON, with at most _PEERS_SHOWN waiting peers: first those that have been asked."""
    shown = sorted(peers, key=lambda peer: peer.reason == PEER_UNASKED)[:_PEERS_SHOWN]
    document: Dict[str, Any] = {
        "taskType": status.task_type,
        "taskIndex": status.task_index,
        "runId": status.run_id,
        "state": status.state,
        "since": round(status.since, 6),
        "attempt": status.attempt,
        "restarts": max(status.attempt - 1, 0),
        "ownFailures": status.own_failures,
        "peerFailures": status.peer_failures,
        "step": progress.step,
        "examplesPerSecond": progress.examples_per_second,
        "metrics": dict(progress.metrics),
        "nanMetrics": list(progress.nan_metrics),
        "memoryKill": status.memory_kill,
        "memoryKilledAt": round(status.memory_killed_at, 6),
        "silentStorage": status.silent_storage,
        "cpuThrottling": dump_throttling(status.throttling) if status.throttling else None,
        "lastCause": status.last_cause,
        "lastError": status.last_error,
        "ended": status.ended,
        "failures": dump_failures(status.failures),
        "peersWaiting": [
            {"address": peer.address, "reason": peer.reason, "seconds": round(peer.seconds, 1)} for peer in shown
        ],
    }
    if status.use is not None:
        document["use"] = dict(status.use)
    return json.dumps(document) + "\n"


def render_metrics(status: Status, progress: Progress, peers: Sequence[WaitingPeer]) -> str:
    """Return the snapshot in Prometheus' text format, version 0.0.4."""
    task = {"task_type": status.task_type, "task_index": str(status.task_index), "run_id": status.run_id}
    failures = [({"reason": "own"}, status.own_failures), ({"reason": "peer"}, status.peer_failures)]
    families = [
        Family(
            "trainchart_state",
            "gauge",
            "1 for the current state.",
            [({"state": s}, s == status.state) for s in STATES],
        ),
        Family(
            "trainchart_state_since_seconds",
            "gauge",
            "Unix time of the last state change.",
            [({}, status.since)],
        ),
        Family(
            "trainchart_attempt",
            "gauge",
            "Number of this start of the program in the pod, from 1.",
            [({}, status.attempt)],
        ),
        Family(
            "trainchart_failures_total",
            "counter",
            "Failures of the program, by its own fault or a peer's.",
            failures,
        ),
        Family("trainchart_peers_waiting", "gauge", "Peers that have not answered yet.", [({}, len(peers))]),
    ]
    if status.last_cause:
        sample = [({"cause": status.last_cause}, 1)]
        families.append(Family("trainchart_last_failure", "gauge", "Cause of the last failure in this pod.", sample))
    if progress.step is not None:
        families.append(Family("trainchart_step", "gauge", "Last reported training step.", [({}, progress.step)]))
    if progress.examples_per_second is not None:
        speed = progress.examples_per_second
        families.append(Family("trainchart_examples_per_second", "gauge", "Last reported speed.", [({}, speed)]))
    if progress.metrics:
        numbers = [({"name": name}, number) for name, number in progress.metrics.items()]
        families.append(Family("trainchart_metric", "gauge", "Metrics that the program reports.", numbers))
    return dump_families(families, task)
