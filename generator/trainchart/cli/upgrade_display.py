"""What `trainchart upgrade` prints: each kind of change once, the next versions, and the effect on releases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainchart.actions.upgrade import Upgrade
    from trainchart.compare.chart import ChartChanges
    from trainchart.compare.fleet import FleetChange
    from trainchart.compare.live import Loss, Prediction

_LINES_SHOWN = 12
_NAMES_SHOWN = 6
_WIDTH = 110
_DEFERRED = "the command below defers it to the next attempt"


def describe_upgrade(found: Upgrade, releases: Sequence[Prediction] | None) -> dict[str, Any]:
    """Return the upgrade as JSON; `releases` is None if the cluster was not read."""
    told: dict[str, Any] = {
        "new": list(found.new),
        "unchanged": list(found.unchanged),
        "charts": [_describe_chart(found, name, changes) for name, changes in sorted(found.changes.items())],
        "changes": [
            {
                "text": group.change.text,
                "effect": group.change.effect.text,
                "bump": group.change.bump.name,
                "lines": list(group.change.lines),
                "charts": list(group.charts),
            }
            for group in found.groups
        ],
    }
    if releases is not None:
        told["releases"] = [_describe_release(each) for each in releases]
    return told


def _describe_chart(found: Upgrade, name: str, changes: ChartChanges) -> dict[str, str]:
    from trainchart.compare.version import next_version

    return {
        "name": name,
        "bump": changes.bump.name,
        "effect": changes.effect_text,
        "oldVersion": changes.old_version,
        "nextVersion": next_version(changes.old_version, changes.bump),
        "version": found.charts[name].version,
    }


def _describe_release(each: Prediction) -> dict[str, Any]:
    return {
        "namespace": each.key.namespace,
        "release": each.key.release,
        "model": each.key.chart,
        "chart": each.chart,
        "phase": each.phase,
        "effect": each.outcome.text,
        "atMostLost": _describe_loss(each.loss) if each.loss else None,
        "isLeftForNextAttempt": each.is_deferred,
        "reason": each.reason,
        "hint": each.hint,
        "command": each.command or None,
        "objects": [
            {"kind": change.kind, "name": change.name, "change": change.fate.value, "effect": change.effect.text}
            for change in each.objects
        ],
    }


def _describe_loss(loss: Loss) -> dict[str, float | None]:
    return {"seconds": loss.seconds, "gpus": loss.gpus, "gpuHours": loss.gpu_hours, "pods": loss.pods}


def upgrade_lines(found: Upgrade, releases: Sequence[Prediction] | None) -> Iterator[str]:
    """Yield the upgrade in lines for people; `releases` is None if the cluster was not read."""
    changed = sorted(found.changes)
    for group in found.groups:
        yield from _group_lines(group, changed)
    if found.groups:
        yield ""
    for name in changed:
        for reason in (found.changes[name].not_compared or {}).values():
            yield f"{name}: objects not compared, because the current chart does not render: {' '.join(reason.split())}"
    worst_first = sorted(found.changes.values(), key=lambda changes: changes.effect, reverse=True)
    for text in dict.fromkeys(changes.effect_text for changes in worst_first):
        names = [name for name in changed if found.changes[name].effect_text == text]
        yield f"upgrade of a release: {text}: {_name_charts(names, changed)}"
    for bump in sorted({changes.bump for changes in found.changes.values()}, reverse=True):
        names = [name for name in changed if found.changes[name].bump is bump]
        yield f"next version: {bump.name}: {_name_charts(names, changed)}"
    for spec, name in sorted((str(each.located.spec), name) for name, each in found.prepared.items()):
        if found.prepared[name].located.spec in found.specs:
            yield f"{spec}: version: {found.changes[name].old_version} → {found.charts[name].version}"
    if found.new:
        yield f"new: {_name_charts(found.new, ())}"
    yield f"{len(changed)} changed, {len(found.new)} new, {len(found.unchanged)} up to date"
    if releases is not None:
        yield from _release_lines(releases)


def _release_lines(releases: Sequence[Prediction]) -> Iterator[str]:
    from trainchart.compare.live import DEFERRING, summarize
    from trainchart.reports.text import make_table

    yield ""
    if releases:
        headings = ("WHERE", "RELEASE", "CHART", "PHASE", "EFFECT OF AN UPGRADE", "REMARK")
        yield from make_table(headings, [_release_row(each) for each in releases])
        yield ""
    yield summarize(releases)
    commands = [each.command for each in releases if each.command]
    if commands:
        yield ""
        yield "to upgrade the releases:"
        yield from (f"  {command}" for command in commands)
    if any(each.is_deferred for each in releases):
        yield f"without --set {DEFERRING}, the training restarts at once from its last checkpoint"


def _release_row(each: Prediction) -> tuple[str, ...]:
    remarks = [each.reason, each.hint, _DEFERRED if each.is_deferred else ""]
    effect = each.outcome.text
    if each.loss is not None:
        effect += f", loses {'up to ' * bool(each.loss.seconds)}{each.loss.text}"
    remark = "; ".join(" ".join(remark.split()) for remark in remarks if remark)
    return each.key.namespace, each.key.release, each.chart, each.phase, effect, remark or "-"


def _group_lines(group: FleetChange, changed: Sequence[str]) -> Iterator[str]:
    change = group.change
    label = f"{change.bump.name}: " if change.bump else f"{change.effect.text}: "
    yield f"{label}{_shorten(change.text)}   [{_name_charts(group.charts, changed)}]"
    yield from (f"    {_shorten(line)}" for line in change.lines[:_LINES_SHOWN])
    if len(change.lines) > _LINES_SHOWN:
        yield f"    … and {len(change.lines) - _LINES_SHOWN} more lines (--format json shows all)"


def _name_charts(names: Sequence[str], of: Sequence[str]) -> str:
    if len(names) == len(of) > 1:
        return f"all {len(names)} charts"
    shown = ", ".join(names[:_NAMES_SHOWN])
    return f"{shown} and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else shown


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"
