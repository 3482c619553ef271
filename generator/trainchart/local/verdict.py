"""Decides the course of a local run: what follows a container's end, and in which order pods are stopped.

Pure; supervise.py feeds it and acts. Which tasks decide success is trainchart_runtime.cluster's knowledge.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence

from trainchart.local.pod_plan import PodPlan
from trainchart_runtime import causes, cluster
from trainchart_runtime.run import state

BACK_OFF_START_SECONDS = 10
BACK_OFF_CAP_SECONDS = 300
BACK_OFF_RESET_SECONDS = 600
"""A container that ran for this long starts its back-off again, as under a kubelet."""


class Next(enum.Enum):
    """What follows when a pod's launcher has ended."""

    FINISHED = "finished"
    RESTART = "restart"
    GIVE_UP = "give-up"


class RunPhase(enum.StrEnum):
    """What a run does, in the words that its displays show."""

    TRAINING = "training"
    EVALUATING = "waiting for the evaluator"
    STOPPING = "stopping"
    ENDED = "ended"


class Verdict(enum.StrEnum):
    """How a run ended, in the words of a run on a cluster."""

    SUCCEEDED = state.SUCCEEDED
    FAILED = state.FAILED
    STOPPED = state.STOPPED


def decide_next(exit_code: int, cause: str, *, restarts: int, max_restarts: int) -> Next:
    """Decide what follows a launcher's end.

    A negative `exit_code` is the signal that killed it; `cause` is that of its message, empty without one.

    The launcher restarts its program itself. It ends with an error of its own only when that is of no use
    any more, so only a launcher that something from outside ended is restarted here, as a kubelet would.
    """
    if exit_code == 0:
        return Next.FINISHED
    was_ended_from_outside = exit_code < 0 or cause == causes.TERMINATED.name
    if was_ended_from_outside and restarts < max_restarts:
        return Next.RESTART
    return Next.GIVE_UP


def back_off_seconds(restarts_in_row: int) -> int:
    """Return how long a kubelet waits before the next restart: 0, 10, 20, 40, ... up to 300 seconds."""
    if restarts_in_row == 0:
        return 0
    # The exponent is bounded, since a long run may restart very often.
    doublings = min(restarts_in_row - 1, 10)
    return min(BACK_OFF_START_SECONDS << doublings, BACK_OFF_CAP_SECONDS)


def stop_stages(pods: Sequence[PodPlan], deciding: Collection[str]) -> tuple[tuple[PodPlan, ...], ...]:
    """Return the pods in the order in which they are stopped: those that save first, then the rest.

    A chief whose ps and workers go at the same time hangs in its save until it is killed.
    """
    first = tuple(pod for pod in pods if pod.label in deciding or pod.role in (cluster.CHIEF, cluster.EVALUATOR))
    rest = tuple(pod for pod in pods if pod not in first)
    return tuple(stage for stage in (first, rest) if stage)
