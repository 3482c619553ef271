"""The command `trainchart status`: one page about a release, once or again and again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json
from trainchart.cli.place import ContextOption, NamespaceOption, ReleaseArgument

if TYPE_CHECKING:
    from trainchart.reports.report import Report

_EXAMPLES = """
Examples:

  trainchart status exp-7

  trainchart status exp-7 -n team-a --watch       until the run is over
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart status` to `app`."""
    app.command("status", epilog=_EXAMPLES)(_status)


def _status(
    release: ReleaseArgument,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again until the run is over.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: FormatOption = Format.text,
) -> None:
    """Show what a release on a cluster does: phase, attempt, step, roles, pods with age and node, problems.

    Reads the run controller's record; without one, the pods themselves. With --watch, JSON is one document a line.
    """
    from trainchart.actions.cluster_access import Place
    from trainchart.actions.release_report import read_report, watch_report
    from trainchart.reports.report import describe_report
    from trainchart.reports.text import status_lines

    place = Place(context, namespace)
    if watch:
        _show(watch_report(place, release), output)
    elif output is Format.json:
        print_json(describe_report(read_report(place, release)))
    else:
        print("\n".join(status_lines(read_report(place, release))))


def _show(reports: Iterator[Report], output: Format) -> None:
    from trainchart.reports.report import describe_report
    from trainchart.reports.text import status_lines

    if output is Format.json:
        for report in reports:
            print(json.dumps(describe_report(report), ensure_ascii=False), flush=True)
    elif sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        _redraw(reports)
    else:
        for report in reports:
            print("\n".join([*status_lines(report), "---"]), flush=True)


def _redraw(reports: Iterator[Report]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from trainchart.reports.text import status_lines

    with Live(console=Console(), auto_refresh=False, vertical_overflow="crop") as live:
        for report in reports:
            live.update(Text("\n".join(status_lines(report))), refresh=True)
