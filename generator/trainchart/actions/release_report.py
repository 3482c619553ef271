"""The use cases `trainchart list`, `status` and `why`: look at a cluster and conclude what goes on there."""

from __future__ import annotations

import time
from collections.abc import Iterator

from trainchart.actions.cluster_access import Place, open_cluster
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.releases import look_at_all, read_training
from trainchart.cluster.sighting import find_trainings
from trainchart.reports.report import Report

WATCH_SECONDS = 2.0


def list_reports(place: Place, *, everywhere: bool = False) -> list[Report]:
    """Return a report of every training in the namespace, or in all of them."""
    api, namespace = open_cluster(place)
    seen = look_at_all(api, "" if everywhere else namespace)
    return [diagnose(key, own) for key, own in find_trainings(seen).items()]


def read_report(place: Place, release: str) -> Report:
    """Return the report of one training.

    :raises ClusterError: of the kind that fits, where there is none or nobody can know.
    """
    api, namespace = open_cluster(place)
    return diagnose(*read_training(api, namespace, release))


def watch_report(place: Place, release: str) -> Iterator[Report]:
    """Yield a report every two seconds, until the run is over."""
    api, namespace = open_cluster(place)
    while True:
        report = diagnose(*read_training(api, namespace, release))
        yield report
        if report.is_over:
            return
        time.sleep(WATCH_SECONDS)
