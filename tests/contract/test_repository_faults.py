"""What a network or a server does wrong: nothing half-published can be seen, the error says what it is, and the same
command again succeeds. Faults are put in by a proxy before the real servers of test_repositories.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event

import pytest

from tests.repositories.chart_archives import upload
from tests.repositories.chart_servers import PASSWORD, USER, serve_museum, serve_registry, serve_web_folder
from tests.repositories.fault_proxy import CUT_AFTER, CUT_ANSWER, CUT_BEFORE, SPOIL, Fault, Proxy, Reply, Seen, proxied
from trainchart.actions.support.repository_access import Address, open_repository
from trainchart.errors import (
    PublishError,
    RepositoryForbidden,
    RepositoryNotFound,
    RepositoryUnauthorized,
    RepositoryUnreachable,
    TrainchartError,
)
from trainchart.publish.io import http
from trainchart.publish.repository import Repository, publish_upload

URLS = {"web folder": "http://{}/charts", "ChartMuseum": "chartmuseum+http://{}", "registry": "oci://{}/team/charts"}
MOST_REQUESTS = 40


class Through:
    """A repository behind a proxy, and the same one without it."""

    def __init__(self, kind: str, proxy: Proxy) -> None:
        self.kind = kind
        self.proxy = proxy
        self._names = map("demo-{}".format, itertools.count())

    def new_name(self) -> str:
        return next(self._names)

    @contextmanager
    def opened(self, **environment: str) -> Iterator[Repository]:
        with self._open(self.proxy.host, environment) as repository:
            yield repository

    @contextmanager
    def directly(self) -> Iterator[Repository]:
        with self._open(self.proxy.upstream, {}) as repository:
            yield repository

    @contextmanager
    def _open(self, host: str, environment: dict[str, str]) -> Iterator[Repository]:
        address = Address(URLS[self.kind].format(host), plain_http=True)
        with open_repository(address, {"HOME": "/nonexistent", **environment}) as repository:
            yield repository


@pytest.fixture(scope="module", params=list(URLS))
def through(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Through]:
    folder = tmp_path_factory.mktemp("served") / "data"
    with ExitStack() as stack:
        serve: dict[str, Callable[[], str]] = {
            "web folder": lambda: stack.enter_context(serve_web_folder(folder, lock_seconds=2)),
            "ChartMuseum": lambda: stack.enter_context(serve_museum()),
            "registry": lambda: stack.enter_context(serve_registry(folder)),
        }
        proxy = stack.enter_context(proxied(serve[request.param]()))
        yield Through(request.param, proxy)


def at(number: int, fault: Fault) -> Callable[[Seen], Fault]:
    return lambda seen: fault if seen.number == number else None


@pytest.mark.parametrize("fault", [CUT_BEFORE, CUT_AFTER, CUT_ANSWER, Reply(500)], ids=str)
def test_a_fault_in_any_request_leaves_nothing_half_published(through: Through, fault: Fault) -> None:
    """Every single request of a publication fails once."""
    broken = 0
    for number in range(MOST_REQUESTS):
        name = through.new_name()
        mine = upload("1.0.0", name=name, provenance=b"signed")
        through.proxy.restart(at(number, fault))
        is_published = False
        try:
            with through.opened() as repository:
                publish_upload(repository, mine)
            is_published = True
        except RepositoryUnreachable:
            broken += 1
        has_failed = len(through.proxy.seen) > number
        through.proxy.restart(lambda seen: None)
        with through.directly() as repository:
            seen = repository.fetch(name, "1.0.0")
            # All of it, or nothing.
            assert seen is None or (seen.data, seen.provenance) == (mine.archive.data, b"signed")
            assert seen is not None or not is_published
            done = publish_upload(repository, mine)
            assert done.is_new == (seen is None)
        if not has_failed:
            assert number >= 4, "the proxy was not asked"
            # Some fail without harm: an answer without a body cannot be cut, and a lock ends by itself.
            assert broken >= number // 2
            return
    pytest.fail("a publication has no end")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(401), RepositoryUnauthorized),
        (Reply(403), RepositoryForbidden),
        (Reply(429), RepositoryUnreachable),
        (Reply(429, {"Retry-After": "86400"}), RepositoryUnreachable),
        (Reply(502), RepositoryUnreachable),
        (Reply(418), PublishError),
    ],
    ids=str,
)
@pytest.mark.parametrize("methods", [("GET", "HEAD"), ("PUT", "POST")], ids=["reading", "writing"])
def test_refusals_are_told_apart(
    through: Through, reply: Reply, kind: type[TrainchartError], methods: tuple[str, ...]
) -> None:
    through.proxy.restart(lambda seen: reply if seen.method in methods else None)
    with through.opened() as repository, pytest.raises(PublishError) as caught:
        publish_upload(repository, upload("1.0.0", name=through.new_name()))
    assert type(caught.value) is kind
    assert str(reply.status) in caught.value.message
    assert caught.value.exit_code == 8


def test_a_path_that_is_not_there(through: Through) -> None:
    through.proxy.restart(lambda seen: Reply(404) if seen.method in ("PUT", "POST") else None)
    with through.opened() as repository, pytest.raises(RepositoryNotFound):
        publish_upload(repository, upload("1.0.0", name=through.new_name()))


def test_a_server_that_says_when_to_come_back_is_asked_again(through: Through) -> None:
    patience: dict[tuple[str, str], int] = {}

    def decide(seen: Seen) -> Fault:
        patience[seen.method, seen.path] = patience.get((seen.method, seen.path), 0) + 1
        return Reply(429, {"Retry-After": "0"}) if patience[seen.method, seen.path] <= 2 else None

    through.proxy.restart(decide)
    with through.opened() as repository:
        assert publish_upload(repository, upload("1.0.0", name=through.new_name())).is_new


@pytest.mark.parametrize("methods", [("GET", "HEAD"), ("PUT", "POST")], ids=["reading", "writing"])
def test_a_server_that_falls_silent(
    through: Through, methods: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "SILENCE_SECONDS", 0.5)
    name, is_over = through.new_name(), Event()

    def fall_silent(seen: Seen) -> Fault:
        if seen.method not in methods:
            return None
        is_over.wait(60)
        return CUT_BEFORE

    through.proxy.restart(fall_silent)
    try:
        with through.opened() as repository, pytest.raises(RepositoryUnreachable, match="did not respond in time"):
            publish_upload(repository, upload("1.0.0", name=name))
    finally:
        is_over.set()
    with through.directly() as repository:
        assert repository.fetch(name, "1.0.0") is None


def test_an_answer_that_comes_by_drops(through: Through, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never silent for long, and never done: no time is left when the first drop of it comes."""
    name = through.new_name()
    through.proxy.restart(lambda seen: None)
    with through.directly() as repository:
        publish_upload(repository, upload("1.0.0", name=name))
    monkeypatch.setattr(http, "ANSWER_SECONDS", -1.0)
    with (
        through.opened() as repository,
        pytest.raises(RepositoryUnreachable, match="did not complete its answer within"),
    ):
        repository.fetch(name, "1.0.0")


