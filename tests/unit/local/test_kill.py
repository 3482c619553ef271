"""`--kill POD@TIME`."""

from __future__ import annotations

import pytest

from trainchart.errors import ToolError, UsageError
from trainchart.local.kill import KillRequest, parse_kills

LABELS = ("chief-0", "worker-0", "worker-1")


def test_requests_are_parsed_and_sorted() -> None:
    assert parse_kills(["worker-1@1m", "chief-0@20s", "worker-0@500ms", "chief-0@3"], LABELS) == (
        KillRequest("worker-0", 0.5, "worker-0@500ms"),
        KillRequest("chief-0", 3.0, "chief-0@3"),
        KillRequest("chief-0", 20.0, "chief-0@20s"),
        KillRequest("worker-1", 60.0, "worker-1@1m"),
    )


def test_missed_kill_says_whether_run_or_pod_ended_first() -> None:
    request = KillRequest("worker-1", 20.0, "worker-1@20s")
    assert request.explain_miss(4.2) == "--kill worker-1@20s had no effect: the run ended before that, after 4.2 s"
    assert request.explain_miss(31.0) == "--kill worker-1@20s had no effect: worker-1 had ended by then"


@pytest.mark.parametrize("text", ["worker-1", "worker-1@", "worker-1@soon", "@20s", "worker-1@-2s", "worker-7@20s"])
def test_what_cannot_be_is_refused(text: str) -> None:
    expected = ToolError if text == "worker-7@20s" else UsageError
    with pytest.raises(expected) as caught:
        parse_kills([text, "chief-0@1s"], LABELS)
    (problem,) = caught.value.problems
    assert text in problem.message
    assert problem.hint
