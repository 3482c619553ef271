"""Runs the pods of a probe in a cluster, and removes all that it made. The pods' program is probe_program.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainchart.cluster.io import kubernetes_api, probe_program
from trainchart.cluster.io.kubernetes_api import Kind, KubernetesApi
from trainchart.cluster.io.releases import read_events
from trainchart.cluster.snapshot import Object, listed, name_of
from trainchart.errors import ClusterError, NotFound
from trainchart_runtime.contract import INSTANCE_LABEL
from trainchart_runtime.pod_problems import Event, parse_event

_POLL_SECONDS = 1.0
_REMOVAL_SECONDS = 60.0
_KINDS = {
    "ConfigMap": kubernetes_api.CONFIG_MAPS,
    "Job": kubernetes_api.JOBS,
    "NetworkPolicy": kubernetes_api.NETWORK_POLICIES,
    "PersistentVolumeClaim": kubernetes_api.CLAIMS,
    "Service": kubernetes_api.SERVICES,
}


def read_program() -> str:
    """Return the text of the program that the pods of a probe run."""
    return Path(probe_program.__file__).read_text()


def create(api: KubernetesApi, namespace: str, document: Object) -> dict[str, Any]:
    """Create one object of a probe. Raises ClusterError."""
    return api.create_object(_KINDS[str(document["kind"])], namespace, document)


def watch(
    api: KubernetesApi,
    namespace: str,
    name: str,
    limit: float,
    is_over: Callable[[Sequence[Object], Sequence[Event], float], bool],
) -> tuple[Sequence[Object], Sequence[Event]]:
    """Look at the pods and warnings of a probe until it is over or `limit` seconds are, and return them.

    `is_over` gets them with the seconds that have passed.

    Raises:
        ClusterError: the pods cannot be listed.
    """
    start = time.monotonic()
    while True:
        pods = api.list_objects(kubernetes_api.PODS, namespace, labels=f"{INSTANCE_LABEL}={name}")
        events = [parse_event(event) for event in listed(read_events(api, namespace))]
        seconds = time.monotonic() - start
        if seconds > limit or is_over(pods, events, seconds):
            return pods, events
        time.sleep(_POLL_SECONDS)


def remove(api: KubernetesApi, namespace: str, name: str) -> list[str]:
    """Delete a probe, wait until all that it owned is gone, and return what is still there in the end."""
    try:
        api.delete_object(kubernetes_api.JOBS, namespace, name)
    except NotFound:
        return []
    ends = time.monotonic() + _REMOVAL_SECONDS
    # A Job that is deleted right after it was created may get its pods a moment later.
    has_seen_pod, is_first = False, True
    while True:
        left = _list_left(api, namespace, name)
        has_seen_pod = has_seen_pod or any(each.startswith("Pod ") for each in left)
        if (not left and (has_seen_pod or not is_first)) or time.monotonic() > ends:
            return left
        is_first = False
        time.sleep(_POLL_SECONDS)


def _list_left(api: KubernetesApi, namespace: str, name: str) -> list[str]:
    kinds: dict[str, Kind] = {**_KINDS, "Pod": kubernetes_api.PODS}
    left = []
    for kind, place in kinds.items():
        try:
            found = api.list_objects(place, namespace, labels=f"{INSTANCE_LABEL}={name}")
        except ClusterError:
            continue  # what may not be listed could not be made, either
        left += [f"{kind} {name_of(each) or '(without a name)'}" for each in found]
    return left