def test_other_bytes_than_announced_are_noticed(through: Through) -> None:
    name = through.new_name()
    mine = upload("1.0.0", name=name)
    with through.directly() as repository:
        publish_upload(repository, mine)
    is_content = "/blobs/" if through.kind == "registry" else ".tgz"
    through.proxy.restart(lambda seen: SPOIL if is_content in seen.path and seen.method == "GET" else None)
    with through.opened() as repository, pytest.raises(PublishError, match=r"damaged|the registry sends"):
        repository.fetch(name, "1.0.0")


def test_a_registry_that_announces_another_manifest(through: Through) -> None:
    if through.kind != "registry":
        return
    name = through.new_name()
    with through.directly() as repository:
        publish_upload(repository, upload("1.0.0", name=name))
    through.proxy.restart(lambda seen: SPOIL if "/manifests/" in seen.path and seen.method == "GET" else None)
    with (
        through.opened() as repository,
        pytest.raises(PublishError, match="is damaged: the registry announces sha256:"),
    ):
        repository.fetch(name, "1.0.0")


def test_an_immutable_tag_that_appeared_meanwhile_is_a_conflict(tmp_path: Path) -> None:
    """As registries with immutable tags do: they refuse the second manifest in words of their own."""
    with serve_registry(tmp_path / "data") as host, proxied(host) as proxy:
        through = Through("registry", proxy)

        def decide(seen: Seen) -> Fault:
            if seen.method != "PUT" or "/manifests/" not in seen.path:
                return None
            proxy.restart(lambda seen: None)
            with through.directly() as repository:
                repository.add(upload("1.0.0", "faster"))
            return Reply(400, body=b"TAG_INVALID: the tag is immutable")

        proxy.restart(decide)
        with through.opened() as repository, pytest.raises(PublishError, match="is published with different content"):
            publish_upload(repository, upload("1.0.0", "slower"))


def test_a_registry_without_encryption_is_named_so(tmp_path: Path) -> None:
    with (
        serve_registry(tmp_path / "data") as host,
        open_repository(Address(f"oci://{host}/team"), {"HOME": str(tmp_path)}) as repository,
        pytest.raises(RepositoryUnreachable) as caught,
    ):
        repository.find_versions("demo")
    assert "--plain-http" in caught.value.hint


