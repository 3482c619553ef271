"""The use cases `trainchart status` and `why`: look at one run, here or on a cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from trainchart.actions.support.cluster_access import open_cluster
from trainchart.actions.support.cluster_logs import read_last_lines
from trainchart.actions.support.queue_standing import add_standing
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.actions.support.surroundings import add_surroundings
from trainchart.cluster.admission import describe_new_refusers, find_refusers
from trainchart.cluster.checkpoint_folders import (
    find_shared_folders,
    list_claims_to_compare,
    may_share_folder,
    sort_by_folder,
)
from trainchart.cluster.config_keys import describe_keys
from trainchart.cluster.controller_rights import find_account, find_missing_rights
from trainchart.cluster.diagnosis import diagnose, list_unknown
from trainchart.cluster.evictors import find_evictors, list_evicted
from trainchart.cluster.helm_record import describe_earlier_image, describe_unfinished_upgrade
from trainchart.cluster.io.kubernetes_api import KubernetesApi
from trainchart.cluster.io.releases import (
    read_admission,
    read_config_maps,
    read_events_about,
    read_network_objects,
    read_pods,
    read_policies,
    read_revisions,
    read_rights,
    read_rights_of_all,
    read_secrets,
    read_training,
    read_training_pods,
    read_unfinished_upgrade,
    read_volumes,
)
from trainchart.cluster.log_lines import describe_repeated_warnings, find_exceptions, find_last_line
from trainchart.cluster.lost_files import describe_lost_files, loses_files
from trainchart.cluster.namespace_pods import claims_by_label, find_claim_users, find_finished_pods, wants_other_pods
from trainchart.cluster.outside_changes import find_config_changes, find_object_changes, list_config_maps, list_secrets
from trainchart.cluster.pod_deleters import find_deleters, loses_pods
from trainchart.cluster.policies import explain_by_policies, needs_policies
from trainchart.cluster.resource_users import find_hopeless_quotas, find_node_users, find_quota_users, lacks_nodes
from trainchart.cluster.running_logs import describe_dead_threads, describe_lone_tasks, describe_short_data
from trainchart.cluster.snapshot import Object, Snapshot, Unreadable, listed
from trainchart.cluster.storage_folders import find_storage, list_volumes_of
from trainchart.cluster.upgrades import describe_unread_upgrade, find_upgrades
from trainchart.reports.changes import lacks_key
from trainchart.reports.report import Report
from trainchart_runtime.pod_causes import IMAGE_PULL, POD_DELETED
from trainchart_runtime.run.state import FAILED, RUNNING

WATCH_SECONDS = 2.0
_CONFIG_MAPS_READ = 8
Look = Callable[[], Report]
"""Returns the report of a run as it is now; raises ClusterError of the kind that fits."""


def open_run(address: RunAddress) -> Look:
    """Return what looks at one run.

    Raises:
        TrainchartError: there is no such run, or it cannot be read.
    """
    folder = find_local_run(address)
    if folder is not None:
        return lambda: _read_local_report(folder)
    api, namespace = open_cluster(address.place)
    return lambda: _look(api, namespace, address.name)


def explain_run(address: RunAddress) -> Report:
    """Return the report of one run, and what else of its namespace keeps its pods from starting or from each other.

    Of one that runs, it has the warnings that its pods repeat; where it seems to hang, also the last line of each pod,
    and the last exception that each has printed.

    Raises:
        TrainchartError: there is no such run, or it cannot be read.
    """
    folder = find_local_run(address)
    if folder is not None:
        return _read_local_report(folder)
    api, namespace = open_cluster(address.place)
    key, seen = read_training(api, namespace, address.name)
    seen = add_surroundings(api, seen, diagnose(key, seen))
    report = add_standing(api, seen, diagnose(key, seen))
    if any(each.cause == POD_DELETED.name for each in report.incidents):
        report = replace(report, unknown=(*report.unknown, *list_unknown(seen.autoscalers)))
    report = _add_changes(api, seen, report)
    unfinished = describe_unfinished_upgrade(report, *read_unfinished_upgrade(api, namespace, report.key.release))
    report = replace(report, remarks=(*unfinished, *report.remarks))
    report = _add_upgrades(api, seen, report)
    if find_refusers(report):
        refusers = describe_new_refusers(report, read_admission(api), _find_begin(report))
        report = replace(report, remarks=(*refusers, *report.remarks))
    account = find_account(listed(seen.jobs))
    if account:
        missing = find_missing_rights(report, account, read_rights(api, namespace, account))
        report = replace(report, remarks=(*missing, *report.remarks))
    report = _add_deleters(api, report, account)
    if loses_files(report):
        lost = describe_lost_files(report, seen, read_pods(api, namespace))
        report = replace(report, leads=(*lost, *report.leads))
    if needs_policies(report, seen):
        policies = read_policies(api, namespace)
        report = explain_by_policies(report, seen, policies)
        report = replace(report, unknown=(*report.unknown, *list_unknown(policies)))
    report = _add_sharers(api, seen, _add_users(api, seen, report), with_own_claim=True)
    is_running = report.phase == RUNNING and report.outcome is None
    if not (is_running or report.waits_long):
        return report
    logs, gone = read_last_lines(address.place, report)
    is_silent = bool(report.seems_to_hang or report.step_pause)
    # Where no step was ever reported, the program may make steps all the same.
    silent_since = report.progress.at if is_silent and report.progress.step is not None else 0.0
    claims = claims_by_label(report, seen)
    repeated = describe_repeated_warnings(logs, claims, silent_since)
    found_in_logs = describe_short_data(logs) if is_silent else describe_dead_threads(logs, claims)
    report = replace(report, remarks=(*found_in_logs, *describe_lone_tasks(report, logs), *repeated, *report.remarks))
    found = [find_last_line(lines) for lines in logs]
    last_lines = tuple(each.line for each in found if each.line is not None)
    waits = tuple(each.waits for each in found if each.waits is not None)
    busy = tuple(each.busy for each in found if each.busy is not None)
    report = replace(report, waits=waits, busy=busy)
    if not (is_silent or report.waits_long):
        return replace(report, last_lines=last_lines) if report.awaits_first_step else report
    warnings = tuple(find_exceptions(logs))
    return replace(report, last_lines=last_lines, warnings=warnings, log_gaps=(*report.log_gaps, *gone))


def _read_local_report(folder: Path) -> Report:
    from trainchart.local.io.run_report import read_report  # not needed for a release on a cluster

    return read_report(folder)


def _add_users(api: KubernetesApi, seen: Snapshot, report: Report) -> Report:
    """Return the report with the pods of others that hold what pods of the run wait for."""
    namespace = report.key.namespace
    remarks: list[str] = []
    if wants_other_pods(report):
        pods = read_pods(api, namespace)
        report = replace(report, unknown=(*report.unknown, *list_unknown(pods)))
        remarks += [*find_claim_users(report, pods), *find_finished_pods(report, pods), *find_quota_users(report, pods)]
        remarks = [*find_hopeless_quotas(report, (*listed(seen.sets), *listed(seen.jobs))), *remarks]
    if lacks_nodes(report):
        everywhere = read_pods(api, "")  # an ordinary user may not; the others of the namespace are seen then
        remarks += find_node_users(report, everywhere if isinstance(everywhere, tuple) else read_pods(api, namespace))
    return replace(report, remarks=(*remarks, *report.remarks))


def _add_deleters(api: KubernetesApi, report: Report, account: str) -> Report:
    """Return the report with who has evicted its pods, and who may delete them where they are deleted again."""
    namespace = report.key.namespace
    events = [read_events_about(api, namespace, pod) for pod in list_evicted(report)]
    report = replace(report, remarks=(*find_evictors(report, events), *report.remarks))
    if not loses_pods(report):
        return report
    rights, pods = read_rights_of_all(api, namespace), read_pods(api, namespace)
    return replace(report, remarks=(*report.remarks, *find_deleters(report, account, rights, pods)))


def _add_sharers(api: KubernetesApi, seen: Snapshot, report: Report, *, with_own_claim: bool = False) -> Report:
    """Return the report with the releases that write to the same checkpoint folder, where it may be a shared one."""
    if not may_share_folder(seen.pods, with_own=with_own_claim):
        return report
    pods = read_training_pods(api, report.key.namespace)
    claims = list_claims_to_compare(report, seen.pods, pods)
    volumes = read_volumes(api, list_volumes_of(claims, seen.claims))
    storage = find_storage(seen.claims, volumes)
    shared = find_shared_folders(report, seen.pods, sort_by_folder(pods, storage), storage)
    unknown = (*report.unknown, *list_unknown(pods, volumes))
    return replace(report, remarks=(*shared, *report.remarks), unknown=unknown)


def _add_changes(api: KubernetesApi, seen: Snapshot, report: Report) -> Report:
    """Return the report with what others than Helm changed since the run began, about objects beside its pods' sets."""
    namespace, release = report.key.namespace, report.key.release
    maps = read_config_maps(api, namespace, list_config_maps(listed(seen.sets))[:_CONFIG_MAPS_READ])
    began = _find_begin(report)
    changes = [*report.outside_changes, *find_config_changes("ConfigMap", maps, began, release)]
    secrets: tuple[Object, ...] = ()
    if report.is_refused_access or lacks_key(report):
        secrets = read_secrets(api, namespace, list_secrets(listed(seen.sets))[:_CONFIG_MAPS_READ])
        changes += find_config_changes("Secret", secrets, began, release)
    for kind, objects in {"Job": seen.jobs, **read_network_objects(api, namespace, release)}.items():
        changes += find_object_changes(kind, listed(objects), began, release)
    keys = describe_keys(report, {"Secret": secrets, "ConfigMap": maps})
    by_time = tuple(sorted(changes, key=lambda change: change.at))
    return replace(report, outside_changes=by_time, remarks=(*keys, *report.remarks))


