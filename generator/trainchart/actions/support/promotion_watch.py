"""Watches the rollout of a promoted model, and then how many of its requests fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from trainchart.actions.support.model_servers import RequestReader, read_deployment
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.errors import ClusterError, Unreachable
from trainchart.promotion.record import Model
from trainchart.promotion.rollout import Requests, Rollout, read_rollout
from trainchart.reports.text import describe_seconds

Tell = Callable[[str], None]
_POLL_SECONDS = 1.0
_COUNT_SECONDS = 2.0
_SAY_AGAIN_SECONDS = 30.0
_PATIENCE_SECONDS = 120.0
"""So long the API server may not answer."""
_LEAST_FAILED = 10
"""Failed requests from which on a high error rate ends the watch at once."""


@dataclass(frozen=True)
class Watch:
    """How a rollout is watched."""

    timeout_seconds: float
    watch_seconds: float
    max_error_rate: float


@dataclass(frozen=True)
class Watched:
    """What came of it."""

    failure: str = ""
    """Why the model does not serve; empty where it does."""
    is_late: bool = False
    """Whether it failed by the time limit alone."""
    requests: Requests | None = None
    """None where they could not be counted, or were not."""


def watch_promotion(
    api: KubernetesApi, namespace: str, server: tuple[str, str], model: Model, watch: Watch, tell: Tell
) -> Watched:
    """Return whether all pods of a server (name, program) come to serve a model, and answer what they are asked.

    Raises:
        ClusterError: the cluster cannot be asked for long.
    """
    name, program = server
    rollout, is_late = watch_rollout(api, namespace, name, model, watch.timeout_seconds, tell)
    if rollout.failure or not watch.watch_seconds:
        return Watched(rollout.failure, is_late)
    tell(
        f"all {rollout.wanted} pods serve {model}; counting failed requests for {describe_seconds(watch.watch_seconds)}"
    )
    reader = RequestReader(api, namespace, program)
    ends, requests, problem = time.monotonic() + watch.watch_seconds, Requests(), ""
    while True:
        time.sleep(min(_COUNT_SECONDS, max(0.0, ends - time.monotonic())))
        is_over = time.monotonic() >= ends
        try:
            rollout = read_rollout(*read_deployment(api, namespace, name), model)
            if rollout.failure:
                return Watched(rollout.failure)
            requests, problem = reader.read(rollout.pods), ""
        except ClusterError as error:
            problem = error.message
        is_high = requests.error_rate > watch.max_error_rate
        if is_high and (is_over or requests.failed >= _LEAST_FAILED):
            said = f"{requests.failed} of {requests.total} requests failed ({requests.error_rate:.1%})"
            return Watched(f"{said}, more than --max-error-rate {watch.max_error_rate:g}", requests=requests)
        if is_over:
            break
    if requests.unknown and not problem:
        problem = f"{requests.unknown} pods report impossible counts of requests"
    if problem:
        tell(f"note: the error rate is not known: {problem}")
        return Watched()
    count = f"{requests.failed} of {requests.total} requests failed"
    tell(count if requests.total else "note: there were no requests, so the error rate is not known")
    return Watched(requests=requests)


def watch_rollout(
    api: KubernetesApi, namespace: str, name: str, model: Model, timeout_seconds: float, tell: Tell
) -> tuple[Rollout, bool]:
    """Return the rollout once all pods serve a model, or why it failed, and whether only the time was up.

    Raises:
        ClusterError: the cluster cannot be asked for long.
    """
    start = silent_since = time.monotonic()
    said, say_again = "", 0.0
    rollout = Rollout(0, 0, is_done=False)
    while True:
        try:
            rollout = read_rollout(*read_deployment(api, namespace, name), model)
            silent_since = time.monotonic()
        except Unreachable as error:
            if time.monotonic() - silent_since > _PATIENCE_SECONDS:
                raise
            tell(f"the API server does not respond, trying again: {error.message}")
        if rollout.is_done or rollout.failure:
            return rollout, False
        line = f"{rollout.ready} of {rollout.wanted} pods serve {model}"
        line += f"; {rollout.waiting}" if rollout.waiting else ""
        if line != said or time.monotonic() >= say_again:
            tell(line)
            said, say_again = line, time.monotonic() + _SAY_AGAIN_SECONDS
        if time.monotonic() - start >= timeout_seconds:
            failure = f"{line} after {describe_seconds(timeout_seconds)}"
            return Rollout(rollout.wanted, rollout.ready, is_done=False, pods=rollout.pods, failure=failure), True
        time.sleep(_POLL_SECONDS)
