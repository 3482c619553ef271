"""The command `trainchart why`."""

from __future__ import annotations

import typer

from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunArgument, RunsOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line


def register(app: typer.Typer) -> None:
    """Add `trainchart why` to `app`."""
    app.command("why")(_why)


def _why(
    release: RunArgument = "",
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    output: FormatOption = Format.text,
) -> None:
    """Explain a run, here or on a cluster: what failed first, where, what was done, and what to do next.

    Works as long as the folder of a local run exists or the release is installed, even when its pods are long gone.

    Example: trainchart why exp-7 -n team-a
    """
    from trainchart.actions.status import explain_run
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.run_lookup import RunAddress
    from trainchart.reports.report_json import describe_report
    from trainchart.reports.why import why_lines

    report = explain_run(RunAddress(release, Place(context, namespace), runs_folder))
    if output is Format.json:
        print_json(describe_report(report))
    else:
        print_line("\n".join(why_lines(report)))
