"""The use case `trainchart console --sign-in token`: one console for the users of a cluster, each with their own token.

The kubeconfig says only which cluster it is: its user, if it has one, is not used. Each session has a kubeconfig of its
own with the token of who signed in, which only this process reads and which goes with the session.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path

from trainchart.actions.console import RunSource, Scope, read_pages, require_server
from trainchart.actions.support.cluster_access import open_cluster
from trainchart.cluster.io.kubeconfig import Entry, read_entry
from trainchart.cluster.io.kubernetes_api import SELF_REVIEWS, KubernetesApi
from trainchart.cluster.snapshot import section
from trainchart.console.access import parse_address
from trainchart.console.accounts import Account
from trainchart.console.installing import Installer
from trainchart.errors import Unauthorized, UsageError
from trainchart.resources import read_console_files

_PREFIX = "trainchart-sessions-"
_ANONYMOUS = "system:anonymous"


def open_users_console(
    scope: Scope, host: str, port: int, addresses: Sequence[str], *, tell: Callable[[str], None]
) -> None:
    """Serve the console until a signal ends it; `tell` gets its addresses.

    Raises:
        ClusterError: the kubeconfig names no cluster.
        UsageError: an address is none at which tokens may be sent.
        ToolError: the extra `console` is not installed, or nothing can listen there.
    """
    if not addresses and not port:
        raise UsageError("--sign-in token needs --address or --port", hint="such as --port 8080")
    origins = tuple(map(_parse_origin, addresses or [f"http://localhost:{port}"]))
    entry = read_entry(scope.place.context, os.environ)
    require_server()
    from trainchart.console.io.serve import serve_users

    pages, static = read_pages(takes_tokens=True), read_console_files("static")
    with _make_folder() as folder, _without_kubeconfig(folder):
        serve_users(Accounts(scope, entry, folder).open, pages, static, host, port, origins, tell=tell)


class Accounts:
    """Makes accounts, each with a folder of its own."""

    def __init__(self, scope: Scope, entry: Entry, folder: Path) -> None:
        """`entry` says which cluster it is."""
        self._scope, self._entry, self._folder = scope, entry, folder

    def open(self, token: str) -> Account:
        """Return the account of a token. Raises Unauthorized, or another TrainchartError."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            place = replace(
                self._scope.place, context="", kubeconfig=str(_write_kubeconfig(folder, self._entry, token))
            )
            api, _ = open_cluster(place)
            user = read_reviewed_user(api)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        scope = replace(self._scope, place=place, looks_locally=False, looks_at_cluster=True)

        @cache
        def open_installer() -> Installer:
            # With it come repositories, archives and the models of charts, which looking at runs does not need.
            from trainchart.actions.install import ReleaseInstaller

            return ReleaseInstaller(place)

        return Account(
            user,
            RunSource(scope),
            open_installer,
            check=lambda: _check_user(api, user),
            close=lambda: shutil.rmtree(folder, ignore_errors=True),
        )


def read_reviewed_user(api: KubernetesApi) -> str:
    """Return who the API server takes a token's owner for.

    Raises:
        Unauthorized: for no one.
        ClusterError: the API server cannot be asked.
    """
    found = api.create_object(SELF_REVIEWS, "", {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    name = str(section(section(found, "status"), "userInfo").get("username") or "")
    if name in ("", _ANONYMOUS):
        raise Unauthorized("the cluster does not know whose token this is")
    return name


def _check_user(api: KubernetesApi, user: str) -> None:
    if read_reviewed_user(api) != user:
        raise Unauthorized("the token now belongs to another user")


def _parse_origin(text: str) -> str:
    try:
        return parse_address(text)
    except ValueError as error:
        raise UsageError(f"--address: {text!r:.200}: {error}") from error


def _write_kubeconfig(folder: Path, entry: Entry, token: str) -> Path:
    """Write a kubeconfig with the cluster of an entry and a token, which only this user can read."""
    name = "console"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": entry.namespace}}],
        "clusters": [{"name": name, "cluster": dict(entry.cluster)}],
        "users": [{"name": name, "user": {"token": token}}],
    }
    file = folder / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


@contextmanager
def _without_kubeconfig(folder: Path) -> Iterator[None]:
    """Take the kubeconfig out of reach: what is not done as a user of a session fails, and is not done as its user."""
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = str(folder / "none")
    try:
        yield
    finally:
        os.environ.pop("KUBECONFIG")
        if before is not None:
            os.environ["KUBECONFIG"] = before


@contextmanager
def _make_folder() -> Iterator[Path]:
    """Give a private folder for sessions, and remove what consoles that were killed have left."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), _locked(left):
            shutil.rmtree(left)
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as made, _locked(Path(made)):
        yield Path(made)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. Raises OSError where another process has it, or the folder is another user's."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)