def test_a_host_that_cannot_be(tmp_path: Path) -> None:
    address = Address(f"oci://{'a' * 64}.example.com/team")
    with open_repository(address, {"HOME": str(tmp_path)}) as repository, pytest.raises(RepositoryUnreachable):
        repository.find_versions("demo")


def test_a_registry_with_a_password(tmp_path: Path) -> None:
    with serve_registry(tmp_path / "data", with_password=True) as host:
        address = Address(f"oci://{host}/team", plain_http=True)
        with open_repository(address, {"HOME": str(tmp_path)}) as repository, pytest.raises(RepositoryUnauthorized):
            repository.fetch("demo", "1.0.0")
        login = {"TRAINCHART_USERNAME": USER, "TRAINCHART_PASSWORD": PASSWORD, "HOME": str(tmp_path)}
        with open_repository(address, login) as repository:
            assert publish_upload(repository, upload("1.0.0")).is_new
        wrong = login | {"TRAINCHART_PASSWORD": "guess"}
        with open_repository(address, wrong) as repository, pytest.raises(RepositoryUnauthorized) as caught:
            repository.fetch("demo", "1.0.0")
        assert "guess" not in str(caught.value)


def test_a_registry_that_wants_a_token(tmp_path: Path) -> None:
    """The registry redirects to log in elsewhere, for each right anew."""
    with serve_registry(tmp_path / "data") as host, proxied(host) as proxy:

        def decide(seen: Seen) -> Fault:
            authorization = seen.headers.get("Authorization", "")
            if seen.path.startswith("/token?"):
                # ada:secret
                is_known = authorization == "Basic YWRhOnNlY3JldA=="
                scope = "push" if "push" in seen.path else "pull"
                return Reply(200, body=f'{{"token": "{scope}"}}'.encode()) if is_known else Reply(401)
            needed = "pull" if seen.method in ("GET", "HEAD") else "push"
            if authorization in ("Bearer push", f"Bearer {needed}"):
                return None
            scope = f"repository:team/demo:{'pull,push' if needed == 'push' else 'pull'}"
            challenge = f'Bearer realm="http://{proxy.host}/token",service="registry",scope="{scope}"'
            return Reply(401, {"WWW-Authenticate": challenge})

        proxy.restart(decide)
        login = {"TRAINCHART_USERNAME": USER, "TRAINCHART_PASSWORD": PASSWORD}
        with Through("registry", proxy).opened(**login) as repository:
            assert publish_upload(repository, upload("1.0.0")).is_new
        with Through("registry", proxy).opened() as repository, pytest.raises(RepositoryUnauthorized):
            repository.fetch("demo", "1.0.0")


def test_a_web_folder_with_a_password(tmp_path: Path) -> None:
    with serve_web_folder(tmp_path / "data", with_password=True) as host:
        url = f"http://{host}/charts"
        kept = tmp_path / "repositories.yaml"
        kept.write_text(f"repositories:\n- name: team\n  url: {url}/\n  username: {USER}\n  password: {PASSWORD}\n")
        address = Address(url, plain_http=True)
        with open_repository(address, {"HELM_REPOSITORY_CONFIG": str(kept)}) as repository:
            assert publish_upload(repository, upload("1.0.0")).is_new
        with open_repository(address, {"HOME": str(tmp_path)}) as repository, pytest.raises(RepositoryUnauthorized):
            repository.list_versions("demo")


def test_a_server_that_calls_an_archive_an_encoding(tmp_path: Path) -> None:
    """As Apache does with files that end in .tgz."""
    with serve_web_folder(tmp_path / "data") as host, proxied(host) as proxy:
        through, mine = Through("web folder", proxy), upload("1.0.0")
        with through.directly() as repository:
            publish_upload(repository, mine)
        answer = Reply(200, {"Content-Encoding": "x-gzip"}, mine.archive.data)
        gzipped = Reply(200, {"Content-Encoding": "gzip"}, mine.archive.data)
        for reply in (answer, gzipped):
            proxy.restart(lambda seen, reply=reply: reply if seen.path.endswith(".tgz") else None)
            with through.opened() as repository:
                fetched = repository.fetch("demo", "1.0.0")
            assert fetched is not None
            assert fetched.data == mine.archive.data


def test_a_folder_that_is_not_there_on_the_server(tmp_path: Path) -> None:
    with serve_web_folder(tmp_path / "data") as host:
        address = Address(f"http://{host}/nowhere/deep", plain_http=True)
        with (
            open_repository(address, {"HOME": str(tmp_path)}) as repository,
            pytest.raises(RepositoryNotFound) as caught,
        ):
            publish_upload(repository, upload("1.0.0"))
        assert "that folder does not exist" in caught.value.message


