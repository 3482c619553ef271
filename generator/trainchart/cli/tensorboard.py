"""The command `trainchart tensorboard`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunsOption
from trainchart.cli.output import Format, FormatOption, flush_output, print_json, print_line, print_note
from trainchart.cli.signals import end_in_order
from trainchart.errors import UsageError

if TYPE_CHECKING:
    from trainchart.actions.support.run_viewer import Viewer

_PORT = 6006
_EXAMPLES = """
Examples:

  trainchart tensorboard                      the local run that was started last, even while it trains

  trainchart tensorboard --all                all local runs, side by side

  trainchart tensorboard exp-7 exp-8 -n team-a

  trainchart tensorboard --all -n team-a --keep
"""
AllOption = Annotated[bool, typer.Option("--all", help="All local runs; with --namespace, all releases in it.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="On a cluster: KEY=VALUE of a chart of the family notebook; repeatable."),
]
KeepOption = Annotated[
    bool, typer.Option("--keep", help="On a cluster: leave the release installed when this command ends.")
]
BrowserOption = Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")]


def register(app: typer.Typer) -> None:
    """Add `trainchart tensorboard` to `app`."""
    app.command("tensorboard", epilog=_EXAMPLES)(_tensorboard)


def _tensorboard(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN|RELEASE]...",
            help="Local runs or releases; with --namespace or --context, always releases. Default: the local run that "
            "was started last.",
            show_default=False,
            autocompletion=complete.runs,
        ),
    ] = None,
    shows_all: AllOption = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    image: Annotated[
        str,
        typer.Option(
            help="On a cluster: image that contains tensorboard. Default: the training image of the first release.",
            show_default=False,
        ),
    ] = "",
    sets: SetOption = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine. 0: any free port.")] = _PORT,
    browser: BrowserOption = True,
    keep: KeepOption = False,
    output: FormatOption = Format.text,
) -> None:
    """Show any number of runs in one TensorBoard, each under its own name.

    For local runs, it runs on this machine, with the tensorboard package of this Python. For releases, it runs on the
    cluster, in a pod that mounts their volumes read-only: the command installs a release of the family notebook,
    reaches it by port-forward, and uninstalls it when it ends. That needs helm, and the rights to create a Deployment,
    and to get and create pods/portforward. Only this machine can reach it. Ctrl-C stops it.
    """
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.run_viewer import ViewerRequest, show_volumes
    from trainchart.actions.tensorboard import LocalRequest, find_local_runs, show_local

    if runs and shows_all:
        raise UsageError("name runs, or give --all, but not both")
    end_in_order()
    if not (namespace or context):
        found = find_local_runs(LocalRequest(runs or (), runs_folder, shows_all))
        if found is not None:
            if image or sets or keep:
                raise UsageError("--image, --set and --keep are for releases on a cluster")
            show_local(found, port, lambda url: _print_address(url, output), opens_browser=browser)
    elif not (runs or shows_all):
        raise UsageError("name the releases, or give --all", hint="see: trainchart list")
    place = Place(context, namespace)
    request = ViewerRequest(
        *("tensorboard", place, runs or (), image, sets or (), port),
        has_jupyter=False,
        keeps=keep,
        opens_browser=browser,
    )

    def show(viewer: Viewer) -> None:
        _print_address(viewer.url, output)
        if viewer.note:
            print_note(viewer.note)

    show_volumes(request, print_note, show)


def _print_address(url: str, output: Format) -> None:
    if output is Format.json:
        print_json({"url": url})
    else:
        print_line(f"TensorBoard is at {url}; Ctrl-C stops it")
    flush_output()
