"""What the run controller decides, by tables: start, verdict, failure, deadlines, and the day after."""

from __future__ import annotations

import pytest

from tests.unit.runtime.run_scenes import (
    NOW,
    PLAN,
    end,
    group,
    make_plan,
    pod,
    running,
    see,
    settle,
    wanted,
    words,
    zero,
)
from trainchart_runtime import causes
from trainchart_runtime.cluster import MULTI_WORKER_MIRRORED, SINGLE
from trainchart_runtime.pod_problems import Event, Problem
from trainchart_runtime.run.judge import SETTLE_SECONDS
from trainchart_runtime.run.observation import ContainerEnd
from trainchart_runtime.run.plan import Scale
from trainchart_runtime.run.rules import decide
from trainchart_runtime.run.state import (
    FAILED,
    FINISHING,
    RUNNING,
    STARTING,
    STATE_LOST,
    STOPPING,
    SUCCEEDED,
    RoleState,
    StateError,
    dump_state,
    parse_state,
)
from trainchart_runtime.termination import Termination


def test_new_run_scales_all_sets_to_their_replicas_once_recorded():
    sets = {role.name: 1 for role in PLAN.cluster.roles.values()}
    decision = decide(PLAN, see([pod("chief-0"), pod("worker-0"), pod("ps-0")], sets), None)
    assert (decision.state.phase, decision.state.attempt, decision.is_recorded) == (STARTING, 1, False)
    assert decision.scales == (Scale("exp1-mnist-worker", 2),)
    assert [(notice.reason, notice.is_warning) for notice in decision.notices] == [("RunStarting", False)]
    assert (decision.wake_at, decision.exit_code) == (NOW + 1800, None)


def test_a_set_that_is_not_there_yet_is_waited_for():
    decision = decide(PLAN, see(sets={}), None)
    assert (decision.state.phase, decision.scales) == (STARTING, ())


def test_run_without_record_and_with_stopped_sets_is_not_started():
    decision = decide(PLAN, see(sets=zero()), None)
    assert (decision.state.phase, decision.scales, decision.exit_code) == (STATE_LOST, (), 0)
    assert decision.notices[0].reason == "RunStateLost" and decision.notices[0].is_warning
    again = decide(PLAN, see(sets=zero(), now=NOW + 9), decision.state)
    assert (again.is_recorded, again.notices, again.scales, again.exit_code) == (True, (), (), 0)
    assert decide(make_plan(run_id="run-2"), see(sets=zero()), decision.state).state.phase == STARTING


def test_all_pods_running_is_said_once_and_then_nothing_happens():
    state = running()
    assert state.phase == RUNNING
    assert state.roles["worker"] == RoleState(wanted=2, running=2, failures=0)
    again = decide(PLAN, see(group(), now=NOW + 60), state)
    assert (again.is_recorded, again.scales, again.notices, again.wake_at, again.exit_code) == (
        True,
        (),
        (),
        None,
        None,
    )


def test_counts_of_pods_alone_are_recorded_now_and_then():
    pods = group(worker_1=None)
    soon = decide(PLAN, see(pods, now=NOW + 4), running())
    assert (soon.is_recorded, soon.wake_at) == (True, NOW + 10)
    later = decide(PLAN, see(pods, now=NOW + 10), running())
    assert not later.is_recorded and later.state.updated == NOW + 10 and later.state.roles["worker"].running == 1


def test_replicas_that_somebody_changed_are_put_right():
    decision = decide(PLAN, see(group(), wanted(worker=1)), running())
    assert decision.scales == (Scale("exp1-mnist-worker", 2),)
    assert not decision.is_recorded, "a record first: its precondition stops a controller that was replaced"


def test_pods_from_someone_elses_scaling_do_not_count():
    state = running()
    for gone_by in (0.0, NOW + 30):
        extra = pod("worker-2", end(causes.CONTRACT_BROKEN, 78), is_running=False, gone_by=gone_by, revision="other")
        for now in (NOW, NOW + SETTLE_SECONDS):
            decision = decide(PLAN, see([*group(), extra], wanted(worker=3), now), state)
            state = decision.state
            assert decision.scales == (Scale("exp1-mnist-worker", 2),)
            assert (state.phase, state.verdict, state.incidents) == (RUNNING, None, ())
            assert state.roles["worker"].running == 2


