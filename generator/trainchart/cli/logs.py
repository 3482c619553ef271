"""`trainchart logs`: parse, read the logs of a local run or of a release on a cluster, print them."""

from __future__ import annotations

from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunArgument, RunsOption
from trainchart.cli.output import Format, FormatOption, dump_json, print_line, print_note

_EXAMPLES = """
Examples:

  trainchart logs                                  all lines of the last run

  trainchart logs mnist-3 --role worker --tail 50

  trainchart logs mnist-3 --since-failure          what led to the first failure, and what followed

  trainchart logs exp-7 -n team-a                  a release on a cluster, even after it has ended
"""


def register(app: typer.Typer) -> None:
    app.command("logs", epilog=_EXAMPLES)(_logs)


def _logs(
    release: RunArgument = "",
    role: Annotated[
        str,
        typer.Option(
            help="Show only this role: chief, worker, ps or evaluator.",
            autocompletion=complete.roles,
        ),
    ] = "",
    pod: Annotated[
        str, typer.Option(help="Show only this pod, for example worker-1.", autocompletion=complete.pods)
    ] = "",
    tail: Annotated[int | None, typer.Option(min=0, help="Show only this many of the last lines.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Keep printing until the run ends.")] = False,
    since_failure: Annotated[
        bool, typer.Option("--since-failure", help="Start two seconds before the first failure.")
    ] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Print the lines as the programs wrote them, with their terminal control sequences."
        ),
    ] = False,
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: FormatOption = Format.text,
) -> None:
    """Read the logs of a local run or of a release on a cluster: merged by time, each line prefixed with its pod.

    A local run takes precedence; --namespace or --context always means a release on the cluster. When the pods of a
    release are gone, the lines that the run controller kept are shown.
    """
    from trainchart.actions.logs import read_logs
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.log_filter import LogsFilter
    from trainchart.actions.support.run_lookup import RunAddress
    from trainchart_runtime.log_text import clean

    address = RunAddress(release, Place(context, namespace), runs_folder)
    wanted = LogsFilter(role, pod, tail, follow, since_failure)
    for line in read_logs(address, wanted, print_note):
        if output is Format.json:
            print_line(dump_json({"at": line.at or None, "pod": line.label, "text": line.text}, indent=None))
        elif raw:
            print(f"[{line.label}] {line.text}", flush=follow)
        else:
            print_line(f"[{line.label}] {clean(line.text)}", flush=follow)
