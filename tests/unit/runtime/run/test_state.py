"""The record of a run: whole or refused."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainchart_runtime.run.state import (
    FAILED,
    FINISHING,
    HISTORY_KEPT,
    KILLED,
    MESSAGE_LIMIT,
    PHASES,
    RECORD_LIMIT,
    RUNNING,
    STARTING,
    STOPPING,
    SUCCEEDED,
    Deaths,
    Incident,
    PhaseNotice,
    PodProblem,
    ReportedFailures,
    RoleState,
    RunProgress,
    RunState,
    Scaling,
    Setback,
    StateError,
    StepMark,
    Verdict,
    dump_state,
    enter_phase,
    parse_state,
)

VERDICT = Verdict(FAILED, 7.25, "disk-full", "No space.", "Enlarge.", "exp1-worker-1", "node-2", 1, "OSError", 800)
STATE = RunState(
    "run-1",
    STOPPING,
    since=7.25,
    updated=7.5,
    succeeded={"worker-1": 6.5},
    verdict=VERDICT._replace(metrics={"accuracy": 0.96}, lines=("step 799", "OSError: \udcff")),
    roles={"worker": RoleState(2, 1, 3)},
    revisions={"exp1-worker": "exp1-worker-5d8f"},
    failure_seen_at=7.0,
    deaths={"worker-1": Deaths("u2", 1, 2)},
    restarts={"ps-0": Deaths("u4", 0, 1)},
    reported_failures={"ps-0": ReportedFailures(5.0, 1)},
    builds={"ml/mnist:1": {"ml/mnist@sha256:97e7fa046a24": "node-2"}},
    pods={"worker-1": "u2"},
    problems=(PodProblem("exp1-worker-0", "", "unschedulable", "0/2 nodes", 3.0),),
    incidents=(Incident(2.0, "exp1-worker-1", "node-2", "killed", "restarted", 137, uid="u2"),),
    scalings={"exp1-mnist-worker": Scaling(7.5, "kubectl", 1)},
    taken_away=("u1",),
    progress=RunProgress(6.0, 2, 800, 4.5, {"loss": 0.5}, 900, 1, "u3", 790, KILLED),
    first_step=10,
    first_step_at=1.5,
    marks=(StepMark(1.5, 10, "u3-1"), StepMark(61.5, 130, "u3-1")),
    setbacks=(Setback(5.5, 1, "exp1-worker-0", 706, 120, KILLED),),
    final_lines={"worker-1": "end of shard"},
)
STATE = enter_phase(STATE, STOPPING, 7.25, "disk full")


def test_the_schema():
    assert json.loads(dump_state(STATE)) == {
        "version": 1,
        "runId": "run-1",
        "phase": "Stopping",
        "attempt": 1,
        "since": 7.25,
        "updated": 7.5,
        "verdict": {
            "result": "Failed",
            "at": 7.25,
            "cause": "disk-full",
            "sentence": "No space.",
            "hint": "Enlarge.",
            "pod": "exp1-worker-1",
            "node": "node-2",
            "exitCode": 1,
            "error": "OSError",
            "step": 800,
            "metrics": {"accuracy": 0.96},
            "lines": ["step 799", "OSError: \udcff"],
            "changes": "",
            "build": "",
            "spared": "",
        },
        "pendingVerdict": None,
        "succeeded": {"worker-1": 6.5},
        "roles": {"worker": {"wanted": 2, "running": 1, "failures": 3, "finished": 0}},
        "history": [{"at": 7.25, "phase": "Stopping", "message": "disk full"}],
        "activeSince": 0.0,
        "revisions": {"exp1-worker": "exp1-worker-5d8f"},
        "failureSeenAt": 7.0,
        "missingSince": None,
        "deaths": {"worker-1": {"uid": "u2", "earlier": 1, "current": 2}},
        "restarts": {"ps-0": {"uid": "u4", "earlier": 0, "current": 1}},
        "reportedFailures": {"ps-0": {"since": 5.0, "number": 1}},
        "builds": {"ml/mnist:1": {"ml/mnist@sha256:97e7fa046a24": "node-2"}},
        "pods": {"worker-1": "u2"},
        "problems": [
            {
                "subject": "exp1-worker-0",
                "node": "",
                "cause": "unschedulable",
                "message": "0/2 nodes",
                "since": 3.0,
            }
        ],
        "incidents": [
            {
                "at": 2.0,
                "pod": "exp1-worker-1",
                "node": "node-2",
                "cause": "killed",
                "action": "restarted",
                "exitCode": 137,
                "error": "",
                "uid": "u2",
            }
        ],
        "scalings": {"exp1-mnist-worker": {"at": 7.5, "by": "kubectl", "replicas": 1}},
        "takenAway": ["u1"],
        "progress": {
            "at": 6.0,
            "attempt": 2,
            "step": 800,
            "examplesPerSecond": 4.5,
            "metrics": {"loss": 0.5},
            "bestStep": 900,
            "fruitlessRestarts": 1,
            "uid": "u3",
            "before": 790,
            "end": "killed",
        },
        "firstStep": 10,
        "firstStepAt": 1.5,
        "marks": [{"at": 1.5, "step": 10, "program": "u3-1"}, {"at": 61.5, "step": 130, "program": "u3-1"}],
        "setbacks": [
            {"at": 5.5, "attempt": 1, "pod": "exp1-worker-0", "reached": 706, "resumed": 120, "end": "killed"}
        ],
        "finalLines": {"worker-1": "end of shard"},
        "notice": None,
    }


def test_a_record_of_an_earlier_version_lacks_what_came_later():
    document = json.loads(dump_state(STATE))
    for key in ("deaths", "incidents", "takenAway", "problems", "progress", "revisions", "activeSince", "finalLines"):
        del document[key]
    assert parse_state(json.dumps(document)).verdict == STATE.verdict
    assert parse_state(json.dumps({**json.loads(dump_state(STATE)), "later": 1})) == STATE


def test_every_state_comes_back_as_it_was():
    assert parse_state(dump_state(STATE)) == STATE
    finishing = STATE._replace(phase=FINISHING, verdict=None, pending_verdict=VERDICT._replace(result=SUCCEEDED))
    assert parse_state(dump_state(finishing)) == finishing


def test_history_and_messages_are_bounded():
    state = STATE
    for number in range(50):
        state = enter_phase(state, RUNNING, float(number), str(number) + "x" * 5000)
    assert [entry.at for entry in state.history] == [float(number) for number in range(50 - HISTORY_KEPT, 50)]
    assert {len(entry.message) for entry in state.history} == {MESSAGE_LIMIT}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"version": 2}, "its version is 2, but this program reads 1"),
        ({"phase": "Paused"}, "its phase is 'Paused', expected one of: Queued"),
        ({"since": "yesterday"}, "'since' of the record is 'yesterday', not a number"),
        ({"attempt": True}, "'attempt' of the record is True, not a whole number"),
        ({"verdict": None}, "do not fit together"),
        ({"phase": STARTING}, "do not fit together"),
        ({"phase": FINISHING, "verdict": None}, "no pendingVerdict"),
        ({"verdict": {"result": "Maybe", "at": 1}}, "the result in its verdict is 'Maybe'"),
        ({"roles": {"worker": 3}}, "'worker' in 'roles' of the record is 3, not a JSON object"),
        ({"roles": {"worker": {"wanted": -1}}}, "a negative number of pods of role 'worker'"),
        ({"history": ["started"]}, "an entry of 'history' of the record is 'started'"),
    ],
)
def test_a_damaged_record_is_refused_with_the_reason(change, problem):
    with pytest.raises(StateError, match=problem):
        parse_state(json.dumps({**json.loads(dump_state(STATE)), **change}))


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(PHASES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(json.loads(dump_state(STATE)))), ANY_JSON)
def test_any_damage_is_refused_or_read(key, value):
    try:
        state = parse_state(json.dumps({**json.loads(dump_state(STATE)), key: value}))
    except StateError:
        return
    assert parse_state(dump_state(state)) == state


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100000])
def test_what_is_no_record_is_refused(text):
    with pytest.raises(StateError):
        parse_state(text)


def test_the_longest_record_fits_into_a_configmap() -> None:
    """Texts of the widest characters, at every limit, of a thousand tasks that died."""
    wide = "\U0001f600"
    metrics = {f"{number:03}" + wide * 97: -1.7976931348623157e308 for number in range(50)}
    incident = Incident(1.0, "p" * 253, "n" * 253, "c" * 1000, "a" * 100, 1, wide * 4096, "u" * 36)
    deaths = {f"worker-{number}": Deaths("u" * 36, number, number) for number in range(5_000)}
    verdict = Verdict(FAILED, 1.0, "c" * 4096, wide * 4096, wide * 4096, error=wide * 4096, metrics=metrics)
    state = STATE._replace(
        verdict=verdict._replace(lines=(wide * 300,) * 20),
        incidents=(incident,) * 21,
        problems=(PodProblem("p" * 253, "n" * 253, "c" * 100, wide * 1000, 1.0),) * 20,
        deaths=deaths,
        taken_away=tuple(f"{number:036}" for number in range(20_000)),
        progress=RunProgress(1.0, 1, 1, 1.0, metrics),
    )
    for _ in range(HISTORY_KEPT):
        state = enter_phase(state, STOPPING, 1.0, wide * 2000)
    text = dump_state(state)
    assert len(text) <= RECORD_LIMIT
    kept = parse_state(text)
    assert (kept.phase, kept.verdict.result, kept.roles, kept.progress.step) == (STOPPING, FAILED, state.roles, 1)
    assert kept.verdict.metrics == metrics


def test_record_of_3000_tasks_keeps_the_leaders_success() -> None:
    tasks = ["chief-0", *(f"{role}-{number}" for role in ("worker", "ps", "evaluator") for number in range(1000))]
    uid = "12345678-1234-1234-1234-123456789012"
    state = STATE._replace(
        deaths={task: Deaths(uid, 3, 2) for task in tasks},
        restarts={task: Deaths(uid, 3, 2) for task in tasks},
        reported_failures={task: ReportedFailures(1.0, 10) for task in tasks},
        pods=dict.fromkeys(tasks, uid[:8]),
        succeeded=dict.fromkeys([*tasks[:1], *tasks[-1500:]], 1.0),
    )
    kept = parse_state(dump_state(state))
    assert (kept.succeeded, kept.deaths, kept.restarts) == (state.succeeded, state.deaths, state.restarts)


ENTRIES = {
    "builds": {},
    "revisions": "r",
    "scalings": {"at": 1, "by": "x", "replicas": 1},
    "deaths": {"uid": "u", "earlier": 0, "current": 1},
    "restarts": {"uid": "u", "earlier": 0, "current": 1},
    "succeeded": 1.0,
    "roles": {"wanted": 1},
    "finalLines": "x",
    "pods": "x",
    "reportedFailures": {"since": 1, "number": 1},
}
"""Mapping in the record → a value of it."""
LETTERS = st.sampled_from(["a", "\u00e9", "\U0001f600", "\x00"])


def add_entries(document, field, key, number):
    """Return a record with entries whose keys begin with `key` in one of its mappings."""
    keys = [f"{key}{index}" for index in range(number)]
    if field == "metrics":
        return {**document, "progress": {**document["progress"], "metrics": dict.fromkeys(keys, 1.0)}}
    if field == "nodes":
        return {**document, "builds": {key[:300]: dict.fromkeys(keys, "node-1")}}
    return {**document, field: {**document[field], **dict.fromkeys(keys, ENTRIES[field])}}


@pytest.mark.parametrize("field", [*ENTRIES, "metrics", "nodes"])
def test_long_key_in_a_record_does_not_make_it_too_large(field):
    written = json.dumps(add_entries(json.loads(dump_state(STATE)), field, "\u00e9" * 200_000, 1), ensure_ascii=False)
    text = dump_state(parse_state(written))
    assert len(text.encode()) <= RECORD_LIMIT
    kept = parse_state(text)
    assert (kept.verdict.cause, kept.roles, kept.deaths) == ("disk-full", STATE.roles, STATE.deaths)


def swell(value):
    """Return a record with the longest texts and numbers, and many entries in all lists and mappings."""
    if isinstance(value, str):
        return "\U0001f600" * 200
    if hasattr(value, "_asdict"):
        return value._replace(**{field: swell(each) for field, each in value._asdict().items()})
    if isinstance(value, Mapping):
        each = swell(next(iter(value.values())))
        return {"\U0001f600" * 97 + f"{number:03}": each for number in range(100)}
    if isinstance(value, tuple):
        return (swell(value[0]),) * 100
    return -1.7976931348623157e308 if isinstance(value, float) else -(2**63 - 1)


def test_fullest_record_fits_into_a_configmap():
    full = STATE._replace(pending_verdict=STATE.verdict, notice=PhaseNotice(STOPPING, 1.0, "x"), missing_since=1.0)
    assert RECORD_LIMIT / 2 < len(dump_state(swell(full)).encode()) <= RECORD_LIMIT


@settings(max_examples=10)
@example([*ENTRIES, "metrics", "nodes"], "\U0001f600", 98, 12, "\U0001f600" * 1000, 200)
@given(
    fields=st.lists(st.sampled_from([*ENTRIES, "metrics", "nodes"]), min_size=1, max_size=3, unique=True),
    letter=LETTERS,
    length=st.sampled_from([1, 99, 250, 1_000, 100_000]),
    number=st.sampled_from([1, 9, 900, 3_000]),
    text=st.builds(operator.mul, LETTERS, st.sampled_from([1, 100_000])),
    lines=st.sampled_from([1, 3_000]),
)
def test_any_record_fits_into_a_configmap(fields, letter, length, number, text, lines):
    document = json.loads(dump_state(STATE))
    for field in fields:
        document = add_entries(document, field, letter * length, min(number, 1 + 100_000 // length))
    document["verdict"].update(error=text, sentence=text, lines=[text[:30]] * lines)
    document.update(setbacks=document["setbacks"] * lines, takenAway=["u"] * lines)
    state = parse_state(json.dumps(document))
    text = dump_state(state)
    assert len(text.encode()) <= RECORD_LIMIT
    assert parse_state(text).verdict.cause == "disk-full"


def test_a_record_is_cut_no_more_than_it_has_to_be() -> None:
    assert parse_state(dump_state(STATE)) == STATE
    long = STATE._replace(problems=(PodProblem("exp1-worker-0", "", "c", "\U0001f600" * MESSAGE_LIMIT, 1.0),) * 100)
    kept = parse_state(dump_state(long))
    assert len(kept.problems) == 100
    assert {len(problem.message) for problem in kept.problems} == {300}


def test_a_forged_record_is_read_within_bounds():
    document = {
        **json.loads(dump_state(STATE)),
        "marks": [{"at": number, "step": number, "program": "p"} for number in range(10_000)],
        "succeeded": {f"worker-{number}": number for number in range(20_000)},
    }
    state = parse_state(json.dumps(document))
    assert len(state.marks) == 200 and state.marks[-1].step == 9_999
    assert len(state.succeeded) == 5_000
