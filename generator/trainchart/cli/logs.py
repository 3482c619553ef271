"""`trainchart logs`: parse, read a local run's logs, print them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.output import Format, FormatOption

_EXAMPLES = """
Examples:

  trainchart logs                                  everything of the last run

  trainchart logs mnist-3 --role worker --tail 50

  trainchart logs mnist-3 --since-failure          what led to the first failure, and what followed
"""


def register(app: typer.Typer) -> None:
    app.command("logs", epilog=_EXAMPLES)(_logs)


def _logs(
    release: Annotated[str, typer.Argument(help="Name of the run. Default: the one that started last.")] = "",
    role: Annotated[str, typer.Option(help="Only this role: chief, worker, ps or evaluator.")] = "",
    pod: Annotated[str, typer.Option(help="Only this pod, for example worker-1.")] = "",
    tail: Annotated[int | None, typer.Option(min=0, help="Only the last lines, so many of them.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the run ends.")] = False,
    since_failure: Annotated[
        bool, typer.Option("--since-failure", help="Start two seconds before the first failure.")
    ] = False,
    runs_folder: Annotated[Path, typer.Option("--runs-dir", help="Folder that keeps the runs.")] = Path(
        ".trainchart/runs"
    ),
    output: FormatOption = Format.text,
) -> None:
    """Read the logs of a local run, also while it runs: merged by time, each line with its pod before it."""
    import json

    from trainchart.actions.logs import LogsRequest, read_logs

    request = LogsRequest(
        runs_folder=runs_folder,
        release=release,
        role=role,
        pod=pod,
        tail=tail,
        follow=follow,
        since_failure=since_failure,
    )
    for line in read_logs(request):
        if output is Format.json:
            print(json.dumps({"at": line.at, "pod": line.label, "text": line.text}, ensure_ascii=False))
        else:
            print(f"[{line.label}] {line.text}", flush=follow)
