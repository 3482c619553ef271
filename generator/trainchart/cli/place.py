"""The options that say which run a command means, and which cluster and namespace it looks at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ContextOption = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig. Default: its current one. KUBECONFIG is honoured.")
]
NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of the release. Default: the context's.")
]
DEFAULT_RUNS_FOLDER = Path(".trainchart/runs")
RunsOption = Annotated[Path, typer.Option("--runs-dir", help="Folder that keeps the local runs.")]
RunArgument = Annotated[
    str,
    typer.Argument(
        help="Name of the run or release. Default: the local run that was started last. "
        "RELEASE/CHART where a release holds several trainings.",
        show_default=False,
    ),
]
ReleaseArgument = Annotated[
    str, typer.Argument(help="Name of the release; RELEASE/CHART where it holds several trainings.", show_default=False)
]
