"""`trainchart logs`: parse, read the logs of a local run or of a release on a cluster, print them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_note
from trainchart.cli.place import ContextOption, NamespaceOption

if TYPE_CHECKING:
    from trainchart.actions.logs import LogsRequest
    from trainchart.cluster.log_lines import LogLine as ReleaseLine
    from trainchart.local.logs import LogLine

_EXAMPLES = """
Examples:

  trainchart logs                                  everything of the last run

  trainchart logs mnist-3 --role worker --tail 50

  trainchart logs mnist-3 --since-failure          what led to the first failure, and what followed

  trainchart logs exp-7 -n team-a                  a release on a cluster, also after its end
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
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: FormatOption = Format.text,
) -> None:
    """Read the logs of a local run or of a release on a cluster: merged by time, each line with its pod before it.

    With --namespace or --context it is a release; else a local run, unless there is none of that name here and a
    kubeconfig names a cluster. When the pods of a release are gone, the lines that the run controller kept are shown.
    """
    import json

    from trainchart.actions.logs import LogsRequest

    request = LogsRequest(
        runs_folder=runs_folder,
        release=release,
        role=role,
        pod=pod,
        tail=tail,
        follow=follow,
        since_failure=since_failure,
    )
    for line in _read(request, context, namespace):
        if output is Format.json:
            print(json.dumps({"at": line.at or None, "pod": line.label, "text": line.text}, ensure_ascii=False))
        else:
            print(f"[{line.label}] {line.text}", flush=follow)


def _read(request: LogsRequest, context: str, namespace: str) -> Iterator[LogLine] | Iterator[ReleaseLine]:
    from trainchart.actions.logs import has_local_run, read_logs
    from trainchart.cluster.kubeconfig import is_configured

    is_meant = bool(context or namespace)
    is_local = not request.release or has_local_run(request.runs_folder, request.release)
    if not is_meant and (is_local or not is_configured(os.environ)):
        return read_logs(request)
    if not request.release:
        raise typer.BadParameter("name the release", param_hint="RELEASE")

    from trainchart.actions.cluster_access import Place
    from trainchart.actions.release_logs import ReleaseLogsRequest, read_release_logs

    if not is_meant:
        print_note(f"note: no local run {request.release} in {request.runs_folder}; looking on the cluster")
    asked = ReleaseLogsRequest(
        place=Place(context, namespace),
        release=request.release,
        role=request.role,
        pod=request.pod,
        tail=request.tail,
        follow=request.follow,
        since_failure=request.since_failure,
    )
    return read_release_logs(asked, print_note)
