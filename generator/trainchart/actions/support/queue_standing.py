"""The place of a run in its queue, which is looked for only while it waits there."""

from __future__ import annotations

from dataclasses import replace

from trainchart.cluster.diagnosis import list_unknown
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.queues import read_queue
from trainchart.cluster.queues import QueueSight, find_queue, find_standing
from trainchart.cluster.snapshot import Snapshot, listed
from trainchart.reports.report import Report
from trainchart_runtime.run.state import QUEUED

Sights = dict[tuple[str, str], QueueSight]
"""Namespace and queue → what was seen of it, so that a hundred runs in one queue look once."""


def add_standing(api: KubernetesApi, seen: Snapshot, report: Report, sights: Sights | None = None) -> Report:
    """Return the report of a training with where it stands in its queue, as far as this user may know."""
    name = find_queue(seen.sets)
    if report.phase != QUEUED or not name:
        return report
    known = {} if sights is None else sights
    place = report.key.namespace, name
    if place not in known:
        known[place] = read_queue(api, *place)
    sight = known[place]
    unknown = (*report.unknown, *list_unknown(sight.pending, sight.cluster_queues))
    return replace(report, queue=find_standing(name, listed(seen.sets), sight), unknown=unknown)
