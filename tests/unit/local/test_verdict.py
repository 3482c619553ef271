"""The rules of a local run's course."""

from __future__ import annotations

import pytest

from trainchart.local.verdict import Next, back_off_seconds, decide_next


@pytest.mark.parametrize(
    ("exit_code", "cause", "restarts", "expected"),
    [
        (0, "succeeded", 0, Next.FINISHED),
        (1, "program-error", 0, Next.GIVE_UP),
        (137, "killed", 0, Next.GIVE_UP),
        (78, "contract-broken", 0, Next.GIVE_UP),
        (-9, "", 0, Next.RESTART),
        (-9, "", 2, Next.RESTART),
        (-9, "", 3, Next.GIVE_UP),
        (143, "terminated", 0, Next.RESTART),
        (143, "", 0, Next.GIVE_UP),
    ],
)
def test_only_what_ended_from_outside_is_restarted(exit_code: int, cause: str, restarts: int, expected: Next) -> None:
    assert decide_next(exit_code, cause, restarts=restarts, max_restarts=3) is expected


def test_back_off_is_that_of_a_kubelet() -> None:
    assert [back_off_seconds(number) for number in range(8)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert back_off_seconds(10_000) == 300
