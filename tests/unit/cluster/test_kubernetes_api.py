"""The door to the API: pages, and every way to get no answer as an error of the right kind, with secrets kept."""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, make_pods
from tests.small_cluster.small_api import SmallApi, serve_small_api
from tests.support.endless_server import serve_endless
from trainchart.cluster.io import kubernetes_api, releases
from trainchart.cluster.io.kubeconfig import Entry
from trainchart.cluster.io.kubernetes_api import PODS, KubernetesApi, connect
from trainchart.cluster.snapshot import Unreadable
from trainchart.errors import ClusterError, Conflict, Forbidden, NotFound, TooLong, Unauthorized, Unreachable


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallApi]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serve_small_api() as server:
        server.objects = {"pods": make_pods()}
        yield server


def open_door(api: SmallApi, **user: Any) -> KubernetesApi:
    return connect(Entry("small", NAMESPACE, {"server": f"http://127.0.0.1:{api.port}"}, user))


def test_all_pages_are_read(api: SmallApi) -> None:
    api.page_size = 3
    assert len(open_door(api).list_objects(PODS, "")) == 4
    assert len(api.requests) == 2


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, ClusterError), (401, Unauthorized), (403, Forbidden), (404, NotFound), (409, Conflict), (410, Conflict),
     (429, Unreachable), (500, Unreachable), (503, Unreachable), (418, ClusterError)],
)  # fmt: skip
@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b'{"kind":"Status","message":"not for you"}'),
        ("application/json; charset=utf-8", b'{"message": 5}'),
        ("text/html", b"<html>" + b"not for you " * 9999),
        ("", b"\xff\xfe"),
        ("application/json", b""),
    ],
)
def test_an_answer_is_an_error_of_its_kind(
    api: SmallApi, status: int, kind: type[ClusterError], content_type: str, body: bytes
) -> None:
    api.raw = (status, content_type, body)
    with pytest.raises(ClusterError) as caught:
        open_door(api).list_objects(PODS, NAMESPACE)
    assert type(caught.value) is kind
    assert caught.value.message.startswith("cannot list pods in namespace team-a: ")
    assert len(caught.value.message) < 450


def test_a_full_quota_is_no_missing_right(api: SmallApi) -> None:
    words = b'pods \\"a\\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=9, limited: pods=9'
    api.raw = (403, "application/json", b'{"kind":"Status","message":"' + words + b'"}')
    with pytest.raises(Forbidden) as caught:
        open_door(api).list_objects(PODS, NAMESPACE)
    assert caught.value.hint.startswith("free what the quota counts")
    assert "right" not in caught.value.hint


@pytest.mark.parametrize("body", [b"<h1>Log in</h1>", b"[]", b'"text"', b""])
def test_an_answer_that_is_none_of_an_api(api: SmallApi, body: bytes) -> None:
    api.raw = (200, "application/json", body)
    with pytest.raises(ClusterError, match="does not respond like a Kubernetes API"):
        open_door(api).list_objects(PODS, "")


@pytest.mark.parametrize("items", [b"{}", b'{"items": null}', b'{"items": 5}', b'{"items": [1, null]}'])
def test_a_list_without_objects_is_empty(api: SmallApi, items: bytes) -> None:
    api.raw = (200, "application/json", items)
    assert open_door(api).list_objects(PODS, "") == ()


def test_an_answer_nested_without_end_is_none_of_an_api(api: SmallApi) -> None:
    for status in (200, 500):
        api.raw = (status, "application/json", b"[" * 200_000)
        with pytest.raises(ClusterError, match="cannot list pods"):
            open_door(api).list_objects(PODS, NAMESPACE)


def test_a_list_that_goes_on_without_end_is_given_up(api: SmallApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_api, "PAGES_LIMIT", 20)
    api.raw = (200, "application/json", b'{"items": [], "metadata": {"continue": ["again"]}}')
    with pytest.raises(ClusterError, match="has not ended after 20 pages"):
        open_door(api).list_objects(PODS, NAMESPACE)
    assert len(api.requests) == 20


def test_pages_have_a_limit_together(api: SmallApi, monkeypatch: pytest.MonkeyPatch) -> None:
    body = b'{"items": [], "metadata": {"continue": ["again"]}}'
    monkeypatch.setattr(kubernetes_api, "LIST_LIMIT", 5 * len(body))
    monkeypatch.setattr(kubernetes_api, "PAGES_LIMIT", 20)
    api.raw = (200, "application/json", body)
    with pytest.raises(TooLong, match=f"has not ended after .* {5 * len(body)} bytes"):
        open_door(api).list_objects(PODS, NAMESPACE)
    assert len(api.requests) == 6


