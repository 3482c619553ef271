"""The command `trainchart wait`: 0 when the run has succeeded, 10 when it failed or was stopped, 11 when time is up."""

from __future__ import annotations

from typing import Annotated

import typer

from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunArgument, RunsOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.errors import TrainingFailed

_EXAMPLES = """
Examples:

  trainchart wait exp-7 -n team-a

  trainchart wait exp-7 --timeout 2h
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart wait` to `app`."""
    app.command("wait", epilog=_EXAMPLES)(_wait)


def _wait(
    release: RunArgument = "",
    timeout: Annotated[
        str, typer.Option(help="Give up after this time: 90 (seconds), 30m, 1h30m. Default: never.")
    ] = "",
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    output: FormatOption = Format.text,
) -> None:
    """Wait until a run is over, here or on a cluster. Exit code 0: it succeeded; 10: failed or stopped; 11: timed out.

    Progress goes to stderr. The wait continues if the API server is unreachable for some minutes.
    """
    from trainchart.actions.status import open_run
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.run_lookup import RunAddress
    from trainchart.actions.wait import wait_for_end
    from trainchart.durations import parse_duration
    from trainchart.reports.report_json import describe_report
    from trainchart.reports.text import headline
    from trainchart_runtime.run.state import SUCCEEDED

    try:
        seconds = parse_duration(timeout) if timeout else None
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--timeout") from error
    look = open_run(RunAddress(release, Place(context, namespace), runs_folder))
    report = wait_for_end(look, seconds, print_note)
    if output is Format.json:
        print_json(describe_report(report))
    else:
        print_line(headline(report))
    if report.phase != SUCCEEDED:
        outcome = report.outcome
        cause = outcome.cause if outcome and outcome.cause != report.phase.lower() else ""
        parts = (", ".join(filter(None, (cause, outcome.pod))), outcome.error or outcome.sentence) if outcome else ()
        raise TrainingFailed(
            ": ".join(filter(None, (report.key.release, report.phase, *parts))),
            hint=f"see: trainchart why {report.address}",
        )