@pytest.mark.parametrize(
    "chief",
    [
        pod("chief-0", end(step=800, metrics={"accuracy": 0.96})),
        pod("chief-0", ContainerEnd(0), is_running=False),
        pod("chief-0", ContainerEnd(0), is_running=False, gone_by=NOW + 30),
        pod("chief-0", ContainerEnd(137, "Error", termination=words()), is_running=False),
        pod("chief-0", ContainerEnd(137, "Error"), ContainerEnd(0), is_running=False),
        pod("chief-0", end(), run_id=None),
    ],
    ids=["parked", "ended", "deleted", "parked and killed", "killed before parking", "run id unknown"],
)
def test_the_chiefs_success_is_recorded_and_frees_everything(chief):
    decision = decide(PLAN, see(group(chief_0=chief), now=NOW + 5), running())
    assert (decision.state.phase, decision.is_recorded, decision.exit_code) == (STOPPING, False, None)
    verdict = decision.state.verdict
    assert (verdict.result, verdict.at, verdict.pod, verdict.exit_code) == (
        SUCCEEDED, NOW + 5, "exp1-mnist-chief-0", 0,
    )  # fmt: skip
    assert [scale.set_name for scale in decision.scales] == ["exp1-mnist-chief", "exp1-mnist-worker", "exp1-mnist-ps"]
    assert {scale.replicas for scale in decision.scales} == {0}


def test_success_keeps_what_the_program_reported_last():
    done = pod("chief-0", end(step=800, metrics={"accuracy": 0.96}, lines=("saved",)))
    verdict = decide(PLAN, see(group(chief_0=done)), running()).state.verdict
    assert (verdict.step, verdict.metrics, verdict.lines) == (800, {"accuracy": 0.96}, ("saved",))


def test_a_run_that_stops_ends_when_its_last_pod_is_gone():
    stopping = decide(PLAN, see(group(chief_0=pod("chief-0", end()))), running()).state
    waiting = decide(PLAN, see([pod("ps-0", gone_by=NOW + 30)], zero(), NOW + 1), stopping)
    assert (waiting.state.phase, waiting.exit_code) == (STOPPING, None)
    over = decide(PLAN, see([], zero(), NOW + 2), stopping)
    assert (over.state.phase, over.is_recorded, over.exit_code) == (SUCCEEDED, False, 0)
    assert [notice.reason for notice in over.notices] == ["RunSucceeded"]


@pytest.mark.parametrize(("result", "code"), [(SUCCEEDED, 0), (FAILED, 42)])
def test_a_run_that_is_over_stays_over(result, code):
    chief = pod("chief-0", end() if result == SUCCEEDED else end(causes.SYNTAX_ERROR, 1))
    stopping = decide(PLAN, see(group(chief_0=chief)), running()).state
    if result == FAILED:
        stopping = settle(PLAN, group(chief_0=chief), running()).state
    over = decide(PLAN, see([], zero()), stopping).state
    assert decide(PLAN, see([], zero(), NOW + 86400), over).exit_code == code
    raised = decide(PLAN, see(group(), {**zero(), "exp1-mnist-worker": 1}, NOW + 86400), over)
    assert raised.scales == (Scale("exp1-mnist-worker", 0),)
    assert (raised.state.phase, raised.state.verdict, raised.exit_code) == (result, over.verdict, None)


def test_another_run_id_starts_a_run_once_the_old_pods_are_gone():
    plan = make_plan(run_id="run-2")
    first = decide(plan, see(group()), running())
    assert (first.state.phase, first.state.run_id, first.state.verdict) == (STARTING, "run-2", None)
    assert first.scales == (Scale("exp1-mnist-chief", 0),), "what writes checkpoints goes first"
    second = decide(plan, see(group(chief_0=None), wanted(chief=0)), first.state)
    assert second.scales == (Scale("exp1-mnist-worker", 0), Scale("exp1-mnist-ps", 0))
    still = decide(plan, see([pod("ps-0", gone_by=NOW + 30)], zero()), first.state)
    assert still.scales == ()
    assert decide(plan, see([], zero()), first.state).scales == tuple(
        Scale(role.name, role.replicas) for role in plan.cluster.roles.values()
    )