def test_too_many_records_of_helm_are_unreadable(api: SmallApi, monkeypatch: pytest.MonkeyPatch) -> None:
    assert releases.read_revisions(open_door(api), NAMESPACE, "exp1") == ()
    monkeypatch.setattr(kubernetes_api, "LIST_LIMIT", 10)
    assert isinstance(releases.read_revisions(open_door(api), NAMESPACE, "exp1"), Unreadable)
    assert isinstance(releases.read_unfinished_upgrade(open_door(api), NAMESPACE, "exp1")[0], Unreadable)


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"a"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b" "),
    ],
)
def test_an_answer_that_goes_on_is_given_up(start: bytes, more: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_api, "ANSWER_SECONDS", 0.3)
    with serve_endless(start, more) as server:
        entry = Entry("a", NAMESPACE, {"server": server}, {})
        with pytest.raises(Unreachable, match="did not complete its answer in time"):
            connect(entry).list_objects(PODS, "")


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_end_is_cut(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes_api, "ANSWER_LIMIT", 1000)
    start = f"HTTP/1.1 {status} x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with serve_endless(start, b"400\r\n" + b"x" * 1024 + b"\r\n", pause_seconds=0) as server:
        entry = Entry("a", NAMESPACE, {"server": server}, {})
        with pytest.raises(ClusterError, match="more than 1000 bytes") as refusal:
            connect(entry).read_log("p", NAMESPACE, "c")
    assert "--tail" in refusal.value.hint


@pytest.mark.parametrize("body", [b"", b"T a", b"T a\n", b"T a\x0cb\nT c\xe2\x80\xa8d\r\n\n"])
def test_a_log_is_cut_at_line_feeds_only(api: SmallApi, body: bytes) -> None:
    api.raw = (200, "text/plain", body)
    assert "".join(f"{line}\n" for line in open_door(api).read_log("p", NAMESPACE, "c")).encode() in (
        body,
        body + b"\n",
    )


def test_newest_lines_of_a_log_are_returned(api: SmallApi) -> None:
    api.raw = (200, "text/plain", b"T old\n" * 1000 + b"T new\nT " + b"x" * 200_000 + b"\n")
    new, long = open_door(api).read_log("p", NAMESPACE, "c", newest=2010)
    assert new == "T new" and "…" in long and len(long) == 2000
    api.raw = (404, "application/json", b'{"message": "no pod"}')
    with pytest.raises(NotFound, match="no pod"):
        open_door(api).read_log("p", NAMESPACE, "c", newest=2010)


def test_a_compressed_answer_is_not_unpacked(api: SmallApi) -> None:
    packed = gzip.compress(b'{"items": []}')
    api.raw, api.encoding = (200, "application/json", packed), "gzip"
    with pytest.raises(ClusterError, match="does not respond like a Kubernetes API"):
        open_door(api).list_objects(PODS, NAMESPACE)
    assert api.accepted == ["identity"]


def test_nobody_there_is_unreachable_and_chained() -> None:
    with pytest.raises(Unreachable, match="refused") as caught:
        connect(Entry("a", "b", {"server": "http://127.0.0.1:1"}, {"token": "hush"})).list_objects(PODS, "")
    assert caught.value.__cause__ is not None
    assert "hush" not in caught.value.message


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"client-certificate": "/nowhere", "client-key": "/nowhere"}, "that the kubeconfig names is not there"),
        ({"client-certificate-data": "!", "client-key-data": "!"}, "cannot use the context"),
        ({"token": 5}, "cannot use the context"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider not supported"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/nowhere"}}, "/nowhere is not there"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}}, "returned 1"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}}, "JSONDecodeError"),
        ({"exec": {"apiVersion": "odd/v7", "command": "true"}}, "odd/v7"),
    ],
)
def test_credentials_that_do_not_work_are_said(api: SmallApi, user: dict[str, Any], words: str) -> None:
    with pytest.raises(ClusterError, match=words):
        open_door(api, **user).list_objects(PODS, "")


@pytest.mark.timeout(30)
@pytest.mark.parametrize("key", ["certificate-authority", "client-certificate", "client-key", "tokenFile"])
@pytest.mark.parametrize("kind", ["pipe", "device", "large"])
def test_files_that_never_end_are_not_read(tmp_path: Path, key: str, kind: str) -> None:
    path = tmp_path / "file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 9 * 1024**3)
    cluster = {"server": "https://127.0.0.1:1"}
    cluster, user = ({**cluster, key: path}, {}) if key == "certificate-authority" else (cluster, {key: path})
    with pytest.raises(ClusterError, match=f"{key} of the kubeconfig: .*(neither a file|larger than)"):
        connect(Entry("small", NAMESPACE, cluster, user))


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({"proxy-url": "socks5://127.0.0.1:1"}, {}),
        ({"proxy-url": 5}, {}),
        ({}, {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": 5, "env": 7}}),
    ],
)
def test_sections_of_a_wrong_form_are_refused(cluster: dict[str, Any], user: dict[str, Any]) -> None:
    with pytest.raises(ClusterError, match="cannot "):
        connect(Entry("small", NAMESPACE, {"server": "http://127.0.0.1:1", **cluster}, user)).list_objects(PODS, "")


def test_a_credential_plug_in_is_told_the_version_that_it_speaks(api: SmallApi, tmp_path: Path) -> None:
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, os\n"
        "asked = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "print(json.dumps({'status': {'token': asked['apiVersion'].replace('/', '-')}}))\n"
    )
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(script)]}
    assert len(open_door(api, exec=plugin).list_objects(PODS, "")) == 4