def test_a_password_stays_with_its_server(tmp_path: Path) -> None:
    """An index may name archives elsewhere; who serves those learns nothing."""
    with serve_web_folder(tmp_path / "data") as host, proxied(host) as elsewhere, proxied(host) as proxy:
        with Through("web folder", proxy).directly() as repository:
            publish_upload(repository, upload("1.0.0"))
        index = tmp_path / "data/www/charts/index.yaml"
        text = index.read_text()
        index.write_text(text.replace("- demo-1.0.0.tgz", f"- http://{elsewhere.host}/charts/demo-1.0.0.tgz"))
        assert index.read_text() != text
        login = {"TRAINCHART_USERNAME": USER, "TRAINCHART_PASSWORD": PASSWORD}
        with Through("web folder", proxy).opened(**login) as repository:
            assert repository.fetch("demo", "1.0.0") is not None
    assert elsewhere.seen
    assert all("Authorization" not in seen.headers for seen in elsewhere.seen)
    assert all("Authorization" in seen.headers for seen in proxy.seen)


@pytest.mark.parametrize("way", ["blob", "next page", "upload"])
def test_registry_redirect_gives_no_password_away(tmp_path: Path, way: str) -> None:
    """Who serves its blobs may ask for a login too, at an address of its own: https://nvd.nist.gov/vuln/detail/CVE-2020-15157."""
    with (
        serve_registry(tmp_path / "data", with_password=True) as host,
        proxied(host) as elsewhere,
        proxied(host) as proxy,
    ):
        login = {"TRAINCHART_USERNAME": USER, "TRAINCHART_PASSWORD": PASSWORD}
        with Through("registry", proxy).opened(**login) as repository:
            publish_upload(repository, upload("1.0.0"))
        there = f"http://{elsewhere.host}/there"

        def lead_away(seen: Seen) -> Fault:
            if way == "blob" and "/blobs/" in seen.path:
                return Reply(307, {"Location": there})
            if way == "next page" and "/tags/" in seen.path:
                return Reply(200, {"Link": f'<{there}>; rel="next"'}, b'{"tags": []}')
            return Reply(202, {"Location": there}) if way == "upload" and seen.method == "POST" else None

        proxy.restart(lead_away)
        elsewhere.decide = lambda seen: Reply(401, {"WWW-Authenticate": f'Bearer realm="{there}/token"'})
        ask: dict[str, Callable[[Repository], object]] = {
            "blob": lambda repository: repository.fetch("demo", "1.0.0"),
            "next page": lambda repository: repository.find_versions("demo"),
            "upload": lambda repository: publish_upload(repository, upload("2.0.0")),
        }
        with Through("registry", proxy).opened(**login) as repository, pytest.raises(RepositoryUnauthorized):
            ask[way](repository)
    assert elsewhere.seen
    assert all("Authorization" not in seen.headers and "/token" not in seen.path for seen in elsewhere.seen)


def test_web_folder_redirect_gives_no_password_away(tmp_path: Path) -> None:
    with serve_web_folder(tmp_path / "data") as host, proxied(host) as elsewhere, proxied(host) as proxy:
        there = f"http://{elsewhere.host}"
        proxy.restart(lambda seen: Reply(302, {"Location": f"{there}{seen.path}"}))
        login = {"TRAINCHART_USERNAME": USER, "TRAINCHART_PASSWORD": PASSWORD}
        with Through("web folder", proxy).opened(**login) as repository:
            assert repository.find_versions("demo") == ()
            with pytest.raises(PublishError, match="answers 302") as caught:
                publish_upload(repository, upload("1.0.0"))
    assert there in caught.value.hint
    assert elsewhere.seen
    assert all("Authorization" not in seen.headers for seen in elsewhere.seen)
    assert all("Authorization" in seen.headers for seen in proxy.seen)


def test_a_registry_whose_list_never_ends(through: Through) -> None:
    if through.kind != "registry":
        return
    again = Reply(200, {"Link": '</v2/team/charts/demo/tags/list?last=1.0.0>; rel="next"'}, b'{"tags": ["1.0.0"]}')
    through.proxy.restart(lambda seen: again if "/tags/" in seen.path else None)
    with through.opened() as repository, pytest.raises(PublishError, match="redirects in a loop"):
        repository.find_versions("demo")


@pytest.mark.parametrize("body", [b"", b"<html>log in</html>", b"[]", b"null", b'{"config": 5}', b"[" * 100_000])
def test_what_is_no_manifest(through: Through, body: bytes) -> None:
    if through.kind != "registry":
        return
    through.proxy.restart(lambda seen: Reply(200, body=body) if "/manifests/" in seen.path else None)
    with through.opened() as repository, pytest.raises(PublishError, match="is not a manifest") as caught:
        repository.fetch("demo", "1.0.0")
    assert "login page" in caught.value.hint
