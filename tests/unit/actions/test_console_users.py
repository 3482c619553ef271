"""The console of many users over a cluster: each reads and acts with its own token, and leaves nothing of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.small_cluster.cluster_objects import make_pods, make_sets
from tests.small_cluster.small_api import SmallApi, serve_small_api
from trainchart.actions import console_users
from trainchart.actions.console import Scope
from trainchart.actions.console_users import Accounts, open_users_console
from trainchart.actions.support.cluster_access import Place, open_cluster
from trainchart.cluster.io.kubeconfig import read_entry
from trainchart.console.accounts import OpenAccount
from trainchart.console.io import serve as console_serve
from trainchart.console.views import RunRef, ServerRef
from trainchart.errors import ClusterError, ToolError, Unauthorized, UsageError
from trainchart.helm.io.upgrade import HelmUpgrade, render_upgrade, run_upgrade
from trainchart.reports.report import CLUSTER, LOCAL

RUN = RunRef(CLUSTER, "team-a", "exp1", "mnist")
HELM = """#!/bin/sh
{ printf '%s\\n' "$@" "KUBECONFIG=$KUBECONFIG" "HELM_CACHE_HOME=$HELM_CACHE_HOME"; cat "$KUBECONFIG"; } >> "$SEEN"
env >> "$SEEN.environment"
printf '%s\\n' "$@" >> "$SEEN.arguments"
"""


@pytest.fixture
def api() -> Iterator[SmallApi]:
    """A cluster with the release exp1 in team-a, which ada may read, but not bob."""
    with serve_small_api() as server:
        server.objects = {"statefulsets": make_sets(), "pods": make_pods()}
        server.users = {"ada-token": "ada", "bob-token": "bob", "own-token": "me"}
        server.allowed = {"ada": "team-a", "bob": "team-b"}
        yield server


@pytest.fixture
def accounts(api: SmallApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Accounts:
    file = api.write_kubeconfig(tmp_path / "kubeconfig", token="own-token")
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "sessions").mkdir()
    scope = Scope(Place(), tmp_path / "runs", namespaces=("team-a", "team-b"))
    return Accounts(scope, read_entry("", os.environ), tmp_path / "sessions")


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file into which a made-up helm writes what it is given."""
    program = tmp_path / "bin" / "helm"
    program.parent.mkdir()
    program.write_text(HELM)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    return tmp_path / "seen"


def list_files(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "sessions").rglob("*") if path.is_file()]


def test_each_account_sees_what_its_token_may(accounts: Accounts) -> None:
    ada, bob = accounts.open("ada-token"), accounts.open("bob-token")
    seen = ada.source.watch_list(CLUSTER)()
    assert [report.key.release for report in seen.reports] == ["exp1"]
    assert seen.notes[0].startswith("team-b is not shown: cannot list")
    assert "User ada cannot list" in seen.notes[0]
    other = bob.source.watch_list(CLUSTER)()
    assert other.reports == ()
    assert "team-a is not shown" in other.notes[0]
    assert bob.source.watch_run(RUN)().report is None
    assert "User bob cannot list" in bob.source.watch_run(RUN)().error
    assert "User bob cannot list" in bob.source.act(RUN, "stop").text


def test_the_kubeconfig_of_the_console_gives_no_rights(accounts: Accounts) -> None:
    """Its own token could read both namespaces."""
    assert accounts.open("ada-token").source.watch_list(CLUSTER)().notes
    with pytest.raises(Unauthorized):
        accounts.open("wrong")


def test_all_that_is_read_is_read_as_the_user(accounts: Accounts, api: SmallApi) -> None:
    source = accounts.open("ada-token").source
    assert source.watch_list(CLUSTER)().reports
    assert source.watch_run(RUN)().report is not None
    source.watch_servers()()
    source.watch_server(ServerRef("team-a", "digits-prod"))()
    source.act(RUN, "stop")
    assert any("deployments" in path for path in api.requests)
    assert set(api.senders) == {"ada"}


def test_model_servers_of_all_readable_namespaces_are_shown(accounts: Accounts, api: SmallApi) -> None:
    for name in ("ada", "bob"):
        found = accounts.open(f"{name}-token").source.watch_servers()()
        assert found.error == ""
        (note,) = found.notes
        assert note.startswith(f"{'team-b' if name == 'ada' else 'team-a'} is not shown: cannot list deployments")
    api.allowed["bob"] = "team-c"
    assert "User bob cannot list" in accounts.open("bob-token").source.watch_servers()().error


