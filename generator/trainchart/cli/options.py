"""The options that say which run a command means, and which cluster and namespace it looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli import complete

ContextOption = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig. Default: its current one. KUBECONFIG is honoured.")
]
NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace to look in. Default: the context's.")
]
DEFAULT_RUNS_FOLDER = Path(".trainchart/runs")


def start_from_project(context: typer.Context, option: typer.CallbackParam, folder: Path) -> Path:
    """Return a folder as given; a default lies in the project, also where that is a folder above."""
    from trainchart.actions.support.project import find_project

    return find_project().folder / folder if _is_default(context, option) else folder


def find_charts(context: typer.Context, option: typer.CallbackParam, folder: Path) -> Path:
    """Return the folder of the charts as given; the default is the project's."""
    from trainchart.actions.support.project import find_project

    return find_project().charts if _is_default(context, option) else folder


def _is_default(context: typer.Context, option: typer.CallbackParam) -> bool:
    source = context.get_parameter_source(option.name or "")
    return source is not None and source.name == "DEFAULT"


RunsOption = Annotated[
    Path,
    typer.Option(
        "--runs-dir",
        help="Folder of the local runs. The default is in the project.",
        callback=start_from_project,
    ),
]
ColorOption = Annotated[
    bool,
    typer.Option(
        "--color/--no-color",
        help="Use colours on a terminal. NO_COLOR in the environment also turns them off.",
    ),
]
RunArgument = Annotated[
    str,
    typer.Argument(
        help="Name of the run or release. Default: the local run that was started last. RELEASE/CHART if a release "
        "holds several training runs.",
        show_default=False,
        autocompletion=complete.runs,
    ),
]
ReleaseArgument = Annotated[
    str,
    typer.Argument(
        help="Name of the release; RELEASE/CHART if it holds several training runs. `stop` also takes a local run.",
        show_default=False,
        autocompletion=complete.runs,
    ),
]
