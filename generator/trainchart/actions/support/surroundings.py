"""Look at what surrounds a release on a cluster: what `why` may need beside the objects of the release itself."""

from __future__ import annotations

from dataclasses import replace

from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import read_autoscalers
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import Report


def add_surroundings(api: KubernetesApi, seen: Snapshot, report: Report) -> Snapshot:
    """Return what was seen of a release with what else of its cluster may explain the state in `report`."""
    if report.is_over:
        return seen
    return replace(seen, autoscalers=read_autoscalers(api, report.key.namespace))
