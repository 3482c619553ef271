"""How far the start of a pod has come that has a node and whose program does not run yet: for a verdict on its start.

Pure. Only what a pod's status says: what keeps it from starting for good has a cause of its own, see pod_problems.py.
"""

from __future__ import annotations

from typing import Any, Mapping

from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.log_text import shorten
from trainchart_runtime.pod_problems import find_claims

_IMAGE_LIMIT = 150


def describe_start(pod: Mapping[str, Any]) -> str:
    """Return which container of a pod object of the API was not done or not started, and since when."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    statuses = {each.get("name"): each for each in status.get("initContainerStatuses") or ()}
    ready_at = ""
    for container in spec.get("initContainers") or ():
        name, seen = container.get("name"), statuses.get(container.get("name")) or {}
        state, is_sidecar = seen.get("state") or {}, container.get("restartPolicy") == "Always"
        running, ended = state.get("running"), state.get("terminated")
        if ended and not is_sidecar:
            ready_at = max(ready_at, str(ended.get("finishedAt") or ""))
        elif running and is_sidecar and seen.get("started") is not False:
            ready_at = max(ready_at, str(running.get("startedAt") or ""))
        elif running and is_sidecar:
            return f"its sidecar {name} had not started (startupProbe), running {_describe_runs(seen)}"
        elif running:
            return f"its init container {name} still ran, {_describe_runs(seen)}"
        else:
            kind = "sidecar" if is_sidecar else "init container"
            return f"its {kind} {name} was not started{_describe_place(pod, container, ready_at)}"
    training = [each for each in spec.get("containers") or () if each.get("name") == TRAINING_CONTAINER]
    return f"the container was not started{_describe_place(pod, training[0] if training else {}, ready_at)}"


def _describe_runs(seen: Mapping[str, Any]) -> str:
    """Return since when a container runs, and how it ended before."""
    since = f"since {((seen.get('state') or {}).get('running') or {}).get('startedAt')}"
    before = (seen.get("lastState") or {}).get("terminated") or {}
    restarts = seen.get("restartCount") or 0
    times = "1 restart" if restarts == 1 else f"{restarts} restarts"
    return f"{since}, after {times} (last exit code {before.get('exitCode')})" if restarts and before else since


def _describe_place(pod: Mapping[str, Any], container: Mapping[str, Any], ready_at: str) -> str:
    """Return what a container that was not started waited for: volumes and network, or its image; "" if not known."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    prepared: Mapping[str, Any] = next(
        (each for each in conditions if each.get("type") == "PodReadyToStartContainers"), {}
    )
    since = str(prepared.get("lastTransitionTime") or "")
    if prepared.get("status") == "False" and not ready_at:
        claims = find_claims(pod)
        volumes = f"volumes (claims {', '.join(claims)})" if claims else "volumes"
        return f": its {volumes} or its network were not ready{f', since {since}' if since else ''}"
    since = ready_at or (since if prepared.get("status") == "True" else "")
    image = shorten(str(container.get("image") or ""), _IMAGE_LIMIT)
    return f": the node may still have been pulling its image {image}, since {since}" if since and image else ""
