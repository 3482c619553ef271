"""The command `trainchart console`."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, RunsOption
from trainchart.cli.output import print_note

_EXAMPLES = """
Examples:

  trainchart console                      the local runs, and the runs in the kubeconfig's namespace

  trainchart console -A --no-browser      the runs of the whole cluster; open the address yourself

  trainchart console -n team-a --sign-in token --port 8080    for several users, each with their own token
"""


class SignIn(StrEnum):
    """How users sign in."""

    code = "code"
    token = "token"


def register(app: typer.Typer) -> None:
    """Add `trainchart console` to `app`."""
    app.command("console", epilog=_EXAMPLES)(_console)


def _console(
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Show every namespace.")] = False,
    namespaces: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", help="Namespace to show. Repeatable. Default: that of the context."),
    ] = None,
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    host: Annotated[
        str, typer.Option(help="Address to listen on; without --sign-in token, a loopback address.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on. 0: any free port.")] = 0,
    sign_in: Annotated[
        SignIn,
        typer.Option(
            help="code: you sign in with the printed code, and have the rights of your kubeconfig. token: each user "
            "signs in with their own Kubernetes token."
        ),
    ] = SignIn.code,
    addresses: Annotated[
        list[str] | None,
        typer.Option(
            "--address",
            help="With --sign-in token: address in the browser, such as https://console.example.com. Repeatable. "
            "Default: http://localhost:PORT.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
) -> None:
    """Show local runs and those of a cluster on a live web page: the runs that `trainchart list` shows.

    Only you can open the page: it requires the printed code. It shows what your kubeconfig's user may see. On the
    page you can stop, suspend, resume and rerun runs, and install and uninstall releases. It needs an extra: pip
    install 'trainchart[console]'.

    With --sign-in token, the page is for all users of the cluster that the kubeconfig names. Each signs in with a
    Kubernetes token, and can see and do what that token allows. Local runs are not shown.
    """
    from trainchart.actions.console import Scope, open_console
    from trainchart.actions.console_users import open_users_console
    from trainchart.actions.support.cluster_access import Place
    from trainchart.cluster.io.kubeconfig import is_configured
    from trainchart.errors import UsageError

    named = tuple(namespaces or ())
    is_named = bool(context or named)
    scope = Scope(
        Place(context, named[0] if named else ""),
        runs_folder,
        everywhere=everywhere,
        namespaces=named,
        looks_locally=not is_named,
        looks_at_cluster=is_named or everywhere or is_configured(os.environ),
    )
    if sign_in is SignIn.token:
        open_users_console(scope, host, port, addresses or (), tell=print_note)
        return
    if addresses:
        raise UsageError("--address is for --sign-in token")
    open_console(scope, host, port, opens_browser=browser, tell=print_note)