def test_the_success_of_another_run_is_none():
    mixed = pod("chief-0", end(run_id="run-0"))
    assert decide(PLAN, see(group(chief_0=mixed)), running()).state.phase == RUNNING
    stranger = pod("chief-0", end(run_id="run-0"), run_id="run-0")
    assert decide(PLAN, see(group(chief_0=stranger)), running()).state.phase == RUNNING


def test_exit_0_after_sigterm_is_no_success():
    stopped = pod("chief-0", end(causes.TERMINATED, 143))
    assert decide(PLAN, see(group(chief_0=stopped)), running()).state.phase == RUNNING


WITH_EVALUATOR = make_plan(chief=1, worker=1, ps=1, evaluator=1)


def finishing(plan=WITH_EVALUATOR):
    chief = pod("chief-0", end(step=800))
    decision = decide(plan, see(group(plan, chief_0=chief), plan=plan), running(plan))
    assert (decision.state.phase, decision.state.verdict, decision.scales) == (FINISHING, None, ())
    assert decision.wake_at == NOW + 600
    return decision.state


@pytest.mark.parametrize(
    "evaluator",
    [end(), ContainerEnd(0), end(causes.PROGRAM_ERROR, 1)],
    ids=["finished", "finished without words", "gave up"],
)
def test_the_evaluator_may_catch_up(evaluator):
    pods = group(WITH_EVALUATOR, chief_0=None, evaluator_0=pod("evaluator-0", evaluator))
    decision = decide(WITH_EVALUATOR, see(pods, now=NOW + 30, plan=WITH_EVALUATOR), finishing())
    assert decision.state.phase == STOPPING
    assert (decision.state.verdict.result, decision.state.verdict.step) == (SUCCEEDED, 800)
    assert decision.state.verdict.at == NOW + 30 and decision.state.pending_verdict is None
    assert [scale.set_name.rpartition("-")[2] for scale in decision.scales] == ["chief", "worker", "ps", "evaluator"]


def test_a_record_by_which_nobody_decides_is_unusable():
    state = running()._replace(roles={"chief": RoleState(0), "worker": RoleState(0)})
    with pytest.raises(StateError, match="neither a chief nor a worker"):
        decide(PLAN, see(group()), state)


def test_the_verdict_tells_what_the_evaluator_measured_last():
    ended = pod("evaluator-0", end(metrics={"accuracy": 0.97}))
    decision = decide(WITH_EVALUATOR, see(group(WITH_EVALUATOR, evaluator_0=ended), plan=WITH_EVALUATOR), finishing())
    assert decision.state.verdict.metrics == {"evaluator/accuracy": 0.97}


def test_the_evaluator_is_waited_for_only_so_long():
    pods = group(WITH_EVALUATOR)
    assert decide(WITH_EVALUATOR, see(pods, now=NOW + 599, plan=WITH_EVALUATOR), finishing()).state.phase == FINISHING
    decision = decide(WITH_EVALUATOR, see(pods, now=NOW + 600, plan=WITH_EVALUATOR), finishing())
    assert decision.state.verdict.result == SUCCEEDED
    assert "no longer waiting for: evaluator-0" in decision.notices[-1].message


def test_failures_of_others_after_chiefs_success_do_not_count():
    pods = group(WITH_EVALUATOR, worker_0=pod("worker-0", end(causes.PROGRAM_ERROR, 1)))
    assert decide(WITH_EVALUATOR, see(pods, plan=WITH_EVALUATOR), finishing()).state.phase == FINISHING


MWMS = make_plan(MULTI_WORKER_MIRRORED, worker=2)


def test_multi_worker_mirrored_counts_success_of_a_gone_worker():
    first = decide(MWMS, see(group(MWMS, worker_1=pod("worker-1", end())), plan=MWMS), running(MWMS)).state
    assert (first.phase, first.succeeded) == (RUNNING, {"worker-1": NOW})
    both = decide(MWMS, see([pod("worker-0", end())], plan=MWMS), first).state
    assert (both.phase, both.verdict.result) == (STOPPING, SUCCEEDED)


