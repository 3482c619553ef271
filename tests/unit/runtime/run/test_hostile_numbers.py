"""Numbers that programs and users can make up: a controller can read every record that it writes."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.runtime.run_scenes import NOW, PLAN, group, pod, running, see, zero
from trainchart_runtime.cluster import MAX_REPLICAS
from trainchart_runtime.contract import RUN_ID, TRAINING_CONTAINER
from trainchart_runtime.progress import COUNT_LIMIT
from trainchart_runtime.run.observation import parse_pod, parse_report
from trainchart_runtime.run.rules import decide
from trainchart_runtime.run.state import (
    RESTARTING,
    Deaths,
    ReportedFailures,
    RoleState,
    RunProgress,
    Scaling,
    Setback,
    StateError,
    StepMark,
    dump_state,
    enter_phase,
    parse_state,
)
from trainchart_runtime.termination import parse_failures, parse_termination

LARGEST = 2**63 - 1
FAILURE = {"number": 2, "at": NOW, "cause": "program-error", "exitCode": 1, "error": "x"}
REPORT = {
    "attempt": 3,
    "peerFailures": 1,
    "step": 200,
    "examplesPerSecond": 5.0,
    "metrics": {"loss": 0.5},
    "ended": 2,
    "failures": [FAILURE],
    "memoryKill": "killed",
    "memoryKilledAt": NOW - 60,
    "peersWaiting": [{"address": "a:1", "reason": "refused", "seconds": 100}],
}
WORDS = {
    "cause": "terminated",
    "exitCode": 143,
    "taskType": "worker",
    "taskIndex": 0,
    "runId": "run-1",
    "attempt": 1,
    "ownFailures": 1,
    "peerFailures": 1,
    "signal": 9,
    "step": 5,
    "metrics": {"loss": 1},
    "startedAt": NOW - 9,
    "finishedAt": NOW - 5,
    "ended": 1,
    "failures": [FAILURE],
}
STATE = running()._replace(
    deaths={"worker-0": Deaths("u", 1, 2), "worker-1": Deaths("u", 1, 2)},
    restarts={"worker-0": Deaths("u", 1, 2), "worker-1": Deaths("uid-worker-1", 1, 2)},
    reported_failures={"worker-0": ReportedFailures(NOW, 1)},
    scalings={"exp1-mnist-worker": Scaling(NOW, "kubectl", 1)},
    progress=RunProgress(NOW, 2, 800, 4.5, {"loss": 0.5}, 900, 1, "u", 790),
    first_step=10,
    first_step_at=NOW,
    marks=(StepMark(NOW, 10, "u-1"),),
    setbacks=(Setback(NOW, 1, "exp1-mnist-chief-0", 706, 120),),
)
WHOLE = st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**62, LARGEST, -LARGEST]) | st.integers(-LARGEST, LARGEST)
ANY_NUMBER = WHOLE | st.floats() | st.integers()


def replace_numbers(value, numbers):
    """Return parsed JSON with the next of `numbers` in place of each number; the pods of roles are unchanged."""
    if isinstance(value, dict):
        return {key: each if key == "wanted" else replace_numbers(each, numbers) for key, each in value.items()}
    if isinstance(value, list):
        return [replace_numbers(each, numbers) for each in value]
    return next(numbers) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def make_pod(task, words, restarts):
    last = {"terminated": {"exitCode": 143, "reason": "Error", "message": json.dumps(words)}}
    status = {"name": TRAINING_CONTAINER, "restartCount": restarts, "state": {"running": {}}, "lastState": last}
    container = {"name": TRAINING_CONTAINER, "env": [{"name": RUN_ID, "value": "run-1"}]}
    found = {
        "metadata": {"name": f"exp1-mnist-{task}", "uid": f"uid-{task}"},
        "spec": {"nodeName": "node-1", "containers": [container]},
        "status": {"containerStatuses": [status]},
    }
    return parse_pod(PLAN.cluster, found)


def look_twice(state, pods, reports):
    """Return the state after two looks, each of which reads what was recorded before."""
    for seconds in (12, 24):
        seen = see(pods, now=NOW + seconds)._replace(reports=reports)
        state = parse_state(dump_state(decide(PLAN, seen, state).state))
    return state


@pytest.mark.parametrize("ended", [2**31 - 1, LARGEST])
def test_reported_counts_leave_a_readable_record(ended):
    report = parse_report({**REPORT, "ended": ended})
    state = look_twice(running(), group(), {f"uid-worker-{index}": report for index in range(2)})
    assert state.roles["worker"].failures in (0, COUNT_LIMIT)


def test_last_words_of_two_pods_leave_a_readable_record():
    workers = [make_pod(f"worker-{index}", {**WORDS, "ended": LARGEST}, 1) for index in range(2)]
    assert look_twice(running(), [pod("chief-0"), pod("ps-0"), *workers], {}).phase == "Running"


def test_next_attempt_after_any_number_is_readable():
    state = enter_phase(STATE._replace(attempt=LARGEST), RESTARTING, NOW, "")
    state = parse_state(dump_state(decide(PLAN, see(sets=zero(), now=NOW + 1), state).state))
    assert (state.phase, state.attempt) == ("Starting", COUNT_LIMIT)


def test_recorded_counts_are_added_up_to_a_limit():
    deaths = {f"worker-{index}": Deaths("u", LARGEST, LARGEST) for index in range(2)}
    state = look_twice(STATE._replace(deaths=deaths), group(), {})
    assert state.roles["worker"].failures == COUNT_LIMIT
    progress = STATE.progress._replace(fruitless_restarts=LARGEST)
    state = look_twice(STATE._replace(progress=progress), group(), {})
    assert state.phase == "Stopping" and state.verdict.cause == "no-progress"


@given(st.lists(WHOLE, min_size=1, max_size=4), st.lists(ANY_NUMBER, min_size=1, max_size=4))
def test_any_numbers_leave_a_readable_record(recorded, told):
    document = replace_numbers(json.loads(dump_state(STATE)), itertools.cycle(recorded))
    state = parse_state(json.dumps({**document, "version": 1}))
    numbers = itertools.cycle(told)
    report = parse_report(replace_numbers(REPORT, numbers))
    words = replace_numbers(WORDS, numbers)
    pods = [make_pod(task, words, next(numbers)) for task in ("chief-0", "worker-0", "worker-1", "ps-0")]
    look_twice(state, pods, {each.uid: report for each in pods if report})


@pytest.mark.parametrize("number", [-1, 2**31, LARGEST, 1e30, True, "1"])
def test_impossible_count_is_not_read(number):
    assert parse_report({**REPORT, "attempt": number}) is None
    failures = [{**FAILURE, "number": number}]
    report = parse_report({**REPORT, "ended": number, "peerFailures": number, "failures": failures})
    assert (report.ended, report.peer_failures, report.failures) == (0, 0, ())
    counts = dict.fromkeys(("ended", "attempt", "ownFailures", "peerFailures", "taskIndex"), number)
    words = parse_termination(json.dumps({**WORDS, **counts}))
    assert (words.ended, words.attempt, words.own_failures, words.peer_failures, words.task_index) == (0, 0, 0, 0, 0)
    assert parse_failures(failures) == ()


@pytest.mark.parametrize("wanted", [MAX_REPLICAS + 1, 2**62])
def test_record_that_wants_too_many_pods_is_refused(wanted):
    document = json.loads(dump_state(STATE._replace(roles={"worker": RoleState(MAX_REPLICAS)})))
    assert parse_state(json.dumps(document)).roles["worker"].wanted == MAX_REPLICAS
    document["roles"]["worker"]["wanted"] = wanted
    with pytest.raises(StateError, match="it wants more than 1000 pods of role 'worker'"):
        parse_state(json.dumps(document))
