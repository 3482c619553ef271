"""The use cases `trainchart suspend`, `resume`, `stop` and `rerun`: a value changed, with the chart that Helm keeps."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.support.cluster_access import open_cluster
from trainchart.actions.support.installed import read_installed
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.cluster.control import Change, Verb, decide_change
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.io.releases import read_training
from trainchart.errors import Conflict, UsageError
from trainchart.helm.io.upgrade import HelmUpgrade, run_upgrade
from trainchart.local.io.release_lock import ask_to_stop
from trainchart.local.io.run_report import read_report
from trainchart.reports.report import Report
from trainchart_runtime.run.state import STOPPING


@dataclass(frozen=True)
class Controlled:
    """What was done about a release."""

    report: Report
    """As it was found."""
    change: Change
    is_changed: bool


def control_run(address: RunAddress, verb: Verb) -> Controlled:
    """Change what a release's values ask its run controller for; stop a local run.

    Raises:
        Conflict: the run's state, the chart or another helm command forbids it; nothing is changed then.
        NotFound: Helm does not know the release.
        ToolError: a local run cannot be stopped.
        UsageError: the verb works on releases only, and this is a local run.
    """
    folder = find_local_run(address)
    if folder is not None:
        return _control_local(folder, verb)
    api, namespace = open_cluster(address.place)
    report = diagnose(*read_training(api, namespace, address.name))
    installed = read_installed(api, report.key.release, report.key.namespace)
    change = decide_change(verb, report, installed)
    if change.refusal:
        raise Conflict(change.refusal, hint=change.hint)
    if change.sets:
        upgrade = HelmUpgrade(
            release=report.key.release,
            namespace=namespace,
            context=address.place.context,
            files=installed.files,
            sets=change.sets,
            description=f"trainchart {verb}",
        )
        run_upgrade(upgrade)
    return Controlled(report, change, is_changed=bool(change.sets))


def _local_equivalent(report: Report, verb: Verb) -> str:
    """Return what to do with a local run instead of `verb`."""
    if verb is Verb.suspend:
        return "it has ended and holds nothing" if report.is_over else f"trainchart stop {report.address}"
    again = report.resume_command
    if verb is Verb.resume and not report.is_over:
        return "it is running"
    return again if report.is_over else f"trainchart stop {report.address}, then {again}"


def _control_local(folder: Path, verb: Verb) -> Controlled:
    report = read_report(folder)
    if verb is not Verb.stop:
        raise UsageError(
            f"{report.key.release} is a local run, and `{verb}` is for releases on a cluster",
            hint=f"{_local_equivalent(report, verb)}; for a release of that name on a cluster, add --namespace",
        )
    if report.is_over:
        done = f"the run is over already: {report.phase}"
        return Controlled(report, Change(done=done), is_changed=False)
    if report.phase == STOPPING:
        # Asked twice, it would kill its programs before they have saved.
        return Controlled(report, Change(done="its programs were already asked to stop"), is_changed=False)
    ask_to_stop(folder.parent, folder.name)
    return Controlled(
        report,
        Change(done="its programs were asked to stop (SIGTERM); a resumed run continues from what they save"),
        is_changed=True,
    )
