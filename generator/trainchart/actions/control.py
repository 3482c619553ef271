"""The use cases `trainchart suspend`, `resume`, `stop` and `rerun`: a value changed, with the chart that Helm keeps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainchart.actions.support.cluster_access import open_cluster
from trainchart.actions.support.installed import read_installed
from trainchart.actions.support.kept_upgrade import upgrade_and_keep
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.cluster.control import LATEST, Change, Verb, decide_change
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.gitops import find_gitops_owner
from trainchart.cluster.io.releases import read_training
from trainchart.cluster.outside_changes import lay_over
from trainchart.cluster.snapshot import Object, listed, name_of
from trainchart.errors import Conflict, ToolError, UsageError
from trainchart.helm.io.upgrade import HelmUpgrade
from trainchart.helm.rendering import ReleaseTexts
from trainchart.kubernetes_yaml import YamlError, dump_mapping, parse_objects
from trainchart.local.io.release_lock import ask_to_stop
from trainchart.local.io.run_report import read_report
from trainchart.reports.report import Report
from trainchart.spec.values import RESUME_PATTERN
from trainchart_runtime.run.state import STOPPING


@dataclass(frozen=True)
class Controlled:
    """What was done about a release."""

    report: Report
    """As it was found."""
    change: Change
    is_changed: bool
    kept: tuple[str, ...] = ()
    """What a post-renderer, or another program, had changed in the release's objects, and what was kept."""
    note: str = ""
    """What will undo the change, and what to do about that."""


def control_run(address: RunAddress, verb: Verb, resume: str = LATEST) -> Controlled:
    """Change what a release's values ask its run controller for; stop a local run.

    Args:
        address: the run.
        verb: what is asked for.
        resume: how a new run begins, where that is asked for: "never", "latest" or a step.

    Raises:
        Conflict: the run's state, the chart, a post-renderer or another helm command forbids it; nothing is changed.
        NotFound: Helm does not know the release.
        ToolError: a local run cannot be stopped, or helm is missing or fails.
        UsageError: the verb works on releases only, and this is a local run; or `resume` is none of these.
    """
    if not re.fullmatch(RESUME_PATTERN, resume):
        raise UsageError(f"--resume: expected never, latest or the number of a step, got {resume!r:.40}")
    folder = find_local_run(address)
    if folder is not None:
        return _control_local(folder, verb)
    api, namespace = open_cluster(address.place)
    key, seen = read_training(api, namespace, address.name)
    report, owner = diagnose(key, seen), find_gitops_owner(listed(seen.sets))
    installed = read_installed(api, key.release, key.namespace, owner)
    change = decide_change(verb, report, installed, resume)
    if change.refusal:
        raise Conflict(change.refusal, hint=change.hint)
    if not change.sets:
        return Controlled(report, change, is_changed=False)
    place = address.place
    upgrade = HelmUpgrade(key.release, namespace, place.context, installed.files, kubeconfig=place.kubeconfig)
    wanted = replace(upgrade, sets=change.sets, description=f"trainchart {verb}")
    try:
        has_changes = bool(report.outside_changes)
        stored = _with_changes_by_hand(installed.texts, listed(seen.sets)) if has_changes else installed.texts
        kept = upgrade_and_keep(wanted, upgrade, stored)
    except (YamlError, RecursionError) as error:
        raise ToolError(f"cannot read the objects of {key.release}: {error}") from error
    note = f"{owner.name} will undo this: {owner.advice}" if owner else ""
    return Controlled(report, change, is_changed=True, kept=kept, note=note)


def _with_changes_by_hand(texts: ReleaseTexts, sets: Sequence[Object]) -> ReleaseTexts:
    """Return the release's objects with what others changed about pods: Helm 3 would undo it, and Helm 4 fail."""
    live = {name_of(each): each for each in sets}
    objects = [each.value for each in parse_objects(texts.manifest) if isinstance(each.value, dict)]
    changed = (
        lay_over(each, live[name_of(each)]) if _is_set(each) and name_of(each) in live else each for each in objects
    )
    return replace(texts, manifest="".join(f"---\n{dump_mapping(each)}" for each in changed))


def _is_set(each: Object) -> bool:
    return each.get("kind") == "StatefulSet"


def _local_equivalent(report: Report, verb: Verb) -> str:
    """Return what to do with a local run instead of `verb`."""
    if verb is Verb.suspend:
        return "it has ended and holds no resources" if report.is_over else f"trainchart stop {report.address}"
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
        done = f"the run is already over: {report.phase}"
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
