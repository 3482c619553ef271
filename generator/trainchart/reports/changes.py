"""Describes what upgrades of a release changed, and others outside Helm, and how to undo it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainchart.reports.hints import fill_in, start_again
from trainchart.reports.report import OutsideChange, Report
from trainchart.reports.text import describe_time
from trainchart.reports.upgrade import Upgrade
from trainchart_runtime.pod_causes import CONFIG_MISSING
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.problems import BY_SET
from trainchart_runtime.run.state import Verdict
from trainchart_runtime.running_causes import NOT_A_NUMBER
from trainchart_runtime.start_words import find_keyless

_SHOWN = 8
_DROPPED_SHOWN = 4
_UNDO = (
    "The pod differed from the release, see above. If that was not intended: helm rollback RELEASE REVISION, with the "
    "newest revision of helm history RELEASE, restores it (Helm 4: with --force-conflicts)."
)
_UNDO_CHANGES = (
    "if changes to the release's own objects were not intended, helm rollback RELEASE REVISION, with the newest "
    "revision of helm history RELEASE, restores these objects (Helm 4: with --force-conflicts), except for fields that "
    "the chart does not set: these stay until kubectl edit removes them. What starts later may differ from what "
    "started before."
)
_NO_ROLLBACK = "The chart does not set these fields, so helm rollback leaves them unchanged."
_NOT_OF_RELEASE = "helm rollback restores only objects of the release."
_CHANGED_FILES = (
    "Files from ConfigMaps were changed during the run, see above: pods that start later get other files than those "
    "from before{}. If the change was not intended: {} If it was intended: start a new run, from the beginning if the "
    "checkpoints do not fit."
)
_UNDO_FILES = (
    "helm rollback RELEASE REVISION, with the newest revision of helm history RELEASE, restores what belongs to the "
    "release (Helm 4: with --force-conflicts)."
)
_ROTATED = (
    "A Secret was changed during the run, see above. In variables (env, envFrom), containers from before the change "
    "keep the old value as long as they live, even if the launcher restarts the program in them."
)
_SPOILED = (
    ". Checkpoints saved since that upgrade may hold NaN, too: trainchart checkpoints list {0} shows their steps. To "
    "go back to an earlier one: trainchart stop {0}, then trainchart rerun {0} --resume STEP"
)


def lacks_key(report: Report) -> bool:
    """Return whether a pod of a run waits for a key of a Secret or ConfigMap."""
    return any(each.cause == CONFIG_MISSING.name and find_keyless(each.message) for each in report.problems)


def change_lines(report: Report) -> Iterator[str]:
    """Yield what was changed, and of a run that goes on, what to do about it."""
    changes = report.outside_changes
    if not changes:
        return
    yield ""
    yield "What was changed outside Helm:"
    for change in changes[:_SHOWN]:
        owner = "" if change.is_of_release else " (not part of the release)"
        yield f"  {describe_time(change.at)}  {change.subject}{owner}, by {change.by}: {list_names(change.fields)}"
    if report.outcome is not None:
        return
    if any(change.kind == "Secret" for change in changes) and not lacks_key(report):
        yield f"  next: {_ROTATED} If the new value is right: {start_again(report.address)}"
        return
    own = [change for change in changes if change.is_of_release]
    foreign = [change for change in changes if not change.is_of_release]
    if own and all(change.outlives_rollback for change in own):
        names = dict.fromkeys(f"{change.kind.lower()} {change.name}" for change in own)
        edits = [f"kubectl edit {name} -n {report.key.namespace}" for name in names]
        yield f"  next: if that was not intended, undo it: {list_names(edits)}. {_NO_ROLLBACK}"
    elif own:
        yield f"  next: {fill_in(_UNDO_CHANGES, report.address)}"
    if foreign:
        yield f"  next: if the change was not intended, {_restore(foreign)}"


def upgrade_lines(report: Report) -> Iterator[str]:
    """Yield what each upgrade changed, oldest first, and what undoes them."""
    if not report.upgrades:
        return
    yield ""
    yield "What upgrades of the release changed:"
    for upgrade in report.upgrades:
        source = f" ({upgrade.source})" if upgrade.source else ""
        yield f"  {describe_time(upgrade.at)}  revision {upgrade.revision}{source}"
        yield from (f"    {change}" for change in upgrade.changes[:_SHOWN])
        if len(upgrade.changes) > _SHOWN:
            yield f"    and {len(upgrade.changes) - _SHOWN} more"
        yield from _describe_dropped(upgrade)
    last, again = report.upgrades[-1], f", then trainchart rerun {report.address}" if report.is_over else ""
    if last.newest > last.revision:
        yield f"  Revision {last.newest} is installed now: it came after the failure."
    elif can_be_undone(report.upgrades):
        rollback = f"helm rollback {report.key.release} {last.before} -n {report.key.namespace}"
        spoiled = any(each.cause == NOT_A_NUMBER.name for each in report.problems)
        more = _SPOILED.format(report.address) if spoiled else ""
        yield f"  next: if the last of them is the cause, undo it: {rollback}{again}{more}"


def can_be_undone(upgrades: Sequence[Upgrade]) -> bool:
    """Say whether the last of these upgrades is still in effect, and is no rollback itself."""
    return bool(upgrades) and upgrades[-1].newest <= upgrades[-1].revision and not upgrades[-1].source


def _describe_dropped(upgrade: Upgrade) -> Iterator[str]:
    names, number = upgrade.dropped[:_DROPPED_SHOWN], len(upgrade.dropped)
    more = f" and {number - _DROPPED_SHOWN} more" if number > _DROPPED_SHOWN else ""
    if names:
        subject = "value was" if number == 1 else "values were"
        yield (
            f"    {number} {subject} not given again, so the chart's defaults apply: {', '.join(names)}{more}. "
            "Without --reuse-values, helm upgrade uses only the values that it is given (-f, --set)"
        )


def advise_on_changes(report: Report, outcome: Verdict, hint: str) -> str:
    """Return what to do about the changes before the end of a run that may explain it, in front of its hint."""
    files = [change for change in report.outside_changes if change.kind == "ConfigMap"]
    if files:
        foreign = [change for change in files if not change.is_of_release]
        cures = [_UNDO_FILES] if len(foreign) < len(files) else []
        cures += [_restore(foreign)] if foreign else []
        last = max(change.at for change in files)
        later = sorted({each.pod for each in report.incidents if each.action == BY_SET and each.at > last})
        recreated = f" (recreated since then: {list_names(later)})" if later else ""
        hint = f"{fill_in(_CHANGED_FILES.format(recreated, ' Also, '.join(cures)), report.address)} Otherwise: {hint}"
    if any(change.kind == "Secret" for change in report.outside_changes):
        hint = f"{_ROTATED} A rerun gives all pods the new value. If the program is refused again: {hint}"
    if outcome.pod.rpartition("-")[0] in {change.name for change in report.outside_changes}:
        hint = f"{fill_in(_UNDO, report.address)} Otherwise: {hint}"
    return hint


def _restore(changes: Sequence[OutsideChange]) -> str:
    """Return who has to restore objects that do not belong to the release."""
    names = list(dict.fromkeys(change.subject for change in changes))
    return f"have the owner of {list_names(names)} apply the earlier version again (kubectl apply). {_NOT_OF_RELEASE}"
