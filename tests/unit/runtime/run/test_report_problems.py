"""Metrics that are NaN and tasks that are far slower than the others are problems of the record, and end no run."""

from __future__ import annotations

import pytest

from tests.unit.runtime.run_scenes import NOW, group, make_plan, see
from trainchart_runtime.cluster import BETWEEN_GRAPH_ASYNC
from trainchart_runtime.restart import STEADY_SECONDS
from trainchart_runtime.run.observation import parse_report
from trainchart_runtime.run.report_problems import find_report_problems
from trainchart_runtime.run.rules import decide
from trainchart_runtime.run.state import RUNNING, RunProgress

PLAN = make_plan(BETWEEN_GRAPH_ASYNC, worker=4, ps=1)


def say(speed=None, **more):
    return parse_report({"attempt": 1, "state": "running", "step": 9, "examplesPerSecond": speed, **more})


def find(*reports, ran=STEADY_SECONDS):
    """The problems that are recorded `ran` seconds after the start, with what the launchers of the workers say."""
    started = decide(PLAN, see(group(PLAN), plan=PLAN), None).state
    by_uid = {f"uid-worker-{index}": report for index, report in enumerate(reports)}
    seen = see(group(PLAN), now=NOW + ran, plan=PLAN)._replace(reports=by_uid)
    decision = decide(PLAN, seen, started)
    assert decision.state.phase == RUNNING
    return [(problem.subject, problem.cause, problem.message) for problem in decision.state.problems]


def test_metrics_that_are_nan_are_named():
    [found] = find(say(), say(nanMetrics=["loss", "accuracy", 7]))
    assert found == ("exp1-mnist-worker-1", "not-a-number", "NaN: loss, accuracy")


def test_first_names_of_many_nan_metrics_are_kept():
    report = say(nanMetrics=[f"m{number}" for number in range(50)])
    assert len(report.nan_metrics) == 6
    [(_, _, message)] = find(report)
    assert message == "NaN: m0, m1, m2, m3, m4, …"


def test_a_task_far_slower_than_the_others_is_named():
    [(subject, cause, message)] = find(say(560.0), say(29.4), say(566.0), say(571.0))
    assert (subject, cause) == ("exp1-mnist-worker-1", "slow-task")
    assert "third of the usual 563 examples" in message


KILL = "the kernel killed a process of the container for memory; the container's limit is 128 MiB"


def find_kill(report, last_step_at=None, ran=60.0):
    """What is recorded of a launcher's report, `ran` seconds after the start, of a run with this last step."""
    started = decide(PLAN, see(group(PLAN), plan=PLAN), None).state
    progress = None if last_step_at is None else RunProgress(last_step_at, 1, step=75, best_step=75)
    seen = see(group(PLAN), now=NOW + ran, plan=PLAN)
    own = [pod for pod in seen.pods if pod.uid == "uid-worker-1"]
    state = started._replace(progress=progress)
    return [each.message for _, each in find_report_problems(own, {"uid-worker-1": report}, state, seen.now)]


def test_a_killed_child_is_named_where_no_step_follows():
    report = say(memoryKill=KILL, memoryKilledAt=NOW + 10)
    assert find_kill(report) == [f"{KILL}; no step since"]
    assert find_kill(report, NOW + 12) == [f"{KILL}; no step since"], "it was made, or seen, at about the same time"
    [(subject, cause, _)] = find(say(step=None), say(memoryKill=KILL, memoryKilledAt=NOW + 10, step=None))
    assert (subject, cause) == ("exp1-mnist-worker-1", "child-killed")


@pytest.mark.parametrize("text", ["", 7, None, "\u2603"])
def test_a_kill_without_words_is_no_problem(text):
    assert not find_kill(say(memoryKill=text, memoryKilledAt=NOW))
    assert not find_kill(say(memoryKill=KILL, memoryKilledAt="now")), "its time is not known"


def test_a_killed_child_of_a_run_that_goes_on_is_no_problem():
    report = say(memoryKill=KILL, memoryKilledAt=NOW + 10)
    assert not find_kill(report, NOW + 25)
    assert not find_kill(report, NOW + 9, ran=30), "the next step may be under way"
    assert not find_kill(say(memoryKill=KILL, memoryKilledAt=NOW, state="parked"))


def test_storage_that_does_not_answer_is_named():
    words = "cannot read /checkpoints/.trainchart/owners/exp1-mnist-worker-1.owner: no answer"
    [found] = find(say(), say(state="paused", silentStorage=words), ran=5)
    assert found == ("exp1-mnist-worker-1", "storage-silent", words)
    assert not find(say(silentStorage=7), say(silentStorage="\u2603"))


def test_a_task_that_its_cpu_limit_stops_is_named():
    [found] = find(say(), say(step=None, cpuThrottling={"share": 0.97, "limit": 0.02}), ran=5)
    words = "throttled for more than half of the last minute: its CPU limit is 20m"
    assert found == ("exp1-mnist-worker-1", "cpu-throttled", words)
    assert not find_kill(say(state="parked", cpuThrottling={"share": 0.97, "limit": 0.02}))


@pytest.mark.parametrize(
    "speeds",
    [(560.0, 29.4), (500.0, 400.0, 200.0), (2200.0, 560.0, 540.0, 550.0), (29.0, None, None, 560.0), (0.0, 0.0, 0.0)],
)
def test_speeds_of_few_or_similar_tasks_are_no_problem(speeds):
    assert not find(*map(say, speeds))


def test_a_task_may_be_slow_at_its_start():
    assert not find(say(560.0), say(29.4), say(566.0), say(571.0), ran=STEADY_SECONDS - 1)
