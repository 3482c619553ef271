"""How pods share the room that a record has for their last lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_runtime.kept_logs import LEFT_OUT, POD_LIMIT, TOTAL_LIMIT, keep_lines, share_room
from trainchart_runtime.log_text import is_warning


def test_every_pod_keeps_its_last_lines_and_the_first_most():
    talk = [f"step {number} of a chatty program" for number in range(200)]
    logs = {"worker-1": talk * 5} | {f"worker-{number}": talk for number in range(2, 129)}
    kept = share_room(logs)
    assert len(kept["worker-1"]) == 200
    assert all(lines[-1] == talk[-1] and len(lines) > 20 for lines in kept.values())
    assert len(json.dumps({name: {"at": 1.0, "lines": lines} for name, lines in kept.items()})) <= TOTAL_LIMIT


def test_tokens_and_passwords_are_not_kept():
    lines = ["ValueError: Invalid header value b'Bearer tk-4411-please'", "GET https://ada:secret@example.com/data"]
    assert keep_lines(lines) == [
        "ValueError: Invalid header value b'Bearer ***'",
        "GET https://ada:***@example.com/data",
    ]


def test_room_that_a_pod_does_not_need_is_the_others():
    talk = [f"step {number:06}" for number in range(200)]
    quiet = {f"worker-{number}": ["waits"] for number in range(100)}
    assert share_room({"chief-0": talk, **quiet, "ps-0": talk})["ps-0"] == talk


def test_a_warning_is_kept_before_other_lines():
    lines = ["WARNING input: skipped train-00002.csv", *(f"step {number}" for number in range(150))]
    kept = keep_lines(lines, 1000)
    assert kept[:2] == [lines[0], LEFT_OUT]
    assert kept[-1] == "step 149"
    assert len(json.dumps(kept)) <= 1000
    assert keep_lines(lines[1:], 1000)[0] == LEFT_OUT
    assert keep_lines(kept, 400)[:2] == kept[:2]


@given(st.lists(st.text(max_size=3000), max_size=30), st.integers(400, POD_LIMIT))
def test_lines_fit_and_the_last_one_is_there(lines, limit):
    kept = keep_lines(lines, limit)
    assert sum(len(json.dumps(line)) + 2 for line in kept) <= limit
    assert bool(kept) == bool(lines)
    assert not lines or kept[-1].rstrip("…") == lines[-1][: len(kept[-1].rstrip("…"))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("WARNING input: skipped part", True),
        ("zlib.error: Error -3 while decompressing data", True),
        ("Traceback (most recent call last):", True),
        ("WARNING: All log messages before absl::InitializeLog() is called are written to STDERR", False),
        ("I0000 00:00:1795835432.667248      19 port.cc:153] You may see floating-point round-off errors.", False),
        ("step 12, loss 0.5", False),
    ],
)
def test_warnings_are_known_by_their_words(line, expected):
    assert is_warning(line) == expected
