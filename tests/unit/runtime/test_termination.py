"""The termination message always fits, survives the round trip, and the first failure is found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_runtime.contract import TERMINATION_MESSAGE_LIMIT
from trainchart_runtime.termination import (
    LINE_LIMIT,
    LINES_KEPT,
    Failure,
    Termination,
    dump_termination,
    find_first_failure,
    parse_failures,
    parse_termination,
)

WORKER = Termination(
    cause="program-error",
    exit_code=1,
    task_type="worker",
    task_index=1,
    run_id="exp-7.2",
    attempt=4,
    own_failures=3,
    peer_failures=1,
    error="ValueError: bad shape",
    step=1200,
    metrics={"accuracy": 0.96, "loss": 0.125},
    started_at=1700000000.123456,
    finished_at=1700000009.654321,
    lines=("step 1200", "ValueError: bad shape", "größe"),
)


def test_a_usual_message_survives_the_round_trip():
    assert parse_termination(dump_termination(WORKER).decode()) == WORKER


def test_of_many_lines_the_last_are_kept():
    lines = [f"step {number} " + "x" * 1000 for number in range(50)]
    found = parse_termination(dump_termination(WORKER._replace(lines=lines)).decode())
    assert 5 < len(found.lines) <= LINES_KEPT
    assert found.lines[-1] == lines[-1][:LINE_LIMIT]
    assert found.lines[0].startswith(f"step {50 - len(found.lines)} ")
    assert found.error == WORKER.error and found.metrics == WORKER.metrics


def test_terminal_control_characters_cost_lines_not_the_limit():
    body = dump_termination(WORKER._replace(lines=["\x00" * 300] * 30, error="\x01" * 500))
    assert len(body) <= TERMINATION_MESSAGE_LIMIT
    assert parse_termination(body.decode()).cause == "program-error"


texts = st.text() | st.text(st.sampled_from('"\\\x00\x1f\ud800😀'), min_size=200, max_size=600)
messages = st.builds(
    Termination,
    cause=texts,
    exit_code=st.integers(0, 255),
    task_type=texts,
    task_index=st.integers(0, 10**6),
    run_id=texts,
    error=texts,
    step=st.none() | st.integers(0, 10**18),
    metrics=st.dictionaries(texts, st.floats(allow_nan=False, allow_infinity=False)),
    started_at=st.floats(0, 4e9),
    finished_at=st.floats(0, 4e9),
    lines=st.lists(texts),
)


@given(messages)
def test_any_message_fits_and_can_be_read_again(message):
    body = dump_termination(message)
    assert len(body) <= TERMINATION_MESSAGE_LIMIT
    found = parse_termination(body.decode("utf-8"))
    assert found is not None
    assert found.exit_code == message.exit_code and found.step == message.step
    assert abs(found.finished_at - message.finished_at) < 1e-5


@pytest.mark.parametrize(
    "text", ["", "Killed", "{", "[1]", "null", '{"cause": 1, "exitCode": 0}', '{"cause": "x"}', "[" * 100000]
)
def test_text_of_somebody_else_is_no_message(text):
    assert parse_termination(text) is None


@given(
    st.dictionaries(
        st.sampled_from(["cause", "exitCode", "lines", "metrics", "step", "attempt"]), st.none() | st.text()
    )
)
def test_odd_fields_never_raise(document):
    parse_termination(json.dumps({"cause": "killed", "exitCode": 1, **document}))


def ended(cause, at):
    return Termination(cause, 1, finished_at=at)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ({}, None),
        ({"chief-0": ended("succeeded", 1.0), "ps-0": ended("terminated", 2.0)}, None),
        ({"worker-0": ended("peer-lost", 5.0), "worker-1": ended("killed", 5.1)}, "worker-1"),
        ({"worker-0": ended("program-error", 5.2), "worker-1": ended("killed", 5.1)}, "worker-1"),
        ({"worker-0": ended("peer-unresolvable", 5.2), "worker-1": ended("peer-lost", 5.1)}, "worker-1"),
        ({"b": ended("killed", 5.0), "a": ended("killed", 5.0)}, "a"),
        ({"ps-0": ended("terminated", 1.0), "chief-0": ended("peer-lost", 5.0)}, "chief-0"),
        ({"chief-0": ended("a-cause-of-tomorrow", 5.0), "ps-0": ended("peer-lost", 1.0)}, "chief-0"),
    ],
)
def test_the_first_failure_that_is_not_a_peers(messages, expected):
    assert find_first_failure(messages) == expected


@pytest.mark.parametrize("cause", ["a-cause-of-tomorrow", "killed"])
def test_a_cause_of_a_newer_launcher_is_kept(cause):
    assert parse_termination(json.dumps({"cause": cause, "exitCode": 1})).cause == cause


@pytest.mark.parametrize("cause", ["", "it is fine", "killed\n", "\x1b[31mkilled", "k" * 61, "Killed", "\ud800"])
def test_what_is_no_name_of_a_cause_is_not_believed(cause):
    assert parse_termination(json.dumps({"cause": cause, "exitCode": 1})).cause == "program-exit"


def test_texts_are_fit_for_records_and_events():
    said = "a\x1b]52;c;ZQ==\x07\x1b[2J\nline \u202e\ud800 Authorization: Bearer abcdef12345"
    document = {"cause": "program-error", "exitCode": 1, "error": said, "lines": [said]}
    message = parse_termination(json.dumps(document))
    assert message.error == message.lines[0] == "aline  Authorization: Bearer ***"


def test_failure_has_a_known_cause_and_no_terminal_commands():
    forged = {"number": 1, "at": 5.0, "cause": "\x1b[31mlies 17", "exitCode": 0, "error": "\x1b]0;title\x07bad\rthing"}
    assert parse_failures([forged]) == (Failure(1, 5.0, "program-exit", 0, "badthing"),)
    assert parse_failures([{**forged, "cause": "killed"}])[0].cause == "killed"


def test_errors_of_earlier_ends_are_cut_between_words():
    error = "ValueError: " + "variables " * 60
    message = WORKER._replace(failures=(Failure(1, 5.0, "program-error", 1, error),))
    (failure,) = parse_termination(dump_termination(message).decode()).failures
    assert len(failure.error) <= 200 and failure.error.endswith(" variables…")
    assert parse_failures([{"number": 1, "at": 5.0, "cause": "killed", "error": "a " * 400}])[0].error.endswith("a…")
