"""The command `trainchart status`: one page about a run, once or again and again."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunArgument, RunsOption
from trainchart.cli.output import Format, FormatOption, dump_json, print_json, print_line

if TYPE_CHECKING:
    from trainchart.reports.report import Report

_EXAMPLES = """
Examples:

  trainchart status                               the local run that was started last

  trainchart status exp-7

  trainchart status exp-7 -n team-a --watch       until the run is over
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart status` to `app`."""
    app.command("status", epilog=_EXAMPLES)(_status)


def _status(
    release: RunArgument = "",
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Update the report until the run is over.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    output: FormatOption = Format.text,
) -> None:
    """Show the state of a run, here or on a cluster: phase, attempt, step, roles, pods with age and node, problems.

    A local run takes precedence; --namespace or --context always means a release on the cluster. The command reads the
    run controller's record or, without one, the pods. With --watch, JSON output is one document per line.
    """
    from trainchart.actions.status import open_run, watch_report
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.run_lookup import RunAddress
    from trainchart.reports.report_json import describe_report
    from trainchart.reports.text import status_lines

    look = open_run(RunAddress(release, Place(context, namespace), runs_folder))
    if watch:
        _show(watch_report(look), output)
    elif output is Format.json:
        print_json(describe_report(look()))
    else:
        print_line("\n".join(status_lines(look())))


def _show(reports: Iterator[Report], output: Format) -> None:
    from trainchart.reports.report_json import describe_report
    from trainchart.reports.text import status_lines

    if output is Format.json:
        for report in reports:
            print_line(dump_json(describe_report(report), indent=None), flush=True)
    elif sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        _redraw(reports)
    else:
        for report in reports:
            print_line("\n".join([*status_lines(report), "---"]), flush=True)


def _redraw(reports: Iterator[Report]) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from trainchart.reports.text import status_lines

    with Live(console=Console(), auto_refresh=False, vertical_overflow="crop") as live:
        for report in reports:
            live.update(Text("\n".join(status_lines(report))), refresh=True)