def _add_upgrades(api: KubernetesApi, seen: Snapshot, report: Report) -> Report:
    """Return the report of a run in trouble with what upgrades of its release changed, or which image it had before."""
    failed_at = report.outcome.at if report.outcome is not None and report.outcome.result == FAILED else math.inf
    is_slow = report.slowdown or report.step_pause or report.seems_to_hang
    is_dying = any(each.at > report.progress.at for each in report.incidents)
    if not (failed_at < math.inf or is_slow or report.problems or is_dying):
        return report
    revisions = read_revisions(api, report.key.namespace, report.key.release)
    upgrades = find_upgrades(revisions, _find_begin(report), failed_at)
    if isinstance(revisions, Unreadable):
        remarks = describe_unread_upgrade(report, listed(seen.sets), revisions, _find_begin(report), failed_at)
        return replace(report, remarks=(*report.remarks, *remarks))
    if upgrades or all(each.cause != IMAGE_PULL.name for each in report.problems):
        return replace(report, upgrades=upgrades)
    earlier = describe_earlier_image(report, listed(seen.sets), revisions)
    return replace(report, remarks=(*earlier, *report.remarks))


def _find_begin(report: Report) -> float:
    return report.history[0].at if report.history else report.since


def _look(api: KubernetesApi, namespace: str, name: str) -> Report:
    """Return the report of a training, with its place in the queue, and the releases that share its checkpoints."""
    key, seen = read_training(api, namespace, name)
    return _add_sharers(api, seen, add_standing(api, seen, diagnose(key, seen)))


def watch_report(look: Look) -> Iterator[Report]:
    """Yield a report every two seconds, until the run is over."""
    while True:
        report = look()
        yield report
        if report.is_over:
            return
        time.sleep(WATCH_SECONDS)
