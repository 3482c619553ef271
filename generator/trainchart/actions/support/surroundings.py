"""Look at what surrounds a release on a cluster: what `why` may need beside the objects of the release itself."""

from __future__ import annotations

from dataclasses import replace

from trainchart.cluster.departures import is_overdue, is_refused_by_namespace
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import read_autoscalers, read_claims, read_namespace, read_nodes, read_volumes
from trainchart.cluster.placement import find_homeless, list_volumes
from trainchart.cluster.snapshot import Snapshot, listed
from trainchart.reports.report import Report

_VOLUMES_READ = 8


def add_surroundings(api: KubernetesApi, seen: Snapshot, report: Report) -> Snapshot:
    """Return what was seen of a release with what else of its cluster may explain the state in `report`."""
    namespace = report.key.namespace
    if find_homeless(report, seen) or any(is_overdue(pod, report.now) for pod in listed(seen.pods)):
        seen = replace(seen, nodes=read_nodes(api))
    if is_refused_by_namespace(report, seen):
        seen = replace(seen, namespaces=read_namespace(api, namespace))
    if report.is_over:
        return seen
    seen = replace(seen, autoscalers=read_autoscalers(api, namespace), claims=read_claims(api, namespace))
    return replace(seen, volumes=read_volumes(api, list_volumes(report, seen)[:_VOLUMES_READ]))