@pytest.mark.parametrize(
    ("other", "now", "phase", "result"),
    [
        (None, NOW + 5, FINISHING, None),
        (None, NOW + 700, STOPPING, SUCCEEDED),
        (end(causes.PROGRAM_ERROR, 1), NOW + 5, STOPPING, FAILED),
        (end(causes.PEER_LOST, 1), NOW + 5, STOPPING, SUCCEEDED),
    ],
    ids=["still works", "never ends", "fails by itself", "fails because worker-0 has left"],
)
def test_multi_worker_mirrored_after_worker_0(other, now, phase, result):
    state = decide(MWMS, see(group(MWMS, worker_0=pod("worker-0", end())), plan=MWMS), running(MWMS)).state
    assert state.phase == FINISHING
    pods = group(MWMS, worker_0=pod("worker-0", end()), worker_1=pod("worker-1", *filter(None, [other])))
    state = decide(MWMS, see(pods, now=now, plan=MWMS), state).state
    assert (state.phase, state.verdict and state.verdict.result) == (phase, result)


def test_the_first_failure_is_the_verdict():
    follower = words(causes.PEER_LOST, "chief-0", 1, error="UnavailableError")._replace(finished_at=NOW - 2)
    origin = words(causes.DISK_FULL, "worker-1", 1, error="OSError: No space left", lines=("step 7",))
    pods = group(
        chief_0=pod("chief-0", ContainerEnd(1, termination=follower)),
        worker_1=pod("worker-1", ContainerEnd(1, termination=origin), node="node-2"),
    )
    decision = settle(PLAN, pods, running())
    verdict = decision.state.verdict
    assert (verdict.result, verdict.cause, verdict.pod, verdict.node) == (
        FAILED, "disk-full", "exp1-mnist-worker-1", "node-2",
    )  # fmt: skip
    assert (verdict.exit_code, verdict.error, verdict.lines) == (1, "OSError: No space left", ("step 7",))
    assert (verdict.sentence, verdict.hint) == (causes.DISK_FULL.sentence, causes.DISK_FULL.hint)
    assert {scale.replicas for scale in decision.scales} == {0} and len(decision.scales) == 3
    assert "disk-full, exp1-mnist-worker-1: OSError" in decision.notices[-1].message
    assert decide(PLAN, see([], zero()), decision.state).exit_code == 42


def test_a_cause_of_a_newer_launcher_is_kept():
    message = Termination("meteorite", 9, run_id="run-1", error="boom")
    pods = group(ps_0=pod("ps-0", ContainerEnd(9, termination=message)))
    verdict = settle(PLAN, pods, running()).state.verdict
    assert (verdict.cause, verdict.sentence, verdict.error) == ("meteorite", "", "boom")


NO_LAUNCHER = "python3: can't open file '/opt/trainchart/launcher.pyz': [Errno 2] No such file or directory"


@pytest.mark.parametrize(
    ("reason", "code", "detail", "cause", "allowed"),
    [
        ("OOMKilled", 137, "", "out-of-memory", 2),
        ("Error", 137, "", "killed", 3),
        ("StartError", 128, "", "program-missing", 3),
        ("Error", 1, "", "container-died", 3),
        ("Error", 2, NO_LAUNCHER, "launcher-missing", 3),
    ],
)
def test_containers_that_die_without_words_have_a_budget(reason, code, detail, cause, allowed):
    died = ContainerEnd(code, reason, detail or "runc: failed")
    within = pod("worker-0", died, restarts=allowed, is_running=True)
    state = decide(PLAN, see(group(worker_0=within)), running()).state
    assert (state.phase, state.deaths["worker-0"].total, state.roles["worker"].failures) == (RUNNING, allowed, allowed)
    over = pod("worker-0", died, restarts=allowed, is_running=False)
    verdict = settle(PLAN, group(worker_0=over), state).state.verdict
    assert (verdict.cause, verdict.exit_code, verdict.error) == (cause, code, died.detail)


@pytest.mark.parametrize("lost", [None, pod("worker-0", gone_by=NOW + 30), pod("worker-0", is_running=False)])
def test_a_pod_that_goes_away_is_no_failure(lost):
    assert decide(PLAN, see(group(worker_0=lost)), running()).state.phase == RUNNING


