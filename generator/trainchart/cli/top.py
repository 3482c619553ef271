"""The command `trainchart top`."""

from __future__ import annotations

from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import ContextOption, NamespaceOption
from trainchart.cli.output import Format, FormatOption, print_json, print_lines, print_note

_EXAMPLES = """
Examples:

  trainchart top                  all training pods in the kubeconfig's namespace

  trainchart top exp-7 exp-8      those of two releases

  trainchart top -A               all namespaces: who holds GPUs and leaves them idle
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart top` to `app`."""
    app.command("top", epilog=_EXAMPLES)(_top)


def _top(
    releases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RELEASE]...",
            help="Names of releases; RELEASE/CHART if one holds several training runs. Default: all.",
            show_default=False,
            autocompletion=complete.releases,
        ),
    ] = None,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Look in every namespace.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: FormatOption = Format.text,
) -> None:
    """Show the CPU, memory and GPUs that training pods use, next to what they request and hold.

    CPU and memory come from the cluster's metrics API. That API does not report GPUs, and some clusters do not have it:
    then each pod's launcher reports its container's usage, which requires the rights get and create on
    pods/portforward. CPU is in cores. GPU-USE shows the utilization and memory (used/total) of each GPU; it needs
    nvidia-ml-py in the training image. A dash means that a value is not known; notes below the table say where the
    values come from, and why some are missing.
    """
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.top import read_top
    from trainchart.reports.pod_use import describe_top, top_lines

    report = read_top(Place(context, namespace), releases or (), everywhere=everywhere)
    if output is Format.json:
        print_json(describe_top(report))
    elif not report.pods:
        for note in report.notes:
            print_note(f"note: {note}")
        if not report.notes:
            print_note("no training pods" if everywhere or releases else "no training pods here; try -A")
    else:
        print_lines(top_lines(report, with_namespace=everywhere))
