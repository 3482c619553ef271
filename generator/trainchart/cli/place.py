"""The options that say which cluster and namespace a command looks at."""

from __future__ import annotations

from typing import Annotated

import typer

ContextOption = Annotated[
    str, typer.Option("--context", help="Context of the kubeconfig. Default: its current one. KUBECONFIG is honoured.")
]
NamespaceOption = Annotated[
    str, typer.Option("--namespace", "-n", help="Namespace of the release. Default: the context's.")
]
ReleaseArgument = Annotated[
    str, typer.Argument(help="Name of the release; RELEASE/CHART where it holds several trainings.", show_default=False)
]
