"""The command `trainchart list`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunsOption
from trainchart.cli.output import Format, FormatOption, find_width, print_json, print_line, print_note

_EXAMPLES = """
Examples:

  trainchart list                 the local runs, and the runs in the kubeconfig's namespace

  trainchart list -A              who holds GPUs in the whole cluster, since when, doing what
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart list` to `app`."""
    app.command("list", epilog=_EXAMPLES)(_list)


def _list(
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look in every namespace.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    output: FormatOption = Format.text,
) -> None:
    """List the local runs and the training runs of a cluster: their state, since when, and the GPUs that they hold.

    The cluster is left out if no kubeconfig names one and none of --all-namespaces, --namespace and --context is given;
    the local runs are left out with --namespace or --context. Runs that hold the most GPUs come first. Local runs have
    their own table: how far each got, its last loss and quality metric, and what was set with --set or a values
    file. A question mark means that the value is not known.
    """
    from trainchart.actions.list import list_reports
    from trainchart.actions.support.cluster_access import Place
    from trainchart.cluster.io.kubeconfig import is_configured
    from trainchart.reports.list_table import list_lines, sort_key
    from trainchart.reports.local_table import local_lines
    from trainchart.reports.report import LOCAL
    from trainchart.reports.report_json import describe_report

    reports = list_reports(Place(context, namespace), runs_folder, print_note, everywhere=everywhere)
    reports.sort(key=lambda report: (-sum((report.gpus or {}).values()), report.origin == LOCAL, sort_key(report)))
    if output is Format.json:
        print_json([describe_report(report) for report in reports])
    elif not reports:
        elsewhere = " or in this namespace; -A looks everywhere" if is_configured(os.environ) else ""
        print_note("no runs" if everywhere else f"no runs in {runs_folder}{elsewhere}")
    else:
        local = [report for report in reports if report.origin == LOCAL]
        of_cluster = [report for report in reports if report.origin != LOCAL]
        tables = [list_lines(of_cluster)] if of_cluster else []
        tables += [local_lines(local, find_width())] if local else []
        print_line("\n\n".join("\n".join(lines) for lines in tables))
