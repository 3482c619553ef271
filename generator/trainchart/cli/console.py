"""The command `trainchart console`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunsOption
from trainchart.cli.output import print_note

_EXAMPLES = """
Examples:

  trainchart console                      the local runs, and the runs in the kubeconfig's namespace

  trainchart console -A --no-browser      the runs of the whole cluster; open the address yourself
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart console` to `app`."""
    app.command("console", epilog=_EXAMPLES)(_console)


def _console(
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Show every namespace.")] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    host: Annotated[str, typer.Option(help="Address of this machine to listen on; loopback only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on. 0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Show runs on a web page, as they go on: the local ones, and those of a cluster that `trainchart list` shows.

    The page is for the user of this machine who knows the code that is printed. It shows what the kubeconfig's user
    may see, can stop, suspend, resume and rerun, and installs and uninstalls releases by a form. It needs the extra:
    pip install 'trainchart[console]'.
    """
    from trainchart.actions.console import Scope, open_console
    from trainchart.actions.support.cluster_access import Place
    from trainchart.cluster.io.kubeconfig import is_configured

    is_named = bool(context or namespace)
    scope = Scope(
        Place(context, namespace),
        runs_folder,
        everywhere=everywhere,
        looks_locally=not is_named,
        looks_at_cluster=is_named or everywhere or is_configured(os.environ),
    )
    open_console(scope, host, port, opens_browser=browser, tell=print_note)
