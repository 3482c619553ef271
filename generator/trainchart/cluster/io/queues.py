"""Looks at one Kueue queue, as far as this user may: who waits in it, and the quota behind it."""

from __future__ import annotations

from trainchart.cluster.io.kubernetes_api import Kind, KubernetesApi
from trainchart.cluster.queues import QueueSight
from trainchart.cluster.snapshot import Objects, Unreadable, listed, section
from trainchart.errors import ClusterError, Forbidden

_KUEUE = "apis/kueue.x-k8s.io/v1beta2"
LOCAL_QUEUES = Kind(_KUEUE, "localqueues")
_VISIBILITY = "apis/visibility.kueue.x-k8s.io/v1beta2"


def read_queue(api: KubernetesApi, namespace: str, name: str) -> QueueSight:
    """Return what is seen of a LocalQueue; what may not be read is not known."""
    pending = _list(
        api, Kind(_VISIBILITY, f"localqueues/{name}/pendingworkloads"), namespace, f"its place in queue {name}"
    )
    what = f"what is free in queue {name}"
    local = _list(api, LOCAL_QUEUES, namespace, what, f"metadata.name={name}")
    cluster = next((section(each, "spec").get("clusterQueue") for each in listed(local)), None)
    if isinstance(local, Unreadable) or not cluster:
        return QueueSight(pending, local)
    return QueueSight(pending, _list(api, Kind(_KUEUE, "clusterqueues"), "", what, f"metadata.name={cluster}"))


def _list(api: KubernetesApi, kind: Kind, namespace: str, what: str, fields: str = "") -> Objects:
    try:
        return api.list_objects(kind, namespace, fields=fields)
    except ClusterError as error:
        return Unreadable(what, "forbidden" if isinstance(error, Forbidden) else error.message, error.message)
