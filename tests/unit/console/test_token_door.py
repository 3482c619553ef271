"""Users of one console: each token opens a session of its own, sessions end, and nothing of one is seen in another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from starlette.testclient import TestClient

from tests.support.console_reports import MadeUpSource, make_pages, make_report
from trainchart.console.access import TOKEN_LIMIT
from trainchart.console.accounts import Account
from trainchart.console.io import token_door
from trainchart.console.io.guard import Guard
from trainchart.console.io.token_door import TokenDoor
from trainchart.console.views import RunRef
from trainchart.errors import Unauthorized, Unreachable
from trainchart.reports.report import CLUSTER
from trainchart.resources import read_console_files

BASE = "https://console.example.com"
PORT_FORWARD = "http://localhost:8080"
EXP9 = "/runs/cluster/team-a/exp-9/mnist"
DEADLINE_SECONDS = 20.0


@dataclass
class MadeUpCluster:
    """Accepts the tokens of some users, each of whom sees one release."""

    users: dict[str, str] = field(default_factory=lambda: {"ada-token": "ada", "bob-token": "bob"})
    sources: dict[str, MadeUpSource] = field(default_factory=dict)
    opened: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    is_away: bool = False

    def open(self, token: str) -> Account:
        if self.is_away:
            raise Unreachable("cannot reach the cluster")
        self._check(token)
        user = self.users[token]
        if user not in self.sources:
            self.sources[user] = MadeUpSource()
            self.sources[user].add(make_report("exp-9" if user == "ada" else "exp-10", origin=CLUSTER))
        self.opened.append(user)
        return Account(
            user, self.sources[user], lambda: pytest.fail("not asked for"), lambda: self._check(token),
            lambda: self.closed.append(user),
        )  # fmt: skip

    def _check(self, token: str) -> None:
        if token not in self.users:
            raise Unauthorized("not known")


@pytest.fixture
def cluster() -> MadeUpCluster:
    return MadeUpCluster()


@pytest.fixture
def open_client(cluster: MadeUpCluster) -> Iterator[Callable[..., TestClient]]:
    """Return a function that gives another browser, all of one console."""
    pages = make_pages(takes_tokens=True)
    app = Guard(TokenDoor(cluster.open, pages, (BASE, PORT_FORWARD)), pages, read_console_files("static"))
    with start_blocking_portal() as portal:

        def open_one(base: str = BASE) -> TestClient:
            client = TestClient(app, base_url=base, follow_redirects=False)
            client.portal = portal  # one event loop for all, as in a server
            return client

        yield open_one


def sign_in(client: TestClient, token: str, **headers: str) -> Any:
    return client.post(
        "/sign-in", data={"bearer": token}, headers={"origin": str(client.base_url).rstrip("/"), **headers}
    )


def find_token(page: str) -> str:
    return page.partition('name="token" value="')[2].partition('"')[0]


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("path", ["/", "/events", EXP9, "/new", "/none", "/compare?run=local/a&run=local/b"])
def test_without_a_token_only_the_form_is_shown(open_client: Callable[..., TestClient], path: str) -> None:
    answer = open_client().get(path)
    assert answer.status_code == 401
    assert "Paste your Kubernetes token" in answer.text
    assert "exp-" not in answer.text


def test_two_users_never_see_what_the_other_sees(
    cluster: MadeUpCluster, open_client: Callable[..., TestClient]
) -> None:
    ada, bob = open_client(), open_client()
    for client, token in ((ada, "ada-token"), (bob, "bob-token")):
        assert sign_in(client, token).status_code == 200
    for client, own, other in ((ada, "exp-9", "exp-10"), (bob, "exp-10", "exp-9")):
        page = client.get("/").text
        assert own in page
        assert f"{other}<" not in page
        assert client.get(f"/runs/cluster/team-a/{own}/mnist").status_code == 200
        assert client.get(f"/runs/cluster/team-a/{other}/mnist").status_code == 404
    data = {"token": find_token(ada.get("/").text)}
    assert bob.post(f"{EXP9}/stop", data=data, headers={"origin": BASE}).status_code == 403
    assert ada.post(f"{EXP9}/stop", data=data, headers={"origin": BASE}).status_code == 303
    assert cluster.sources["ada"].acts == [(RunRef(CLUSTER, "team-a", "exp-9", "mnist"), "stop")]
    assert cluster.sources["bob"].acts == []


@pytest.mark.parametrize("token", ["", " ", "wrong", "ada-token\0", "ada token\r\nX: y,", "ü", "x" * (TOKEN_LIMIT + 1)])
def test_no_other_token_opens_a_session(open_client: Callable[..., TestClient], token: str) -> None:
    client = open_client()
    answer = sign_in(client, token)
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert client.get("/").status_code == 401


def test_a_token_pasted_over_lines_is_taken(open_client: Callable[..., TestClient]) -> None:
    assert sign_in(open_client(), " ada-\n  token\n").status_code == 200


def test_the_cookie_is_for_this_address_alone(open_client: Callable[..., TestClient]) -> None:
    cookie = sign_in(open_client(), "ada-token").headers["set-cookie"]
    assert cookie.startswith("__Host-trainchart-console.example.com=")
    for part in ("HttpOnly", "SameSite=strict", "Secure", "Path=/"):
        assert part in cookie
    assert "Domain" not in cookie
    assert "ada-token" not in cookie
    plain = sign_in(open_client(PORT_FORWARD), "ada-token").headers["set-cookie"]
    assert plain.startswith("trainchart-8080=")
    assert "Secure" not in plain


@pytest.mark.parametrize("origin", ["", "null", "https://evil.example", "http://console.example.com", PORT_FORWARD])
def test_no_other_site_signs_a_user_in(
    cluster: MadeUpCluster, open_client: Callable[..., TestClient], origin: str
) -> None:
    answer = sign_in(open_client(), "ada-token", origin=origin)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert cluster.opened == []


def test_a_foreign_name_is_refused(cluster: MadeUpCluster, open_client: Callable[..., TestClient]) -> None:
    for host in ("evil.example", "localhost", "console.example.com:8080"):
        assert sign_in(open_client(), "ada-token", host=host).status_code == 421
        assert open_client().get("/", headers={"host": host, "authorization": "Bearer ada-token"}).status_code == 421
    assert cluster.opened == []


def test_a_proxy_hands_the_token_on(cluster: MadeUpCluster, open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    headers = {"authorization": "Bearer ada-token"}
    page = client.get("/", headers=headers)
    assert "exp-9" in page.text
    assert "set-cookie" not in page.headers
    assert client.get("/").status_code == 401
    data = {"token": find_token(page.text)}
    assert client.post(f"{EXP9}/stop", data=data, headers=headers).status_code == 403
    assert client.post(f"{EXP9}/stop", data=data, headers={**headers, "origin": BASE}).status_code == 303
    assert cluster.opened == ["ada"]
    assert client.get("/", headers={"authorization": "Bearer bob-token"}).text.count("exp-10")
    for wrong in ("Bearer wrong", "Bearer", "Basic ada-token", "ada-token", ""):
        assert client.get("/", headers={"authorization": wrong}).status_code == 401


def test_a_header_counts_over_a_cookie(open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    sign_in(client, "ada-token")
    assert client.get("/", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert "exp-10" in client.get("/", headers={"authorization": "Bearer bob-token"}).text
    assert "exp-9" in client.get("/").text


def test_signing_out_drops_the_token(cluster: MadeUpCluster, open_client: Callable[..., TestClient]) -> None:
    ada, again = open_client(), open_client()
    sign_in(ada, "ada-token")
    sign_in(again, "ada-token")
    cookies = dict(ada.cookies)
    data = {"token": find_token(ada.get("/").text)}
    assert ada.post("/sign-out", data=data, headers={"origin": BASE}).status_code == 303
    ada.cookies.update(cookies)
    assert ada.get("/").status_code == 401
    assert cluster.closed == ["ada"]
    assert again.get("/").status_code == 200


def test_signing_in_again_replaces_the_session(cluster: MadeUpCluster, open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    sign_in(client, "ada-token")
    sign_in(client, "bob-token")
    assert cluster.closed == ["ada"]
    assert "exp-10" in client.get("/").text


def test_a_token_that_is_refused_later_ends_the_session(
    cluster: MadeUpCluster, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_door, "_CHECK_SECONDS", 0.02)
    ada, bob = open_client(), open_client()
    sign_in(ada, "ada-token")
    sign_in(bob, "bob-token")
    del cluster.users["ada-token"]
    wait_until(lambda: cluster.closed)
    assert ada.get("/").status_code == 401
    assert bob.get("/").status_code == 200
    assert cluster.closed == ["ada"]


@pytest.mark.parametrize("limit", ["IDLE_SECONDS", "LIFE_SECONDS"])
def test_a_session_ends_in_time(
    cluster: MadeUpCluster, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(token_door, "_CHECK_SECONDS", 0.02)
    client = open_client()
    sign_in(client, "ada-token")
    assert client.get("/").status_code == 200
    monkeypatch.setattr(token_door, limit, 0.0)
    wait_until(lambda: cluster.closed)
    assert client.get("/").status_code == 401


def test_a_user_has_few_sessions(
    cluster: MadeUpCluster, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_door, "SESSIONS_OF_ONE", 2)
    first, second, third, bob = (open_client() for _ in range(4))
    sign_in(bob, "bob-token")
    for client in (first, second):
        sign_in(client, "ada-token")
    first.get("/")
    sign_in(third, "ada-token")
    assert [client.get("/").status_code for client in (first, second, third, bob)] == [200, 401, 200, 200]
    assert cluster.closed == ["ada"]


def test_sessions_are_bounded(
    cluster: MadeUpCluster, open_client: Callable[..., TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_door, "SESSIONS", 1)
    ada, bob = open_client(), open_client()
    sign_in(ada, "ada-token")
    answer = sign_in(bob, "bob-token")
    assert answer.status_code == 503
    assert "Try again later" in answer.text
    assert ada.get("/").status_code == 200
    assert cluster.closed == ["bob"]


def test_a_cluster_that_is_away_is_named(cluster: MadeUpCluster, open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    cluster.is_away = True
    answer = sign_in(client, "ada-token")
    assert answer.status_code == 502
    assert "cannot reach the cluster" in answer.text
    cluster.is_away = False
    assert sign_in(client, "ada-token").status_code == 200


def test_no_page_holds_a_token(open_client: Callable[..., TestClient]) -> None:
    client = open_client()
    answers = [sign_in(client, "ada-token"), client.get("/"), client.get(EXP9), sign_in(client, "wrong-token")]
    for answer in answers:
        assert "ada-token" not in f"{answer.text}{answer.headers}"
        assert "wrong-token" not in f"{answer.text}{answer.headers}"
