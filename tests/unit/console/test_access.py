"""Who may ask the console: names of the Host header, origins, loopback."""

from __future__ import annotations

import pytest

from trainchart.console.access import HEADERS, is_loopback, is_same, list_names, refuse_host, refuse_origin

NAMES = list_names("127.0.0.1", 8123)


def test_only_the_names_of_loopback_are_answered() -> None:
    assert NAMES == ("127.0.0.1:8123", "localhost:8123")
    assert list_names("::1", 80) == ("[::1]", "localhost")
    assert not any(refuse_host(name, NAMES) for name in (*NAMES, "LOCALHOST:8123"))


@pytest.mark.parametrize(
    "header", ["", "evil.example:8123", "127.0.0.1", "127.0.0.1:8124", "127.0.0.1:8123.evil.example"]
)
def test_other_host_headers_are_refused(header: str) -> None:
    assert refuse_host(header, NAMES)


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "https://127.0.0.1:8123", "http://127.0.0.1:81"])
def test_forms_of_other_origins_are_refused(origin: str) -> None:
    host, origins = {"host": "localhost:8123"}, [f"http://{name}" for name in NAMES]
    assert refuse_origin({"origin": origin, **host} if origin else host, origins)
    assert not refuse_origin({"origin": "http://localhost:8123", **host}, origins)
    assert refuse_origin({"origin": "http://127.0.0.1:8123", **host}, origins)


def test_addresses_that_others_reach_are_not_loopback() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.0.1", "example.com", "")))


def test_secrets_of_any_text_are_compared() -> None:
    assert is_same("é", "é")
    assert not is_same("é", "e")


def test_no_script_or_style_of_a_page_itself_may_run() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
