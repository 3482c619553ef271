"""The console over HTTP: without the code nothing is shown, foreign names and origins are refused, headers are set."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.support.console_reports import MadeUpSource, make_code_app, make_failed, make_report
from trainchart.console.access import BODY_LIMIT, HEADERS
from trainchart.console.io import app
from trainchart.console.views import RunRef, ServerRef, ServersView, ServerView
from trainchart.promotion.servers import ServerState
from trainchart.reports.report import CLUSTER, LOCAL
from trainchart.reports.run_settings import RunSettings

CODE = "the-code"
BASE = "http://127.0.0.1:8123"
PATHS = (
    "/compare?run=local/exp-7&run=local/exp-8",
    "/",
    "/events",
    "/runs/local/exp-7",
    "/runs/local/exp-7/events",
    "/runs/cluster/team-a/exp-9/mnist",
    "/servers",
    "/servers/events",
    "/servers/team-a/digits",
    "/servers/team-a/digits/events",
    "/none",
)


@pytest.fixture
def source() -> MadeUpSource:
    made_up = MadeUpSource()
    made_up.add(make_report())
    made_up.add(make_failed())
    made_up.add(make_report("exp-9", origin=CLUSTER))
    return made_up


@pytest.fixture
def stranger(source: MadeUpSource) -> TestClient:
    return TestClient(make_code_app(source, CODE), base_url=BASE, follow_redirects=False)


@pytest.fixture
def user(stranger: TestClient) -> TestClient:
    assert stranger.post("/sign-in", data={"code": CODE}).status_code == 200
    return stranger


def test_a_slow_cluster_holds_up_no_page(source: MadeUpSource, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    read_local = source.watch_list(LOCAL)
    monkeypatch.setattr(app, "_PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(source, "watch_list", lambda origin: read_local if origin == LOCAL else lambda: ended.wait(60))
    client = TestClient(make_code_app(source, CODE), base_url=BASE)
    client.post("/sign-in", data={"code": CODE})
    page = client.get("/").text
    ended.set()
    assert "exp-7" in page
    assert "Reading the runs" in page
    assert "No runs." not in page


def find_token(page: str) -> str:
    return page.partition('name="token" value="')[2].partition('"')[0]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_code_nothing_is_shown(stranger: TestClient, path: str) -> None:
    answer = stranger.get(path)
    assert answer.status_code == 401
    assert "exp-" not in answer.text
    assert "Enter the code" in answer.text


@pytest.mark.parametrize("code", ["", "wrong", CODE + "x", "ü"])
def test_a_wrong_code_starts_no_session(stranger: TestClient, code: str) -> None:
    answer = stranger.post("/sign-in", data={"code": code})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert stranger.get("/").status_code == 401


def test_the_cookie_is_out_of_reach_for_pages(stranger: TestClient) -> None:
    cookie = stranger.post("/sign-in", data={"code": CODE}).headers["set-cookie"]
    assert cookie.startswith("trainchart-8123=")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert CODE not in cookie


def test_the_list_leads_to_every_run(user: TestClient) -> None:
    page = user.get("/").text
    for path in ("/runs/local/exp-7", "/runs/local/exp-8", "/runs/cluster/team-a/exp-9/mnist"):
        assert f'href="{path}"' in page
        assert user.get(path).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/runs/local/none",
        "/runs/local/..%2f..%2fetc",
        "/runs/local/a%00b",
        "/servers/team-a/none",
        "/servers/a/..%2fb",
        "/none",
        "/static/x",
    ],
)
def test_what_is_not_there_is_not_found(user: TestClient, path: str) -> None:
    assert user.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/", "/static/console.css", "/static/none", "/sign-in", "/runs/local/none"])
def test_every_answer_has_the_headers(user: TestClient, path: str) -> None:
    answers = [user.get(path), user.get(path, headers={"host": "evil.example"}), user.post(path)]
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


@pytest.mark.parametrize("path", [*PATHS, "/static/console.css", "/sign-in"])
def test_a_foreign_name_is_refused(user: TestClient, path: str) -> None:
    for host in ("evil.example:8123", "127.0.0.1", "127.0.0.1:81"):
        assert user.get(path, headers={"host": host}).status_code == 421
        assert user.post(path, headers={"host": host}, data={"code": CODE}).status_code == 421


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:81", BASE])
def test_changes_need_origin_and_token(user: TestClient, origin: str | None) -> None:
    token = find_token(user.get("/").text)
    headers = {} if origin is None else {"origin": origin}
    assert user.post("/sign-out", data={"token": "wrong"}, headers=headers).status_code == 403
    done = user.post("/sign-out", data={"token": token}, headers=headers)
    assert done.status_code == (303 if origin == BASE else 403)
    assert user.get("/").status_code == (401 if origin == BASE else 200)


@pytest.mark.parametrize("token", ["", "wrong", "right"])
def test_an_action_needs_the_token_and_says_what_came_of_it(source: MadeUpSource, user: TestClient, token: str) -> None:
    page = user.get("/runs/local/exp-7").text
    assert "trainchart stop exp-7" in page
    data = {"token": find_token(page) if token == "right" else token}
    done = user.post("/runs/local/exp-7/stop", data=data, headers={"origin": BASE})
    assert done.status_code == (303 if token == "right" else 403)
    assert source.acts == ([(RunRef(LOCAL, "", "exp-7", ""), "stop")] if token == "right" else [])
    assert ("it was done" in user.get("/runs/local/exp-7").text) == (token == "right")
    assert "it was done" not in user.get("/runs/local/exp-8").text


@pytest.mark.parametrize("path", ["/runs/local/exp-7/delete", "/runs/local/exp-7/events", "/runs/local/%2e%2e/stop"])
def test_unknown_actions_do_nothing(source: MadeUpSource, user: TestClient, path: str) -> None:
    data = {"token": find_token(user.get("/").text)}
    assert user.post(path, data=data, headers={"origin": BASE}).status_code in (404, 405)
    assert user.get("/runs/local/exp-7/stop").status_code in (404, 405)
    assert source.acts == []


def test_signing_out_ends_the_session_everywhere(user: TestClient) -> None:
    cookies = dict(user.cookies)
    user.post("/sign-out", data={"token": find_token(user.get("/").text)}, headers={"origin": BASE})
    user.cookies.update(cookies)
    assert user.get("/").status_code == 401


def test_runs_are_compared_with_the_settings_that_differ(source: MadeUpSource, user: TestClient) -> None:
    for name, rate in (("exp-1", 0.1), ("exp-2", 0.25)):
        source.add(make_report(name, settings=RunSettings("single", {}, {"learningRate": rate, "seed": 7}, {})))
    page = user.get("/compare?run=local/exp-1&run=local/exp-2").text
    differing, _, same = page.partition("<details>")
    assert "hyperparameters.learningRate" in differing
    assert "0.25" in differing
    assert "hyperparameters.seed" in same
    assert "trainchart compare exp-1 exp-2" in page
    assert 'data-stream="/compare/events?run=local/exp-1&amp;run=local/exp-2"' in page


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", 400),
        ("run=local/exp-7", 400),
        ("run=local/exp-7&run=local/exp-7", 400),
        ("run=local/exp-7&run=local/..", 400),
        ("run=local/exp-7&run=elsewhere/x", 400),
        ("&".join(f"run=local/exp-{number}" for number in range(99)), 400),
        ("run=local/exp-7&run=local/none", 404),
        ("run=local/exp-7&run=cluster/team-a/exp-9/mnist", 200),
    ],
)
def test_only_several_runs_that_are_there_are_compared(user: TestClient, query: str, code: int) -> None:
    assert user.get(f"/compare?{query}").status_code == code


def test_a_form_is_bounded(user: TestClient) -> None:
    for data in ({"code": "x" * BODY_LIMIT}, {f"field{number}": "x" for number in range(30)}):
        assert user.post("/sign-in", data=data).status_code == 413


def test_pages_hold_no_script_or_style_of_their_own(user: TestClient) -> None:
    for path in ("/", "/runs/local/exp-8"):
        page = user.get(path).text
        assert "<style" not in page
        assert " style=" not in page
        scripts = page.split("<script")[1:]
        assert all(part.startswith((" src=", ' type="module" src=')) for part in scripts)


def test_servers_are_read_only_while_someone_looks(source: MadeUpSource) -> None:
    reads: list[str] = []
    made_up, server = source.servers, ServerView(ServerState("team-a", "digits"), read_at=1.0)
    source.servers = ServersView((ServerState("team-a", "digits"),), read_at=1.0)
    source.watch_servers = lambda: lambda: (reads.append("list"), source.servers)[1]  # type: ignore[method-assign]
    source.server_views = {ServerRef("team-a", "digits"): server}
    client = TestClient(make_code_app(source, CODE), base_url=BASE)
    client.post("/sign-in", data={"code": CODE})
    assert client.get("/").status_code == 200
    assert (reads, made_up.servers) == ([], ())
    page = client.get("/servers").text
    assert reads
    assert 'href="/servers/team-a/digits"' in page
    assert "No promotions." in client.get("/servers/team-a/digits").text


def test_a_failure_to_read_shows_no_details(source: MadeUpSource, user: TestClient) -> None:
    def fail(*_: Any) -> Any:
        raise RuntimeError("secret")

    source.watch_run = lambda run: fail  # type: ignore[method-assign]
    client = TestClient(user.app, base_url=BASE, raise_server_exceptions=False, cookies=dict(user.cookies))
    answer = client.get("/runs/local/exp-7")
    assert answer.status_code == 500
    assert "secret" not in answer.text


def test_static_files_have_their_types(stranger: TestClient) -> None:
    for path, kind in (("console.css", "text/css"), ("live.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        assert stranger.get(f"/static/{path}").headers["content-type"].startswith(kind)
    assert stranger.get("/static/uplot/LICENSE").status_code == 404


def test_an_event_holds_no_line_breaks_of_others() -> None:
    from trainchart.console.io.streams import make_event

    text = "x\n\nevent: parts\ndata: {}"
    lines = make_event("parts", {"id": text}).splitlines()
    assert lines[0] == "event: parts"
    assert json.loads(lines[1].removeprefix("data: ")) == {"id": text}
    assert lines[2:] == [""]
