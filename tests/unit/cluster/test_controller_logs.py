"""What the log of a run controller says that it cannot do."""

from __future__ import annotations

from trainchart.cluster.controller_logs import describe_troubles
from trainchart.cluster.log_lines import parse_line

START = "2026-11-30T02:00:21.000000000Z trainchart-controller: RunRunning: every pod is running"
WEBHOOK = (
    "2026-11-30T02:03:09.000000000Z trainchart-controller: controlling the run: PATCH /api/v1/namespaces/ads/"
    'configmaps/exp-state: 500 Internal error occurred: failed calling webhook "audit.example": no endpoints '
    "available; trying again"
)
WORKS = "2026-11-30T02:05:09.000000000Z trainchart-controller: controlling the run: works again"


def read(*lines: str) -> list[str]:
    return list(describe_troubles([parse_line("", line) for line in lines]))


def test_what_a_run_controller_cannot_do_is_named() -> None:
    (words,) = read(START, WEBHOOK)
    assert words.startswith("its run controller keeps failing: PATCH /api/v1/")
    assert (
        'failed calling webhook "audit.example": no endpoints available (controlling the run, since 2026-11-' in words
    )
    assert "The owner of that webhook must" in words


def test_what_works_again_is_not_named() -> None:
    assert read(START, WEBHOOK, WORKS) == []
    (words,) = read(WEBHOOK, WORKS, "trainchart-controller: watching pods: cannot connect: timed out; trying again")
    assert "keeps failing: cannot connect: timed out (watching pods). Until that works again, steps" in words


def test_what_nothing_waits_for_is_not_named() -> None:
    assert read("trainchart-controller: creating Events: POST /e: 403 forbidden; trying again") == []