def test_start_that_takes_too_long_names_missing_pods_and_why():
    state = decide(PLAN, see(group(worker_0=None, worker_1=None)), None).state
    short = Problem("unschedulable", "0/2 nodes: 2 Insufficient nvidia.com/gpu")
    pods = group(worker_0=None, worker_1=pod("worker-1", is_running=False, node="", problem=short))
    before = decide(PLAN, see(pods, now=NOW + 1799), state)
    assert (before.state.phase, before.wants_events) == (STARTING, True)
    assert [(each.subject, each.cause) for each in before.state.problems] == [("exp1-mnist-worker-1", "unschedulable")]
    decision = decide(PLAN, see(pods, now=NOW + 1800), before.state)
    verdict = decision.state.verdict
    assert (verdict.result, verdict.cause, verdict.pod) == (FAILED, "unschedulable", "exp1-mnist-worker-1")
    assert verdict.error == "0/2 nodes: 2 Insufficient nvidia.com/gpu"
    assert causes.START_DEADLINE.sentence in verdict.sentence
    assert verdict.lines == (
        "exp1-mnist-worker-0: the pod was not created: see the events of its StatefulSet",
        "exp1-mnist-worker-1: 0/2 nodes: 2 Insufficient nvidia.com/gpu",
    )
    assert len(decision.scales) == 3


def test_a_start_without_any_known_reason_is_a_missed_deadline():
    state = decide(PLAN, see(group(ps_0=None)), None).state
    verdict = decide(PLAN, see(group(ps_0=None), now=NOW + 1800), state).state.verdict
    assert (verdict.cause, verdict.pod) == ("start-deadline", "exp1-mnist-ps-0")


def test_late_start_names_the_init_container_that_still_ran():
    words = "its init container fetch still ran, since 2026-11-29T08:00:00Z"
    pods = group(ps_0=pod("ps-0", is_running=False, is_held=True, start=words))
    state = decide(PLAN, see(pods), None).state
    verdict = decide(PLAN, see(pods, now=NOW + 1800), state).state.verdict
    assert (verdict.cause, verdict.error, verdict.lines) == ("start-deadline", words, (f"exp1-mnist-ps-0: {words}",))


def test_only_events_tell_why_a_pod_was_not_created():
    state = decide(PLAN, see(group(ps_0=None)), None).state
    refusal = Event("StatefulSet", "exp1-mnist-ps", "FailedCreate", "is forbidden: exceeded quota: gpus", NOW)
    seen = see(group(ps_0=None), now=NOW + 20)._replace(events=(refusal,))
    told = decide(PLAN, seen, state)
    assert [(each.subject, each.cause) for each in told.state.problems] == [("exp1-mnist-ps-0", "quota-exceeded")]
    assert told.wants_events, "what Events have told is forgotten without them"
    verdict = decide(PLAN, seen._replace(now=NOW + 1800), told.state).state.verdict
    assert (verdict.cause, verdict.pod) == ("quota-exceeded", "exp1-mnist-ps-0")


def test_mount_failure_before_a_start_is_not_the_verdict():
    state = decide(PLAN, see(group(ps_0=None)), None).state
    unbound = (
        "Unable to attach or mount volumes: error processing PVC team-a/exp-6-digits-checkpoints: PVC is not bound"
    )
    waiting = pod("ps-0", is_running=False, is_held=True, last_start=NOW + 15)
    seen = see(group(ps_0=waiting), now=NOW + 1800)
    old, new = (Event("Pod", "exp1-mnist-ps-0", "FailedMount", unbound, NOW + seconds) for seconds in (1, 20))
    assert decide(PLAN, seen._replace(events=(old,)), state).state.verdict.cause == "start-deadline"
    assert decide(PLAN, seen._replace(events=(old, new)), state).state.verdict.cause == "volume-error"


def test_the_start_deadline_ends_with_the_start():
    assert decide(PLAN, see(group(worker_0=None), now=NOW + 9999), running()).state.phase == RUNNING


def test_a_late_controller_sees_start_and_success_at_once():
    decision = decide(PLAN, see(group(chief_0=pod("chief-0", end()))), None)
    assert (decision.state.phase, decision.state.verdict.result) == (STOPPING, SUCCEEDED)
    assert [notice.reason for notice in decision.notices] == ["RunStarting", "RunFinishing", "RunStopping"]


def test_a_single_process_is_its_own_leader():
    plan = make_plan(SINGLE, worker=1)
    state = decide(plan, see([pod("worker-0", end())], plan=plan), running(plan)).state
    assert (state.phase, state.verdict.result) == (STOPPING, SUCCEEDED)


def test_what_is_decided_survives_its_record():
    for state in (running(), finishing(), decide(PLAN, see(group(chief_0=pod("chief-0", end()))), None).state):
        assert parse_state(dump_state(state)) == state
