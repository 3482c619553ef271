"""Who may read a launcher's pages: everybody the open ones, the guarded ones only who knows the key."""

from __future__ import annotations

import pytest

from trainchart_runtime.io.pages import OPEN, Guard, _answer

KEY = "0c6e4f0e-6b0f-4c3c-9d57-2f3a8f1d8f10"
PAGES = {"/status": ("application/json", lambda query: "{}\n"), "/metrics": ("text/plain", lambda query: "up 1\n")}
GUARD = Guard(("/status",), KEY)


def ask(path: str, *headers: str, address: str = "10.1.2.3", guard: Guard = GUARD) -> int:
    lines = (f"GET {path} HTTP/1.1", "Host: exp1-chief-0.exp1:2223", *headers, "", "")
    return int(_answer("\r\n".join(lines).encode(), PAGES, guard, address).split()[1])


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ((), 401),
        ((f"Authorization: Bearer {KEY}",), 200),
        ((f"AUTHORIZATION:Bearer {KEY}",), 200),
        ((f"Authorization: Bearer {KEY[:-1]}",), 401),
        ((f"Authorization: Bearer {KEY}0",), 401),
        ((f"Authorization: {KEY}",), 401),
        (("Authorization: Bearer ",), 401),
        (("Authorization:",), 401),
        ((f"X-Authorization: Bearer {KEY}",), 401),
        ((f"Authorization: Bearer {KEY}", "Authorization: Bearer no"), 401),
        (("Authorization: Bearer \xff",), 401),
    ],
)
def test_a_guarded_page_needs_the_key(headers: tuple[str, ...], code: int) -> None:
    assert ask("/status?x=5", *headers) == code
    assert ask("/metrics", *headers) == 200


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_the_pod_itself_needs_no_key(address: str) -> None:
    assert ask("/status", address=address) == 200


@pytest.mark.parametrize("address", ["", "::ffff:10.1.2.3", "fd00::1", "10.127.0.1", "12.7.0.1", "::11"])
def test_other_addresses_need_it(address: str) -> None:
    assert ask("/status", address=address) == 401


def test_without_a_key_pages_are_open() -> None:
    assert ask("/status", guard=OPEN) == ask("/status", guard=Guard(("/status",), "")) == 200


def test_what_is_not_there_is_not_found() -> None:
    assert ask("/log") == 404
