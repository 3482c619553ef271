"""How long steps take now, and since when they take far longer, as the marks in a run's record say."""

from __future__ import annotations

import itertools

import pytest

from trainchart.cluster.pace import find_pace, find_slowdown
from trainchart_runtime.run.state import RUNNING, HistoryEntry, Incident, RunProgress, RunState, StepMark

NOW = 1_790_000_000.0


def run_at(*stretches: tuple[float, float], rest: tuple[float, int] = (0.0, 0), program: str = "abc-1") -> RunState:
    """Return the state of a run that made steps for (seconds, seconds each), with a mark behind each stretch.

    `rest` is how long after the last mark how many more steps were made.
    """
    marks = [StepMark(NOW, 0, program)]
    for seconds, each in stretches:
        marks.append(StepMark(marks[-1].at + seconds, marks[-1].step + int(seconds / each), program))
    uid, _, attempt = program.partition("-")
    progress = RunProgress(marks[-1].at + rest[0], int(attempt), marks[-1].step + rest[1], None, {}, uid=uid)
    began = HistoryEntry(NOW - 60, RUNNING, "every pod is running")
    return RunState("", RUNNING, NOW - 60, NOW, history=(began,), first_step=0, progress=progress, marks=marks)


@pytest.mark.parametrize(
    ("state", "pace"),
    [
        (run_at((600, 0.25), (66, 6)), 6.0),
        (run_at((600, 0.25), (66, 6), rest=(22, 1)), (66 + 22) / 12),
        (run_at((600, 0.25), rest=(70, 7)), 10.0),
        (run_at(rest=(40, 20)), 5.0),
        (run_at(), 0.0),
    ],
    ids=["last stretch", "with the rest", "rest alone", "average of the run", "no step"],
)
def test_pace_is_that_of_the_last_minute_or_two(state: RunState, pace: float) -> None:
    assert find_pace(state) == pytest.approx(pace)


def test_slowdown_shows_when_it_began() -> None:
    state = run_at((70, 0.25), (70, 0.25), (70, 0.3), (63, 9), (63, 9), rest=(30, 3))
    found = find_slowdown(state)
    assert found is not None
    assert found.since == NOW + 210
    assert found.usual == pytest.approx(0.25)


@pytest.mark.parametrize(
    "state",
    [
        run_at((70, 0.25), (70, 0.25), (70, 0.6), (70, 0.6), (70, 0.7)),
        run_at((70, 0.25), (70, 0.25), (70, 7)),
        run_at((70, 0.25), (70, 0.25), (90, 9), (90, 9), (70, 0.25)),
        run_at((70, 0.01), (70, 7), (70, 7), (70, 7)),
        run_at(*[(70, 0.25), (90, 9)] * 4),
        run_at((70, 7)),
        run_at(),
    ],
    ids=["little slower", "for a minute", "over", "first step before a restore", "evaluates by turns", "short", "none"],
)
def test_steps_that_are_as_long_as_usual_are_not_slow(state: RunState) -> None:
    assert find_slowdown(state) is None


def test_the_time_before_a_start_is_not_slow() -> None:
    state = run_at((70, 0.25), (70, 0.25), (700, 9), (63, 0.25))
    assert find_slowdown(run_at((70, 0.25), (70, 0.25), (700, 9))) is not None
    assert find_slowdown(run_at((70, 0.25), (70, 0.25), (700, 9)), [NOW - 50, NOW + 820]) is None
    assert find_pace(state, [NOW + 820]) == pytest.approx(0.25)


def test_marks_of_another_program_are_not_joined() -> None:
    first, second = run_at((70, 0.5), (70, 0.5)), run_at((70, 5), (70, 5), program="abc-2")
    later = [mark._replace(at=mark.at + 200) for mark in second.marks]
    state = second._replace(marks=(*first.marks, *later), progress=second.progress)
    assert find_pace(state) == pytest.approx(5.0)
    found = find_slowdown(state)
    assert found is not None
    assert found.since == NOW + 200


def test_damaged_marks_break_nothing() -> None:
    state = run_at((70, 0.5))
    for marks in itertools.permutations((StepMark(0, 1, ""), StepMark(NOW, -5, "abc-1"), *state.marks)):
        damaged = state._replace(marks=marks)
        assert find_pace(damaged) >= 0
        find_slowdown(damaged)


def test_time_of_a_death_is_not_that_of_slow_steps() -> None:
    state = run_at((70, 0.25), (70, 0.25), (480, 60), rest=(30, 120))
    assert find_slowdown(state) is not None
    death = Incident(NOW + 300, "exp1-mnist-worker-0", "node2", "node-lost", "started again")
    assert find_slowdown(state._replace(incidents=(death,))) is None
    assert find_pace(state._replace(incidents=(death,))) == pytest.approx(0.25)
