"""The command `trainchart upgrade`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli.generate import ChartsOption, ModelsArgument, OverwriteOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.errors import ChecksFailed

if TYPE_CHECKING:
    from trainchart.actions.upgrade import Upgrade
    from trainchart.compare.fleet import FleetChange

_LINES_SHOWN = 12
_MANY = 20
"""Charts whose comparison takes long enough to report progress."""
_NAMES_SHOWN = 6
_WIDTH = 110


def register(app: typer.Typer) -> None:
    """Add `trainchart upgrade` to `app`."""
    app.command("upgrade")(upgrade)


def upgrade(
    models: ModelsArgument = None,
    output: ChartsOption = Path("charts"),
    check: Annotated[
        bool, typer.Option("--check", help="Show what would change, write nothing, and fail (6) if anything would.")
    ] = False,
    overwrite: OverwriteOption = False,
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    format_: FormatOption = Format.text,
) -> None:
    """Generate all charts again after trainchart or a pack has changed, and show each kind of change once.

    Says what an upgrade does to releases of these charts, compared with the charts on disk. Edits by hand are refused
    (6), as by generate.

    Example: trainchart upgrade
    """
    from trainchart.actions.support.project import locate_specs
    from trainchart.actions.upgrade import plan_upgrade, write_upgrade

    specs = locate_specs(tuple(models or ()))
    found = plan_upgrade(specs, output, engine=engine, overwrite=overwrite, report=_report)
    if format_ is Format.json:
        print_json(_describe(found))
    else:
        for line in _lines(found):
            print_line(line)
    if found.is_needed and check:
        raise ChecksFailed("charts are not up to date", hint="run: trainchart upgrade")
    if found.is_needed:
        write_upgrade(specs, output, overwrite=overwrite)
        written = len(found.changes) + len(found.new)
        print_note(f"{written} chart{'s' * (written != 1)} written")


def _report(done: int, total: int) -> None:
    if total >= _MANY and done % (total // 10) == 0:
        print_note(f"compared {done} of {total} charts")


def _describe(found: Upgrade) -> dict[str, object]:
    return {
        "new": list(found.new),
        "unchanged": list(found.unchanged),
        "charts": [
            {"name": name, "bump": changes.bump.name, "effect": changes.effect_text}
            for name, changes in sorted(found.changes.items())
        ],
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


def _lines(found: Upgrade) -> Iterator[str]:
    changed = sorted(found.changes)
    for group in found.groups:
        yield from _group_lines(group, changed)
    if found.groups:
        yield ""
    for name in changed:
        for reason in (found.changes[name].not_compared or {}).values():
            yield f"{name}: objects not compared, because the present chart does not render: {' '.join(reason.split())}"
    worst_first = sorted(found.changes.values(), key=lambda changes: changes.effect, reverse=True)
    for text in dict.fromkeys(changes.effect_text for changes in worst_first):
        names = [name for name in changed if found.changes[name].effect_text == text]
        yield f"upgrade of a release: {text}: {_name_charts(names, changed)}"
    for bump in sorted({changes.bump for changes in found.changes.values()}, reverse=True):
        names = [name for name in changed if found.changes[name].bump is bump]
        yield f"next version: {bump.name}: {_name_charts(names, changed)}"
    if found.new:
        yield f"new: {_name_charts(found.new, ())}"
    yield f"{len(changed)} changed, {len(found.new)} new, {len(found.unchanged)} up to date"


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