def test_what_has_no_session_reaches_no_cluster(api: SmallApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(api.write_kubeconfig(tmp_path / "kubeconfig", token="own-token"))
    monkeypatch.setenv("KUBECONFIG", file)
    served: list[str] = []

    def serve(open_account: OpenAccount, *_: object, **__: object) -> None:
        with pytest.raises(ClusterError, match="there is no kubeconfig"):
            open_cluster(Place())
        served.append(open_account("ada-token").user)

    monkeypatch.setattr(console_serve, "serve_users", serve)
    open_users_console(Scope(Place(), tmp_path), "127.0.0.1", 8080, [], tell=print)
    assert served == ["ada"]
    assert os.environ["KUBECONFIG"] == file


def test_local_runs_are_not_shown(accounts: Accounts) -> None:
    source = accounts.open("ada-token").source
    assert source.watch_list(LOCAL)().is_asked is False
    assert source.watch_run(RunRef(LOCAL, "", "exp-1", ""))().is_missing
    assert source.act(RunRef(LOCAL, "", "exp-1", ""), "stop").is_bad


def test_a_kubeconfig_is_private_and_goes_with_its_session(accounts: Accounts, tmp_path: Path) -> None:
    ada, bob = accounts.open("ada-token"), accounts.open("bob-token")
    files = list_files(tmp_path)
    assert len(files) == 2
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700
        assert file.read_text().count("-token") == 1
    ada.close()
    (left,) = list_files(tmp_path)
    assert "bob-token" in left.read_text()
    view = ada.source.watch_list(CLUSTER)()
    assert view.reports == ()
    assert "there is no kubeconfig" in view.error
    assert bob.source.watch_list(CLUSTER)().notes


def test_a_token_that_is_refused_leaves_no_file(accounts: Accounts, api: SmallApi, tmp_path: Path) -> None:
    with pytest.raises(Unauthorized):
        accounts.open("wrong")
    api.users["anonymous-token"] = "system:anonymous"
    with pytest.raises(Unauthorized):
        accounts.open("anonymous-token")
    assert list((tmp_path / "sessions").iterdir()) == []


def test_a_token_is_asked_about_again(accounts: Accounts, api: SmallApi) -> None:
    ada = accounts.open("ada-token")
    ada.check()
    api.users["ada-token"] = "someone-else"
    with pytest.raises(Unauthorized):
        ada.check()
    del api.users["ada-token"]
    with pytest.raises(Unauthorized):
        ada.check()


def test_helm_gets_the_token_in_a_file_alone(accounts: Accounts, seen: Path, tmp_path: Path) -> None:
    ada = accounts.open("ada-token")
    (file,) = list_files(tmp_path)
    ada.open_installer().uninstall(RUN)
    upgrade = HelmUpgrade("exp1", "team-a", "", {"Chart.yaml": b""}, kubeconfig=str(file))
    run_upgrade(upgrade)
    with pytest.raises(ToolError):
        render_upgrade(upgrade)  # the made-up helm prints nothing
    text = seen.read_text()
    assert text.count("uninstall\n") == 1
    assert text.count("upgrade\n") == 2
    assert text.count("ada-token") == 3
    assert text.count(f"KUBECONFIG={file}\n") == text.count(f"HELM_CACHE_HOME={file.parent}/helm/cache\n") == 3
    for other in ("environment", "arguments"):
        assert "-token" not in seen.with_name(f"seen.{other}").read_text()


def test_what_a_killed_console_has_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "trainchart-sessions-left"
    (left / "one").mkdir(parents=True)
    (left / "one" / "kubeconfig").write_text(json.dumps({"token": "x"}))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "trainchart-sessions-link").symlink_to(elsewhere)
    with console_users._make_folder() as first, console_users._make_folder() as second:
        assert not left.exists()
        assert elsewhere.exists()
        assert first.is_dir()
        assert second.is_dir()
        assert first.stat().st_mode & 0o777 == 0o700
    assert not first.exists()


@pytest.mark.parametrize(
    "address", ["http://console.example.com", "https://a/path", "a.example", "https://u:p@a", "https://", "https://a:x"]
)
def test_an_address_for_tokens_is_checked_first(tmp_path: Path, address: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_users_console(Scope(Place(), tmp_path), "127.0.0.1", 0, [address], tell=print)
    assert address in refused.value.message


def test_without_an_address_there_must_be_a_port(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        open_users_console(Scope(Place(), tmp_path), "127.0.0.1", 0, [], tell=print)
