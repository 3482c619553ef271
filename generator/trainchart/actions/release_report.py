"""The use cases `trainchart list`, `status` and `why`: look at runs, here and on a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from trainchart.actions.cluster_access import Place, open_cluster
from trainchart.actions.run_lookup import RunAddress, find_local_run
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.kubeconfig import is_configured
from trainchart.cluster.releases import look_at_all, read_training
from trainchart.cluster.sighting import find_trainings
from trainchart.errors import ClusterError
from trainchart.local import run_report
from trainchart.reports.report import Report

WATCH_SECONDS = 2.0
Look = Callable[[], Report]
"""Returns the report of a run as it is now; raises ClusterError of the kind that fits."""


def list_reports(place: Place, runs_folder: Path, note: Callable[[str], None], *, everywhere: bool) -> list[Report]:
    """Return a report of every local run, and of every training in the namespace, or in all of them.

    Without a cluster asked for, one that cannot be read is noted, and the local runs are returned.
    """
    is_named = bool(place.context or place.namespace)
    reports = [] if is_named else [run_report.read_report(folder) for folder in run_report.find_runs(runs_folder)]
    if not is_named and not everywhere and not is_configured(os.environ):
        return reports
    try:
        api, namespace = open_cluster(place)
        seen = look_at_all(api, "" if everywhere else namespace)
    except ClusterError as error:
        if is_named or everywhere or not reports:
            raise
        note(f"note: local runs only, since the cluster cannot be read: {error.message}")
        return reports
    return reports + [diagnose(key, own) for key, own in find_trainings(seen).items()]


def open_run(address: RunAddress) -> Look:
    """Return what looks at one run.

    :raises TrainchartError: where there is none, or nobody can know.
    """
    folder = find_local_run(address)
    if folder is not None:
        return lambda: run_report.read_report(folder)
    api, namespace = open_cluster(address.place)
    return lambda: diagnose(*read_training(api, namespace, address.name))


def watch_report(look: Look) -> Iterator[Report]:
    """Yield a report every two seconds, until the run is over."""
    while True:
        report = look()
        yield report
        if report.is_over:
            return
        time.sleep(WATCH_SECONDS)
