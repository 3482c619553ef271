"""The use case `trainchart list`: local runs, and the trainings of a cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.actions.support.queue_standing import Sights, add_standing
from trainchart.cluster.checkpoint_folders import find_shared_folders, sort_by_folder
from trainchart.cluster.diagnosis import diagnose, wants_events
from trainchart.cluster.io.kubeconfig import is_configured
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import look_at_all, read_events
from trainchart.cluster.snapshot import Objects, Snapshot, find_trainings
from trainchart.errors import ClusterError, ToolError
from trainchart.local.io import run_report
from trainchart.reports.report import Report


def list_reports(place: Place, runs_folder: Path, note: Callable[[str], None], *, everywhere: bool) -> list[Report]:
    """Return a report of every local run, and of every training in the namespace, or in all of them.

    A damaged run is noted and left out. So is a cluster that cannot be read, where none was asked for.
    """
    is_named = bool(place.context or place.namespace)
    reports = [] if is_named else list_local(runs_folder, note)
    if not is_named and not everywhere and not is_configured(os.environ):
        return reports
    try:
        return [*reports, *list_cluster(place, everywhere=everywhere)]
    except ClusterError as error:
        if is_named or everywhere or not reports:
            raise
        note(f"note: local runs only, since the cluster cannot be read: {error.message}")
        return reports


def list_local(
    runs_folder: Path, note: Callable[[str], None], read: Callable[[Path], Report] = run_report.read_report
) -> list[Report]:
    """Return a report of every local run, as `read` returns it of its folder; a damaged one is noted and left out."""
    return list(_read_local(runs_folder, note, read))


def list_cluster(place: Place, *, everywhere: bool) -> list[Report]:
    """Return a report of every training in the namespace, or in all of them. Raises ClusterError."""
    api, namespace = open_cluster(place)
    return _diagnose_all(api, look_at_all(api, "" if everywhere else namespace))


def _read_local(runs_folder: Path, note: Callable[[str], None], read: Callable[[Path], Report]) -> Iterator[Report]:
    for folder in run_report.find_records(runs_folder):
        try:
            yield read(folder)
        except ToolError as error:
            note(f"note: {error.message}\n  hint: {error.hint}")


def _diagnose_all(api: KubernetesApi, seen: Snapshot) -> list[Report]:
    """Return a report of every training, with the events of those that only events explain, as `why` reads them."""
    reports = []
    events: dict[str, Objects] = {}
    sights: Sights = {}
    writers = sort_by_folder(seen.pods)
    for key, own in find_trainings(seen).items():
        report = diagnose(key, own)
        if wants_events(report):
            if key.namespace not in events:
                events[key.namespace] = read_events(api, key.namespace)
            report = diagnose(key, replace(own, events=events[key.namespace]))
        shared = find_shared_folders(report, own.pods, writers)
        report = replace(report, remarks=(*shared, *report.remarks))
        reports.append(add_standing(api, own, report, sights))
    return reports
