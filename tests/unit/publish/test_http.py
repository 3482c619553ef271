"""Where servers may send us: never off encryption, and not for ever."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from types import SimpleNamespace

import httpx2
import pytest

from tests.support.endless_server import serve_endless
from trainchart.errors import PublishError, RepositoryUnreachable
from trainchart.publish.credentials import Credentials
from trainchart.publish.io import http, registry
from trainchart.publish.io.chart_museum import ChartMuseumRepository
from trainchart.publish.io.http import HttpClient
from trainchart.publish.io.oci import OciRepository
from trainchart.publish.io.registry import Registry
from trainchart.publish.io.webdav import WebDavStore
from trainchart.publish.location import Kind, parse_location

FORMS = {
    "header": (b"HTTP/1.1 200 OK\r\nX-A: ", b"a"),
    "hints": (b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
}
"""How an answer begins, and what then follows without an end."""
Handler = Callable[[httpx2.Request], httpx2.Response]
PLAIN = "http://mirror.example.com/v2/x"


def client(handler: Handler, base: str = "https://r.example.com", login: Credentials | None = None) -> HttpClient:
    made = HttpClient(base, login)
    made._client = httpx2.Client(transport=httpx2.MockTransport(handler))
    return made


def reply(status: int, headers: Mapping[str, str] | None = None, body: str = "") -> httpx2.Response:
    return httpx2.Response(status, headers=headers, content=iter([body.encode()]))  # read once, as from a server


def redirect(*places: str) -> Handler:
    left = iter(places)

    def answer(request: httpx2.Request) -> httpx2.Response:
        place = next(left, "")
        return reply(302, {"Location": place}) if place else reply(200, body=str(request.url))

    return answer


@pytest.mark.parametrize("host", ["ex_ämple", "a\udcff"])
def test_a_name_that_no_host_can_have_is_refused(host: str) -> None:
    with pytest.raises(PublishError, match=f"https://{host} is not an address: ") as refusal:
        HttpClient(f"https://{host}")
    assert "check the name of the host" in refusal.value.hint


@pytest.mark.parametrize("kind", ["oci", "chartmuseum+https"])
def test_a_chart_name_that_is_no_utf8_is_not_there(kind: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return reply(200) if request.url.path == "/v2/" else reply(404, body='{"error": "not found"}')

    location = parse_location(f"{kind}://r.example.com/charts")
    made = OciRepository if location.kind is Kind.oci else ChartMuseumRepository
    assert made(location, client(answer)).find_versions("a\udcff") == ()


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_goes_on_is_given_up(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.3)
    refused = pytest.raises(RepositoryUnreachable, match=r"did not complete its answer within 0\.3 seconds")
    with serve_endless(*FORMS[form]) as base, HttpClient(base) as asked, refused:
        asked.send("GET", f"{base}/v2/", what="list")


def test_tries_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ANSWER_SECONDS", 100.0)
    now = iter([0.0, 0.0, 101.0, 101.0])
    monkeypatch.setattr(http, "time", SimpleNamespace(monotonic=lambda: next(now), sleep=lambda seconds: None))
    with pytest.raises(RepositoryUnreachable, match="did not complete its answer within 100 seconds"):
        client(lambda request: reply(503, {"Retry-After": "1"})).send("GET", "https://r.example.com/", what="list")


@pytest.mark.parametrize("places", [(PLAIN,), ("/a", PLAIN), ("https://cdn.example.com/a", PLAIN), ("HTTP://x/y",)])
def test_a_redirect_off_encryption_is_refused(places: tuple[str, ...]) -> None:
    with pytest.raises(PublishError, match=r"redirects to .*, which is not encrypted") as refusal:
        client(redirect(*places)).send("GET", "https://r.example.com/index.yaml", what="read it")
    assert "--plain-http" in refusal.value.hint


def test_encrypted_redirects_are_followed_without_the_password() -> None:
    seen: list[httpx2.Request] = []
    step = redirect("/b", "https://cdn.example.com/c")

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return step(request)

    login = Credentials("me", "secret")
    told = client(answer, login=login).send("GET", "https://r.example.com/a", what="read it")
    assert told.body == b"https://cdn.example.com/c"
    assert not told.is_own
    assert ["Authorization" in request.headers for request in seen] == [True, True, False]


def test_who_speaks_without_encryption_may_be_sent_anywhere() -> None:
    told = client(redirect(PLAIN), "http://r.example.com").send("GET", "http://r.example.com/a", what="read it")
    assert told.body == PLAIN.encode()


def test_redirects_end() -> None:
    with pytest.raises(PublishError, match="redirects in a loop"):
        client(redirect(*["/a", "/b"] * 99)).send("GET", "https://r.example.com/a", what="read it")


@pytest.mark.parametrize("header", ["Location", "Link"])
@pytest.mark.parametrize(
    ("place", "says"),
    [(PLAIN, "which is not encrypted"), ("http://[", "which is not a valid address")],
    ids=["plain", "broken"],
)
def test_no_other_address_of_a_registry_leads_off_encryption(header: str, place: str, says: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.method == "HEAD":
            return reply(404)
        value = place if header == "Location" else f'<{place}>; rel="next"'
        return reply(202 if request.method == "POST" else 200, {header: value}, '{"tags": []}')

    asked = Registry(client(answer))
    with pytest.raises(PublishError, match=says):
        if header == "Location":
            asked.push_blob("demo", b"x", "push a part")
        else:
            list(asked.read_pages("https://r.example.com/v2/demo/tags/list", "list"))


@pytest.mark.parametrize("size", [0, 1024 * 1024])
def test_a_list_without_an_end_is_given_up(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    number = count()

    def answer(request: httpx2.Request) -> httpx2.Response:
        link = f'</v2/demo/tags/list?last={next(number)}>; rel="next"'
        return reply(200, {"Link": link}, json.dumps({"tags": ["1.0.0"], "more": "x" * size}))

    monkeypatch.setattr(registry, "PAGES_LIMIT", 100)
    repository = OciRepository(parse_location("oci://r.example.com"), client(answer))
    with pytest.raises(PublishError, match="has not ended after"):
        repository.find_versions("demo")
    assert next(number) <= 100


def test_a_tag_that_is_listed_twice_is_asked_for_once() -> None:
    tags = json.dumps({"tags": ["1.0.0"] * 5})
    repository = OciRepository(parse_location("oci://r.example.com"), client(lambda request: reply(200, body=tags)))
    assert repository.find_versions("demo") == ("1.0.0",)


def test_a_list_of_endless_versions_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    number = count()

    def answer(request: httpx2.Request) -> httpx2.Response:
        if "tags/list" in request.url.path:
            return reply(200, body=json.dumps({"tags": [f"1.0.{patch}" for patch in range(1000)]}))
        clock.monotonic = partial(float, next(number))
        return reply(404) if "manifests" in request.url.path else reply(200)

    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=None)
    monkeypatch.setattr(http, "time", clock)
    monkeypatch.setattr(http, "ALL_SECONDS", 50.0)
    repository = OciRepository(parse_location("oci://r.example.com"), client(answer))
    with pytest.raises(RepositoryUnreachable, match="did not complete all its answers within 50 seconds"):
        repository.list_versions("demo")
    assert next(number) < 100


@pytest.mark.timeout(10)
@pytest.mark.parametrize("header", ["Link", "WWW-Authenticate"])
def test_a_long_header_takes_no_time(header: str) -> None:
    value = "<" * 100_000 if header == "Link" else "Bearer " + "a" * 100_000
    answer = reply(200 if header == "Link" else 401, {header: value}, '{"tags": []}')
    asked = Registry(client(lambda request: answer))
    with suppress(PublishError):
        list(asked.read_pages("https://r.example.com/v2/demo/tags/list", "list"))


@pytest.mark.parametrize(
    ("place", "asked"),
    [
        ("../a,b='(!$)'.tgz", "https://r.example.com/a,b='(!$)'.tgz"),
        ("https://r.example.com/x//a.tgz?v=1;w=2", "https://r.example.com/x//a.tgz?v=1;w=2"),
        ("https://r.example.com/a-1.0.0%2B1.tgz", "https://r.example.com/a-1.0.0%2B1.tgz"),
        ("c..d/a-1.0.0+1.tgz", "https://r.example.com/charts/c..d/a-1.0.0+1.tgz"),
    ],
)
def test_an_index_address_is_sent_as_helm_sends_it(place: str, asked: str) -> None:
    answer = client(lambda request: reply(200, body=str(request.url)))
    assert WebDavStore(parse_location("https://r.example.com/charts"), answer).read(place) == asked.encode()


def test_an_error_names_the_server_that_did_not_answer() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("no such host")

    with pytest.raises(RepositoryUnreachable, match=r"cannot read it: https://cdn\.example\.com: no such host"):
        client(answer).send("GET", "https://me:secret@cdn.example.com/a?secret", what="read it")
    with pytest.raises(RepositoryUnreachable, match=r"cannot read it: https://r\.example\.com: no such host"):
        client(answer).send("GET", "https://r.example.com/a", what="read it")
    with pytest.raises(RepositoryUnreachable, match=r"cannot read it: https://: the address has no host"):
        client(answer).send("GET", "https:///a", what="read it")
