"""The command `trainchart notebook`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import ContextOption, NamespaceOption
from trainchart.cli.output import Format, FormatOption, flush_output, print_json, print_line, print_note
from trainchart.cli.signals import end_in_order
from trainchart.cli.tensorboard import BrowserOption, KeepOption
from trainchart.errors import UsageError

if TYPE_CHECKING:
    from trainchart.actions.support.run_viewer import Viewer

_PORT = 8888
_EXAMPLES = """
Examples:

  trainchart notebook exp-7 --image registry.example.com/ml/mnist-notebook:1.0.0

  trainchart notebook exp-7 exp-8 -n team-a --set gpus=1 --set notebooksClaim=my-notebooks
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart notebook` to `app`."""
    app.command("notebook", epilog=_EXAMPLES)(_notebook)


def _notebook(
    releases: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RELEASE]...",
            help="Names of releases; RELEASE/CHART if one holds several training runs.",
            show_default=False,
            autocompletion=complete.releases,
        ),
    ] = None,
    shows_all: Annotated[bool, typer.Option("--all", help="All releases of the namespace.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    image: Annotated[
        str,
        typer.Option(
            help="Image built with training-images/notebook/Dockerfile. Default: the one that a pack sets.",
            show_default=False,
        ),
    ] = "",
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE of a chart of the family notebook; repeatable."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine. 0: any free port.")] = _PORT,
    browser: BrowserOption = True,
    keep: KeepOption = False,
    output: FormatOption = Format.text,
) -> None:
    """Open JupyterLab and TensorBoard on the cluster, over the checkpoints and logs of releases.

    Installs a release of the family notebook, which mounts the volumes of those releases read-only at /runs/RELEASE;
    --set runs.RELEASE.writable=true lets notebooks write. The command creates a token and prints it. Notebooks are kept
    in notebooksClaim; without it, they are lost with the pod. Ctrl-C uninstalls the release, and everything that runs
    in it ends.
    """
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.run_viewer import ViewerRequest, show_volumes

    if not releases and not shows_all:
        raise UsageError("name the releases, or give --all", hint="see: trainchart list")
    if releases and shows_all:
        raise UsageError("name releases, or give --all, but not both")
    end_in_order()

    def show(viewer: Viewer) -> None:
        tensorboard = f"{viewer.base}/tensorboard/"
        if output is Format.json:
            print_json({"url": viewer.url, "tensorboard": tensorboard, "token": viewer.token})
        else:
            print_line(f"JupyterLab is at {viewer.url}, and TensorBoard at {tensorboard}; Ctrl-C ends them")
            print_line(f"Token: {viewer.token}")
        flush_output()
        if viewer.note:
            print_note(viewer.note)

    request = ViewerRequest(
        *("notebook", Place(context, namespace), releases or (), image, sets or (), port),
        has_jupyter=True,
        keeps=keep,
        opens_browser=browser,
    )
    show_volumes(request, print_note, show)
