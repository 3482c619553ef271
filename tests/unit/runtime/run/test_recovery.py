"""What the run controller does when pods die, nodes fall silent, values change, or the run is held or ended."""

from __future__ import annotations

import itertools

import pytest

from tests.unit.runtime.run_scenes import NOW, PLAN, end, group, make_plan, pod, running, see, settle, wanted, zero
from trainchart_runtime import causes
from trainchart_runtime.cluster import MULTI_WORKER_MIRRORED
from trainchart_runtime.image_builds import Build
from trainchart_runtime.pod_problems import Event, Problem, parse_event
from trainchart_runtime.restart import STEADY_SECONDS
from trainchart_runtime.run.judge import FRUITLESS_RESTARTS, SETTLE_SECONDS
from trainchart_runtime.run.observation import LOST_SECONDS, ContainerEnd, LauncherReport, SetView
from trainchart_runtime.run.plan import Deletion, Scale
from trainchart_runtime.run.rules import decide
from trainchart_runtime.run.state import (
    FAILED,
    FINAL_LINES_KEPT,
    FINISHING,
    KILLED,
    RESTARTING,
    RUNNING,
    STARTING,
    STOPPED,
    STOPPING,
    SUCCEEDED,
    SUSPENDED,
    Deaths,
    Incident,
    RunProgress,
    dump_state,
    parse_state,
)
from trainchart_runtime.termination import FAILURES_KEPT, Failure

SUSPEND = PLAN._replace(desired_state="suspended")
STOP = PLAN._replace(desired_state="stopped")
CHIEF_FIRST = (Scale("exp1-mnist-chief", 0),)
THE_OTHERS = (Scale("exp1-mnist-worker", 0), Scale("exp1-mnist-ps", 0))
NODE_LOST = Problem("node-lost", "DeletionByTaintManager")


def died(reason="Error", code=137):
    return ContainerEnd(code, reason, finished_at=NOW)


def upgraded(seen, *roles):
    """The same look, with StatefulSets that would make other pods now."""
    sets = {
        name: view._replace(revision=f"{name}-2") if name.rpartition("-")[2] in roles else view
        for name, view in seen.sets.items()
    }
    return seen._replace(sets=sets)


# --- suspend, resume, stop ---------------------------------------------------------------------------------------


def test_suspending_lets_the_chief_save_before_ps_and_workers_go():
    first = decide(SUSPEND, see(group()), running())
    assert (first.state.phase, first.scales, first.exit_code) == (SUSPENDED, CHIEF_FIRST, None)
    assert first.state.history[-1].message == "run.desiredState is suspended: the pods get SIGTERM, to save and stop"
    saving = decide(SUSPEND, see(group(chief_0=pod("chief-0", gone_by=NOW + 30)), wanted(chief=0)), first.state)
    assert saving.scales == ()
    saved = decide(SUSPEND, see(group(chief_0=None), wanted(chief=0)), first.state)
    assert saved.scales == THE_OTHERS
    gone = decide(SUSPEND, see([], zero()), saved.state)
    assert (gone.state.phase, gone.scales, gone.exit_code) == (SUSPENDED, (), None)


def test_a_chief_on_a_lost_node_holds_nobody_up():
    lost = pod("chief-0", gone_by=NOW - LOST_SECONDS)
    first = decide(SUSPEND, see(group()), running()).state
    assert decide(SUSPEND, see(group(chief_0=lost), wanted(chief=0)), first).scales == THE_OTHERS


def test_a_release_that_is_installed_suspended_starts_nothing():
    decision = decide(SUSPEND, see([], zero()), None)
    assert (decision.state.phase, decision.scales, decision.exit_code) == (SUSPENDED, (), None)


def test_resuming_waits_for_the_last_pod_and_resets_deadlines():
    plan = PLAN._replace(active_deadline_seconds=100.0)
    held = decide(SUSPEND, see([], zero()), running()).state
    later = NOW + 5000
    resumed = decide(plan, see([pod("ps-0", gone_by=later)], zero(), later), held)
    assert (resumed.state.phase, resumed.scales) == (RESTARTING, ())
    started = decide(plan, see([], zero(), later + 1), resumed.state)
    assert (started.state.phase, started.state.attempt) == (STARTING, 2)
    assert {scale.replicas for scale in started.scales} == {1, 2}
    assert started.wake_at == later + 100


def test_stopping_saves_first_and_is_an_end_of_its_own():
    first = decide(STOP, see(group()), running())
    assert (first.state.phase, first.state.verdict.result, first.scales) == (STOPPING, STOPPED, CHIEF_FIRST)
    over = decide(STOP, see([], zero(), NOW + 9), first.state)
    assert (over.state.phase, over.exit_code) == (STOPPED, 42)
    again = decide(PLAN, see([], zero(), NOW + 99), over.state)
    assert (again.state.phase, again.scales, again.exit_code) == (STOPPED, (), 42), "only another run.id starts anew"


def test_a_run_that_has_succeeded_is_not_stopped_but_done():
    plan = make_plan(chief=1, worker=1, ps=1, evaluator=1)
    finishing = decide(plan, see(group(plan, chief_0=pod("chief-0", end())), plan=plan), running(plan)).state
    assert finishing.phase == FINISHING
    decision = decide(plan._replace(desired_state="stopped"), see(group(plan), plan=plan), finishing)
    assert decision.state.verdict.result == SUCCEEDED


# --- pods that something changed ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "changes"), [("96Mi", "limits.memory 96Mi instead of 256Mi"), ("256Mi", "")])
def test_how_the_failed_pod_was_changed_is_recorded(limit, changes):
    planned, made, revision = {"limits.memory": "256Mi"}, {"limits.memory": limit}, "exp1-mnist-worker-1"
    failed = pod("worker-1", end(causes.MODULE_MISSING, 1), is_running=False, revision=revision, settings=made)
    seen = see(group(worker_1=failed))
    seen = seen._replace(sets={name: view._replace(settings=planned) for name, view in seen.sets.items()})
    first = decide(PLAN, seen, running())
    verdict = decide(PLAN, seen._replace(now=first.wake_at), first.state).state.verdict
    assert (verdict.pod, verdict.changes) == ("exp1-mnist-worker-1", changes)


# --- builds ------------------------------------------------------------------------------------------------------

OLD, NEW = (Build("ml/mnist:1.0.1", "ml/mnist", digit * 64) for digit in "ab")


def fail_beside(peer, state=None):
    """Return the verdict about ps-0, which has an old build of the image, and the record before it."""
    failed = pod("ps-0", end(causes.MODULE_MISSING, 1), is_running=False, node="node2", build=OLD)
    seen = see(group(ps_0=failed, chief_0=peer))
    first = decide(PLAN, seen, state or running())
    return decide(PLAN, seen._replace(now=first.wake_at), first.state).state.verdict


def test_another_build_than_that_of_peers_is_recorded():
    verdict = fail_beside(pod("chief-0", node="node1", build=NEW))
    assert (verdict.pod, verdict.build) == (
        "exp1-mnist-ps-0",
        f"sha256:{'a' * 12} of ml/mnist:1.0.1 on node2; under the same tag, other pods ran sha256:{'b' * 12} on node1",
    )
    assert verdict.error == fail_beside(pod("chief-0", build=OLD)).error


@pytest.mark.parametrize(
    "build",
    [OLD, None, NEW._replace(image="ml/chief:1.0.1"), NEW._replace(source="")],
    ids=["same", "not pulled yet", "of a role", "another source"],
)
def test_builds_that_cannot_be_compared_are_not_told(build):
    assert fail_beside(pod("chief-0", build=build)).build == ""


def test_builds_of_pods_that_have_gone_are_remembered():
    lived = see(group(worker_1=pod("worker-1", node="node1", build=NEW)))
    decision = decide(PLAN, lived, running())
    assert not decision.is_recorded, "it may be gone at the next look"
    assert decision.state.builds == {"ml/mnist:1.0.1": {"ml/mnist@sha256:bbbbbbbbbbbb": "node1"}}
    assert decide(PLAN, lived, decision.state).is_recorded
    state = parse_state(dump_state(decision.state))
    assert "sha256:bbbbbbbbbbbb on node1" in fail_beside(None, state).build


def test_next_attempt_may_run_another_build():
    state = running()._replace(builds={"ml/mnist:1.0.1": {"ml/mnist@sha256:bbbbbbbbbbbb": "node1"}})
    again = decide(PLAN, see([], zero()), state._replace(phase=RESTARTING)).state
    assert (again.phase, again.attempt, again.builds) == (STARTING, 2, {})


# --- one node ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("node", "deaths", "spared"),
    [
        ("node1", [("worker-1", "node2", causes.PROGRAM_ERROR)], "worker-0 on node1"),
        ("node1", [("worker-1", "node2", causes.CRASHED), ("chief-0", "node1", causes.PEER_LOST)], "worker-0 on node1"),
        ("node1", [("worker-1", "node2", causes.PROGRAM_ERROR), ("worker-0", "node1", causes.PROGRAM_ERROR)], ""),
        ("node2", [("worker-1", "node2", causes.PROGRAM_ERROR)], ""),
        ("node1", [], ""),
    ],
    ids=["again", "a peer noticed", "both", "one node", "once"],
)
def test_twins_on_other_nodes_that_have_not_failed_are_recorded(node, deaths, spared):
    failed = pod("worker-1", end(causes.PROGRAM_ERROR, 1), is_running=False, node="node2")
    seen = see(group(worker_0=pod("worker-0", node=node), worker_1=failed))
    incidents = tuple(Incident(1.0, f"exp1-mnist-{task}", place, cause.name, "") for task, place, cause in deaths)
    first = decide(PLAN, seen, running()._replace(incidents=incidents))
    verdict = decide(PLAN, seen._replace(now=first.wake_at), first.state).state.verdict
    assert (verdict.pod, verdict.spared) == ("exp1-mnist-worker-1", spared)


# --- preemption ----------------------------------------------------------------------------------------------------


def test_pod_that_took_the_place_of_another_is_named():
    problem = Problem("preempted", "preempting to accommodate a higher priority pod")
    seen = see(group(worker_1=pod("worker-1", gone_by=NOW + 30, problem=problem)))
    first = decide(PLAN, seen, running())
    assert first.wants_events
    uid = "8a81a628-871e-4b16-9a3c-633ebf8a98f1"
    about = {"kind": "Pod", "name": "exp1-mnist-worker-1", "uid": "uid-worker-1"}
    message = f"Preempted by pod {uid} on node node1"
    event = parse_event({"reason": "Preempted", "involvedObject": about, "message": message})
    decision = decide(PLAN, seen._replace(events=(event,)), first.state)
    [incident] = decision.state.incidents
    assert incident.error == f"{problem.message}; it made room for the pod with the uid {uid}"
    assert not decision.wants_events
    assert not decision.is_recorded
    assert decide(PLAN, seen._replace(events=(event,)), decision.state).state.incidents == (incident,)


def test_the_event_of_a_preemption_is_not_waited_for_long():
    seen = see(group(worker_1=pod("worker-1", gone_by=NOW + 30, problem=Problem("preempted", ""))))
    state = decide(PLAN, seen, running()).state
    assert not decide(PLAN, see(group(), now=NOW + 121), state).wants_events


# --- upgrades ----------------------------------------------------------------------------------------------------


def test_an_upgrade_that_changes_pods_restarts_the_group():
    changed = upgraded(see(group()), "worker")
    first = decide(PLAN, changed, running())
    assert (first.state.phase, first.scales) == (RESTARTING, CHIEF_FIRST)
    started = decide(PLAN, upgraded(see([], zero(), NOW + 9), "worker"), first.state)
    assert (started.state.phase, started.state.attempt) == (STARTING, 2)
    settled = decide(PLAN, upgraded(see(group(), now=NOW + 12), "worker"), started.state)
    assert settled.state.phase == RUNNING
    assert settled.state.revisions["exp1-mnist-worker"] == "exp1-mnist-worker-2"


def test_an_upgrade_that_kubernetes_has_not_looked_at_yet_waits():
    seen = see(group())
    unsettled = seen._replace(sets={name: view._replace(revision="") for name, view in seen.sets.items()})
    assert decide(PLAN, unsettled, running()).state.phase == RUNNING


def test_pods_seen_before_their_sets_revision_are_this_attempts():
    seen = see(group(ps_0=pod("ps-0", revision="exp1-mnist-ps-1")))
    unsettled = seen._replace(sets={name: view._replace(revision="") for name, view in seen.sets.items()})
    first = decide(PLAN, unsettled, None)
    assert first.state.phase == RUNNING
    assert decide(PLAN, seen, first.state).state.phase == RUNNING
    assert decide(PLAN, upgraded(seen, "ps"), first.state).state.phase == RESTARTING, "it is another's by then"


PATIENT = PLAN._replace(on_change="finish-first")


def test_finish_first_attempt_goes_on_until_a_pod_is_replaced():
    revisions = {f"{task}": f"exp1-mnist-{task.rpartition('_')[0]}-1" for task in ("chief_0", "worker_0", "ps_0")}
    pods = {task: pod(task.replace("_", "-"), revision=revision) for task, revision in revisions.items()}
    assert decide(PATIENT, upgraded(see(group(**pods)), "worker"), running()).state.phase == RUNNING
    pods["worker_0"] = pod("worker-0", revision="exp1-mnist-worker-2", is_running=False)
    mixed = decide(PATIENT, upgraded(see(group(**pods)), "worker"), running())
    assert mixed.state.phase == RESTARTING
    assert "exp1-mnist-worker-0 came back" in mixed.notices[-1].message
    newcomer = (Deletion("exp1-mnist-worker-0", "uid-worker-0"),)
    assert mixed.deletions == newcomer, "it must not train beside those that still save"
    again = decide(PATIENT, see(list(pods.values()), wanted(chief=0)), mixed.state)
    assert again.deletions == newcomer, "its StatefulSet has made it anew meanwhile"
    pods["worker_0"] = pods["worker_0"]._replace(gone_by=NOW + 15)
    assert decide(PATIENT, see(list(pods.values()), wanted(chief=0)), mixed.state).deletions == ()


def test_another_number_of_workers_is_another_attempt():
    more = make_plan(chief=1, worker=3, ps=1)
    patient = decide(more._replace(on_change="finish-first"), upgraded(see(group()), "worker"), running())
    assert (patient.state.phase, patient.scales) == (RUNNING, ())
    assert patient.state.roles["worker"].wanted == 2
    started = decide(more, see([], zero()), decide(more, upgraded(see(group()), "worker"), running()).state)
    assert (started.state.attempt, started.state.roles["worker"].wanted) == (2, 3)
    assert Scale("exp1-mnist-worker", 3) in started.scales


def test_role_added_by_an_upgrade_joins_the_next_attempt():
    before = make_plan("between-graph-async", worker=2, ps=1)
    after = make_plan(chief=1, worker=2, ps=1)._replace(on_change="finish-first")
    seen = upgraded(see(group(before), plan=after), "worker", "ps")
    patient = decide(after, seen, running(before))
    assert (patient.state.phase, patient.scales) == (RUNNING, (Scale("exp1-mnist-chief", 0),))
    done = decide(after, seen._replace(pods=tuple(group(before, worker_0=pod("worker-0", end())))), patient.state)
    assert (done.state.verdict.result, done.state.verdict.pod) == (SUCCEEDED, "exp1-mnist-worker-0")


def test_role_that_replaces_the_only_one_gets_pods_at_once():
    before, after = make_plan("single", chief=1), make_plan(MULTI_WORKER_MIRRORED, worker=2)
    swapped = decide(after, see([pod("worker-0")], {"exp1-mnist-worker": 1}, plan=after), running(before))
    assert swapped.scales == (Scale("exp1-mnist-worker", 2),)


# --- steps that are lost -----------------------------------------------------------------------------------------


def lose_steps(*ends, first_step=120, problem=None):
    """Suspend a run at step 706, end its chief, resume it, and return what was lost once the new chief tells a step."""

    def told(step, uid="uid-chief-0"):
        return {uid: LauncherReport(1, step=step)}

    state = decide(PLAN, see(group(), now=NOW + 1)._replace(reports=told(706)), running()).state
    state = decide(SUSPEND, see(group(), now=NOW + 2)._replace(reports=told(706)), state).state
    gone = pod("chief-0", *ends, is_running=False, gone_by=NOW + 12)._replace(problem=problem)
    left = decide(SUSPEND, see(group(chief_0=None), wanted(chief=0), NOW + 12)._replace(departed=(gone,)), state)
    assert not left.is_recorded
    state = decide(SUSPEND, see([], zero(), NOW + 13), left.state).state
    state = decide(PLAN, see([], zero(), NOW + 60), state).state
    again = group(chief_0=pod("chief-0", uid="new"))
    state = decide(PLAN, see(again, now=NOW + 70), state).state
    assert (state.attempt, state.progress.before is None, state.setbacks) == (2, False, ())
    state = decide(PLAN, see(again, now=NOW + 72)._replace(reports=told(None, "new")), state).state
    state = decide(PLAN, see(again, now=NOW + 80)._replace(reports=told(first_step, "new")), state).state
    assert (state.progress.before, state.progress.end) == (None, "")
    return [(each.attempt, each.pod, each.reached, each.resumed, each.end) for each in state.setbacks]


def test_steps_lost_by_a_chief_killed_while_saving_are_recorded():
    lost = (2, "exp1-mnist-chief-0", 706, 120, KILLED)
    assert lose_steps(died()) == [lost]
    assert lose_steps(end(causes.TERMINATED, 143, signal=9, step=706)) == [lost]


@pytest.mark.parametrize(
    ("cause", "message", "way"),
    [
        ("evicted-by-client", "Eviction API: evicting", KILLED),
        ("evicted-by-taint", "Taint manager: deleting due to NoExecute taint", KILLED),
        ("evicted", 'Usage of EmptyDir volume "tmp" exceeds the limit "48Mi".', ""),
        ("evicted", "The node was low on resource: memory.", ""),
    ],
)
def test_grace_period_is_not_blamed_where_a_kubelet_evicts(cause, message, way):
    lost = lose_steps(end(causes.TERMINATED, 143, signal=9, step=706), problem=Problem(cause, message))
    assert lost == [(2, "exp1-mnist-chief-0", 706, 120, way)]


def test_steps_lost_by_a_chief_that_did_not_save_are_recorded():
    saved = end(causes.TERMINATED, 143, step=710)
    assert lose_steps(saved) == [(2, "exp1-mnist-chief-0", 710, 120, "")]
    assert lose_steps(saved, first_step=711) == []


def test_a_step_is_as_old_as_it_is_while_other_numbers_change():
    state = running()
    for number, (step, rate) in enumerate(((70, 8.0), (70, 4.0), (70, 2.0), (71, 2.0)), start=1):
        reports = {"uid-chief-0": LauncherReport(1, step=step, examples_per_second=rate)}
        state = decide(PLAN, see(group(), now=NOW + 60 * number)._replace(reports=reports), state).state
        assert state.progress.at == NOW + (60 if step == 70 else 240)
    assert (state.first_step, state.first_step_at) == (70, NOW + 60)
    assert state.progress.examples_per_second == 2.0


def test_marks_of_steps_are_a_minute_apart_and_few():
    state = running()
    for number in range(200):
        reports = {"uid-chief-0": LauncherReport(1, step=number // 3)}
        state = decide(PLAN, see(group(), now=NOW + 15 * number)._replace(reports=reports), state).state
    times = [mark.at - NOW for mark in state.marks]
    assert times[0] == 0
    assert times[-1] >= 15 * 199 - 90
    assert len(times) <= 12
    assert min(later - earlier for earlier, later in itertools.pairwise(times)) >= 60
    assert all(mark.step == (mark.at - NOW) // 45 for mark in state.marks)


def test_program_that_is_started_again_gets_a_mark_at_once():
    state = running()
    for number, (attempt, step) in enumerate(((1, 500), (2, 500), (2, 510)), start=1):
        reports = {"uid-chief-0": LauncherReport(attempt, step=step)}
        state = decide(PLAN, see(group(), now=NOW + 10 * number)._replace(reports=reports), state).state
    assert [(mark.step, mark.program) for mark in state.marks] == [(500, "uid-chie-1"), (500, "uid-chie-2")]


def test_restart_in_place_loses_steps_once_the_file_is_new():
    state = running()
    for number, (attempt, step) in enumerate(((1, 500), (2, 500), (2, 300), (2, 299)), start=1):
        reports = {"uid-chief-0": LauncherReport(attempt, step=step)}
        state = decide(PLAN, see(group(), now=NOW + 60 * number)._replace(reports=reports), state).state
    assert [(each.reached, each.resumed, each.attempt) for each in state.setbacks] == [(500, 300, 1)]


# --- deaths ------------------------------------------------------------------------------------------------------


def test_deaths_of_earlier_pods_are_counted_on():
    state = running()
    first = decide(PLAN, see(group(ps_0=pod("ps-0", died(), restarts=1))), state).state
    assert first.deaths == {"ps-0": Deaths("uid-ps-0", 0, 1)}
    anew = decide(PLAN, see(group(ps_0=pod("ps-0", uid="other"))), first).state
    assert anew.deaths == {"ps-0": Deaths("other", 1, 0)}
    again = pod("ps-0", died(), uid="other", restarts=3, is_running=True)
    verdict = settle(PLAN, group(ps_0=again), anew).state.verdict
    assert (verdict.result, verdict.cause, verdict.pod) == (FAILED, "killed", "exp1-mnist-ps-0")


def test_every_death_is_an_incident_and_the_first_is_kept():
    state, plan = running(), PLAN._replace(max_restarts=99)
    for number in range(1, 41):
        seen = see(group(ps_0=pod("ps-0", died(code=number % 100 + 1), restarts=number)), now=NOW + number)
        decision = decide(plan, seen, state)
        state = decision.state
        assert [notice.reason for notice in decision.notices] == ["RunIncident"]
    codes = [incident.exit_code for incident in state.incidents]
    assert (len(codes), codes[0], codes[-1]) == (20, 2, 41)
    assert state.incidents[0].action == "the container is started again"


def test_death_during_deletion_is_not_the_pods_own_fault():
    going = pod("ps-0", died(), restarts=1, is_running=False, gone_by=NOW + 9)
    state = decide(PLAN, see(group(ps_0=going)), running()).state
    assert state.deaths == {}
    assert [incident.cause for incident in state.incidents] == ["pod-deleted"]


@pytest.mark.parametrize(
    ("task", "restarts", "is_made_anew"),
    [("ps-0", 0, False), ("ps-0", 1, True), ("worker-0", 1, False), ("worker-0", 2, True)],
)
def test_a_pod_that_the_kubelet_lets_wait_is_made_anew(task, restarts, is_made_anew):
    waiting = pod(task, died(), restarts=restarts, is_running=False, is_backing_off=True)
    decision = decide(PLAN, see(group(**{task.replace("-", "_"): waiting})), running())
    assert decision.deletions == ((Deletion(waiting.name, waiting.uid),) if is_made_anew else ())
    assert not decision.is_recorded


def test_so_is_one_that_was_told_to_stop_though_its_pod_stays():
    stopped = end(causes.TERMINATED, 143)
    waiting = pod("ps-0", stopped, stopped, restarts=1, is_running=False, is_backing_off=True)
    assert decide(PLAN, see(group(ps_0=waiting)), running()).deletions == (Deletion(waiting.name, waiting.uid),)


def test_gave_up_launcher_and_leaving_pod_are_left_alone():
    given_up = pod("ps-0", end(), died(), restarts=2, is_running=False, is_backing_off=True)
    going = pod("worker-0", died(), restarts=3, is_running=False, is_backing_off=True, gone_by=NOW + 9)
    assert decide(PLAN, see(group(ps_0=given_up, worker_0=going)), running()).deletions == ()


def test_a_pod_that_was_evicted_is_an_incident_but_no_failure():
    going = pod("worker-0", gone_by=NOW + 30, problem=Problem("evicted", "The node was low on memory"))
    state = decide(PLAN, see(group(worker_0=going)), running()).state
    (incident,) = state.incidents
    assert (state.phase, incident.cause, incident.pod) == (RUNNING, "evicted", "exp1-mnist-worker-0")
    assert decide(PLAN, see(group(worker_0=going), now=NOW + 1), state).state.incidents == (incident,)


def test_pods_that_go_in_large_numbers_are_told_once():
    plan = make_plan(chief=1, worker=60, ps=1)
    going = {f"worker_{index}": pod(f"worker-{index}", gone_by=NOW + 30) for index in range(60)}
    first = decide(plan, see(group(plan, **going), plan=plan), running(plan))
    assert len(first.state.incidents) == 20
    fewer = {**going, "worker_0": None}
    for pods in (going, fewer):
        again = decide(plan, see(group(plan, **pods), now=NOW + 1, plan=plan), first.state)
        assert (again.state.incidents, again.notices) == (first.state.incidents, ())


def test_pod_that_died_and_is_evicted_later_has_two_incidents():
    state = decide(PLAN, see(group(worker_0=pod("worker-0", died(), restarts=1))), running()).state
    going = pod("worker-0", died(), restarts=1, gone_by=NOW + 30, problem=NODE_LOST)
    state = decide(PLAN, see(group(worker_0=going), now=NOW + 9), state).state
    assert [incident.cause for incident in state.incidents] == ["killed", "node-lost"]


def test_pod_killed_by_its_eviction_counts_as_evicted():
    plan = PLAN._replace(max_restarts=0)
    problem = Problem("evicted", "The node was low on memory")
    ended = group(worker_0=pod("worker-0", died(), is_running=False, problem=problem))
    state = running()
    for now in (NOW, NOW + SETTLE_SECONDS):
        state = decide(plan, see(ended, now=now), state).state
    assert (state.phase, state.deaths) == (RUNNING, {})
    assert [incident.cause for incident in state.incidents] == ["evicted"]


def test_success_counts_though_its_pod_is_gone_already():
    done = pod("chief-0", end(causes.SUCCEEDED, step=800, metrics={"accuracy": 0.9}), is_running=False)
    anew = pod("chief-0", uid="other", is_running=False)
    seen = see(group(chief_0=anew))._replace(departed=(done,))
    verdict = decide(PLAN, seen, running()).state.verdict
    assert (verdict.result, verdict.pod, verdict.step, verdict.metrics) == (
        SUCCEEDED,
        done.name,
        800,
        {"accuracy": 0.9},
    )
    other = done._replace(run_id="run-0")
    assert decide(PLAN, seen._replace(departed=(other,)), running()).state.verdict is None


def test_container_stopped_again_and_again_has_the_usual_budget():
    state = running()
    for restarts in range(4):
        stopped = end(causes.TERMINATED, 143)
        waiting = pod("worker-0", stopped, *([stopped] if restarts else []), restarts=restarts, is_running=False)
        for now in (NOW, NOW + SETTLE_SECONDS):
            assert state.phase == RUNNING
            state = decide(PLAN, see(group(worker_0=waiting), now=now), state).state
    assert (state.verdict.cause, state.verdict.pod, state.verdict.exit_code) == (
        "probe-failed",
        "exp1-mnist-worker-0",
        143,
    )
    assert "not its pod" in state.verdict.error
    assert [incident.action for incident in state.incidents][-2:] == ["the container is started again", "given up"]


@pytest.mark.parametrize(
    ("task", "seconds", "words"),
    [
        ("worker-1", 5, "its StatefulSet was scaled to 1 by kubectl"),
        ("worker-0", 5, ""),
        ("worker-1", 500, ""),
    ],
)
def test_pods_of_a_set_that_was_scaled_down_go_for_that(task, seconds, words):
    look = see(group())
    scaled = look._replace(sets={**look.sets, "exp1-mnist-worker": SetView(1, scaled_by="kubectl")})
    seen = decide(PLAN, scaled, running())
    assert [scale.set_name for scale in seen.scales] == ["exp1-mnist-worker"]
    going = pod(task, gone_by=NOW + seconds + 30)
    later = see(group(**{task.replace("-", "_"): going}), now=NOW + seconds)
    (incident,) = decide(PLAN, later, parse_state(dump_state(seen.state))).state.incidents
    assert (incident.cause, incident.pod, incident.error) == ("pod-deleted", f"exp1-mnist-{task}", words)


# --- nodes -------------------------------------------------------------------------------------------------------


def test_pod_of_a_lost_node_is_replaced_only_if_values_say_so():
    lost = pod("ps-0", gone_by=NOW, problem=NODE_LOST)
    seen = see(group(ps_0=lost), now=NOW + LOST_SECONDS)
    told = decide(PLAN, seen, running())
    assert told.deletions == ()
    assert "waiting" in told.state.incidents[0].action
    assert [(each.subject, each.cause) for each in told.state.problems] == [("exp1-mnist-ps-0", "node-lost")]
    bold = PLAN._replace(force_delete_lost=True)
    assert decide(bold, seen, running()).deletions == (Deletion(lost.name, lost.uid, is_forced=True),)
    early = decide(bold, seen._replace(now=NOW + LOST_SECONDS - 1), running())
    assert (early.deletions, early.wake_at) == ((), NOW + LOST_SECONDS)


def test_lost_pod_of_the_previous_run_is_named_and_replaced():
    lost = pod("worker-1", run_id="run-0", node="node-2", gone_by=NOW - LOST_SECONDS, problem=NODE_LOST)
    before = running()._replace(run_id="run-0")
    waiting = decide(PLAN, see([lost], zero()), before)
    assert (waiting.state.phase, waiting.scales, waiting.deletions) == (STARTING, (), ())
    assert [(each.subject, each.cause, each.node) for each in waiting.state.problems] == [
        (lost.name, "node-lost", "node-2")
    ]
    verdict = decide(PLAN, see([lost], zero(), NOW + 1800), waiting.state).state.verdict
    assert (verdict.cause, verdict.pod, verdict.node) == ("node-lost", lost.name, "node-2")
    bold = PLAN._replace(force_delete_lost=True)
    assert decide(bold, see([lost], zero()), before).deletions == (Deletion(lost.name, lost.uid, is_forced=True),)


def test_a_pod_that_the_controller_may_not_delete_is_left_alone():
    fewer = make_plan(chief=1, worker=1, ps=1)._replace(force_delete_lost=True)
    lost = pod("worker-1", gone_by=NOW - LOST_SECONDS, problem=NODE_LOST)
    restarting = decide(fewer, upgraded(see(group(worker_1=lost)), "worker"), running())
    assert (restarting.state.phase, restarting.deletions) == (RESTARTING, ())


def test_a_run_ends_though_a_lost_node_keeps_a_pod():
    stopping = decide(PLAN, see(group(chief_0=pod("chief-0", end()))), running()).state
    lost = pod("worker-1", gone_by=NOW, node="node-2")
    waiting = decide(PLAN, see([lost], zero(), NOW + 1), stopping)
    assert waiting.state.phase == STOPPING
    assert waiting.wake_at is not None
    assert waiting.wake_at <= NOW + LOST_SECONDS
    over = decide(PLAN, see([lost], zero(), NOW + LOST_SECONDS), stopping)
    assert (over.state.phase, over.exit_code) == (SUCCEEDED, 0)
    assert "exp1-mnist-worker-1 on node-2" in over.notices[-1].message


def test_two_attempts_never_overlap_even_on_a_lost_node():
    restarting = decide(PLAN, upgraded(see(group()), "ps"), running()).state
    lost = pod("worker-1", gone_by=NOW, problem=NODE_LOST)
    assert decide(PLAN, see([lost], zero(), NOW + 9999), restarting).state.phase == RESTARTING


def test_a_pod_that_does_not_go_is_named():
    restarting = decide(PLAN, upgraded(see(group()), "ps"), running()).state
    stuck = pod("worker-1", gone_by=NOW)
    waiting = decide(PLAN, see([stuck], zero(), NOW + LOST_SECONDS - 1), restarting)
    assert (waiting.state.problems, waiting.wake_at) == ((), NOW + LOST_SECONDS)
    (problem,) = decide(PLAN, see([stuck], zero(), NOW + LOST_SECONDS), waiting.state).state.problems
    assert (problem.subject, problem.cause) == ("exp1-mnist-worker-1", "pod-stuck")


def test_without_a_start_deadline_pods_are_waited_for_for_ever():
    plan = PLAN._replace(start_deadline_seconds=0.0)
    first = decide(plan, see(group(ps_0=None), plan=plan), running(plan))
    assert first.wake_at is None
    assert decide(plan, see(group(ps_0=None), now=NOW + 1e6, plan=plan), first.state).state.phase == RUNNING
    starting = decide(plan, see(plan=plan), None)
    assert starting.wake_at is None
    assert decide(plan, see(now=NOW + 1e6, plan=plan), starting.state).state.phase == STARTING


def test_a_training_that_waits_for_a_pod_too_long_is_ended():
    first = decide(PLAN, see(group(ps_0=None)), running())
    assert (first.state.missing_since, first.wake_at, first.wants_events) == (NOW, NOW + 1800, True)
    back = decide(PLAN, see(group(), now=NOW + 9), first.state)
    assert back.state.missing_since is None
    verdict = decide(PLAN, see(group(ps_0=None), now=NOW + 1800), first.state).state.verdict
    assert (verdict.result, verdict.cause, verdict.pod) == (FAILED, "start-deadline", "exp1-mnist-ps-0")


def test_a_container_that_could_not_be_started_has_not_run():
    ended = ContainerEnd(128, "StartError", "exec: no such file or directory", finished_at=NOW)
    pods = group(worker_1=pod("worker-1", ended, is_running=False, is_backing_off=True))
    assert decide(PLAN, see(pods), None).state.phase == STARTING
    crashed = group(worker_1=pod("worker-1", died(), is_running=False, is_backing_off=True))
    assert decide(PLAN, see(crashed), None).state.phase == RUNNING


def test_container_that_cannot_restart_has_the_start_deadline():
    # Its node has come back without the image, which the registry does not give any more.
    held = pod("ps-0", died(), is_running=False, is_held=True, problem=Problem("image-pull", "not found"))
    first = decide(PLAN, see(group(ps_0=held)), running())
    assert (first.state.missing_since, first.wake_at) == (NOW, NOW + 1800)
    verdict = decide(PLAN, see(group(ps_0=held), now=NOW + 1800), first.state).state.verdict
    assert (verdict.result, verdict.cause, verdict.pod) == (FAILED, "image-pull", "exp1-mnist-ps-0")


def test_a_worker_that_has_succeeded_is_not_waited_for():
    mwms = make_plan(MULTI_WORKER_MIRRORED, worker=2)
    done = decide(mwms, see(group(mwms, worker_1=pod("worker-1", end())), plan=mwms), running(mwms)).state
    assert (done.phase, done.succeeded) == (RUNNING, {"worker-1": NOW})
    assert (done.roles["worker"].running, done.roles["worker"].finished) == (1, 1)
    assert decide(mwms, see(group(mwms, worker_1=None), plan=mwms), done).state.missing_since is None


def test_finished_worker_that_others_do_not_need_is_freed():
    first = decide(PLAN, see(group(worker_1=pod("worker-1", end()))), running())
    assert first.scales == (Scale("exp1-mnist-worker", 1),)
    assert [notice.reason for notice in first.notices] == ["RunTaskFinished"]
    going = pod("worker-1", end(), gone_by=NOW + 30)
    state = decide(PLAN, see(group(worker_1=going), wanted(worker=1), NOW + 1), first.state).state
    alone = see(group(worker_1=None), wanted(worker=1), NOW + 2)._replace(departed=(going,))
    last = decide(PLAN, alone, state)
    assert (last.scales, last.wants_events, last.state.incidents) == ((), False, ())
    assert (last.state.roles["worker"].wanted, last.state.roles["worker"].finished) == (2, 1)


def test_finished_worker_stays_where_others_need_its_place():
    first = decide(PLAN, see(group(worker_0=pod("worker-0", end()))), running())
    assert (first.scales, first.state.succeeded) == ((), {"worker-0": NOW})
    mwms = make_plan(MULTI_WORKER_MIRRORED, worker=2)
    done = decide(mwms, see(group(mwms, worker_1=pod("worker-1", end())), plan=mwms), running(mwms))
    assert done.scales == ()


def test_pod_replaced_while_no_controller_ran_is_an_incident():
    state = decide(PLAN, see(group()), running()).state
    moved = see(group(chief_0=pod("chief-0", uid="new-uid-of-the-chief")), now=NOW + 60)
    after = decide(PLAN, moved, state).state
    (incident,) = after.incidents
    assert (incident.cause, incident.pod, incident.at) == ("pod-deleted", "exp1-mnist-chief-0", NOW + 60)
    assert decide(PLAN, moved, after).state.incidents == (incident,), "told once"


def test_a_pod_that_was_seen_to_go_is_told_once():
    state = decide(PLAN, see(group()), running()).state
    gone = see(group(chief_0=None), now=NOW + 1)._replace(departed=(pod("chief-0"),))
    state = decide(PLAN, gone, state).state
    assert len(state.incidents) == 1
    back = see(group(chief_0=pod("chief-0", uid="another")), now=NOW + 5)
    assert len(decide(PLAN, back, state).state.incidents) == 1


def test_earlier_ends_are_reported_without_the_launchers_status():
    deaths = tuple(Failure(number, NOW - 10 + number, "probe-failed", 137) for number in (1, 2, 3))
    ended = pod("worker-1", end(causes.KILLED, 137, ended=4, failures=deaths), is_running=False)
    state = decide(PLAN, see(group(worker_1=ended)), running()).state
    assert [(each.pod, each.cause) for each in state.incidents] == [("exp1-mnist-worker-1", "probe-failed")] * 3
    assert state.roles["worker"].failures == 4


def tell_lies(looks, at, state, count=10):
    """Follow a pod whose launcher tells of `count` new ends at every look; return (the state, the notices)."""
    notices = []
    for look in range(looks):
        numbers = range(look * count + 1, (look + 1) * count + 1)
        lies = tuple(Failure(number, at, "killed", 137, f"end {number}") for number in numbers)
        report = LauncherReport(1, ended=numbers[-1], failures=lies)
        decision = decide(PLAN, see(group(), now=NOW + 10 * look)._replace(reports={"uid-worker-0": report}), state)
        state, notices = decision.state, [*notices, *decision.notices]
    return state, notices


@pytest.mark.parametrize("at", [-1e300, 0.0, NOW, 1e300])
def test_a_pod_that_tells_of_ends_without_number_drowns_nothing(at):
    state, notices = tell_lies(30, at, running())
    assert len(notices) == FAILURES_KEPT
    assert all(NOW - 600 <= each.at <= NOW + 300 for each in state.incidents)
    assert state.roles["worker"].failures == 300
    killed = see(group(ps_0=pod("ps-0", died("OOMKilled"), restarts=1)), now=NOW + 300)
    assert "exp1-mnist-ps-0" in [each.pod for each in decide(PLAN, killed, state).state.incidents]


def test_pods_that_lie_together_make_no_flood_of_events():
    state, notices = running(), []
    for look in range(30):
        lies = tuple(Failure(number, NOW, "killed", 137) for number in range(look * 10 + 1, look * 10 + 11))
        reports = {each.uid: LauncherReport(1, ended=lies[-1].number, failures=lies) for each in group()}
        decision = decide(PLAN, see(group(), now=NOW + 10 * look)._replace(reports=reports), state)
        state, notices = decision.state, [*notices, *decision.notices]
    assert len(notices) <= FAILURES_KEPT * len(group())


def test_ends_that_are_only_counted_are_recorded_now_and_then():
    state, _ = tell_lies(2, NOW, running())
    writes = 0
    for look in range(100):
        now = NOW + 20 + look / 10
        lies = (Failure(100 + look, now, "killed", 137),)
        reports = {"uid-worker-0": LauncherReport(1, ended=100 + look, failures=lies)}
        decision = decide(PLAN, see(group(), now=now)._replace(reports=reports), state)
        if not decision.is_recorded:
            state, writes = decision.state, writes + 1
    assert writes <= 2
    assert state.roles["worker"].failures > 20


def test_program_that_ends_every_ten_minutes_is_always_reported():
    state = running()
    for number in range(1, 31):
        now = NOW + 600 * number
        report = LauncherReport(number, ended=number, failures=(Failure(number, now, "killed", 137),))
        state = decide(PLAN, see(group(), now=now)._replace(reports={"uid-worker-0": report}), state).state
        assert state.incidents[-1].at == now


def test_only_parameter_server_training_goes_on_without_a_worker():
    assert decide(PLAN, see(group(worker_0=None), now=NOW + 9999), running()).state.missing_since is None
    mwms = make_plan(MULTI_WORKER_MIRRORED, worker=2)
    seen = see(group(mwms, worker_1=None), plan=mwms)
    assert decide(mwms, seen, running(mwms)).state.missing_since == NOW


# --- deadlines and progress --------------------------------------------------------------------------------------


def test_a_run_may_take_only_so_long():
    plan = PLAN._replace(active_deadline_seconds=3600.0)
    state = running(plan)
    assert decide(plan, see(group(), now=NOW + 3599), state).wake_at == NOW + 3600
    decision = decide(plan, see(group(), now=NOW + 3600), state)
    assert (decision.state.verdict.result, decision.state.verdict.cause) == (FAILED, "active-deadline")
    assert decision.state.verdict.node == "node-1"
    assert decision.scales == CHIEF_FIRST, "a program that is well gets the time to save"


def test_verdict_of_a_late_run_names_throttled_pods():
    plan = PLAN._replace(active_deadline_seconds=60.0)
    slow = LauncherReport(1, throttling="throttled for more than half of the last minute: its CPU limit is 20m")
    both = {"uid-worker-0": slow, "uid-worker-1": slow}
    verdict = decide(plan, see(group(), now=NOW + 61, plan=plan)._replace(reports=both), running()).state.verdict
    assert verdict.error == (
        "not finished after 60 s; exp1-mnist-worker-0, exp1-mnist-worker-1 were throttled for more than half of the "
        "last minute: its CPU limit is 20m [cpu-throttled]"
    )
    assert "raise roles.worker.cpuLimit, or roles.worker.cpu " in verdict.hint
    assert verdict.hint.endswith(causes.ACTIVE_DEADLINE.hint)
    failed = group(worker_1=pod("worker-1", end(causes.PROGRAM_ERROR, 1, task="worker-1"), is_running=False))
    seen = see(failed, now=NOW + 9)._replace(reports={"uid-worker-0": slow})
    state = decide(PLAN, seen, running()).state
    assert [each.cause for each in state.problems] == ["cpu-throttled"]
    state = decide(PLAN, seen._replace(now=NOW + 9 + SETTLE_SECONDS), state).state
    assert (state.verdict.cause, state.verdict.error) == ("program-error", ""), "an exception explains itself"


def test_a_clock_that_is_set_back_puts_no_deadline_off():
    ahead = decide(PLAN, see([], now=NOW + 1e6), None).state
    starting = decide(PLAN, see([]), ahead)
    assert (starting.is_recorded, starting.wake_at) == (False, NOW + 1800)
    missing = decide(PLAN, see(group(ps_0=None), now=NOW + 1e6), running()).state
    assert decide(PLAN, see(group(ps_0=None)), missing).wake_at == NOW + 1800
    failing = group(ps_0=pod("ps-0", end(causes.MODULE_MISSING, 1)))
    seen = decide(PLAN, see(failing, now=NOW + 1e6), running()).state
    assert decide(PLAN, see(failing), seen).wake_at == NOW + SETTLE_SECONDS
    hasty = PLAN._replace(active_deadline_seconds=60.0)
    assert decide(hasty, see(group()), running()._replace(active_since=NOW + 1e6)).wake_at == NOW + 60


def report(attempt, step, cause="", error=""):
    failures = (Failure(attempt - 1, NOW, cause, 1, error),) if cause else ()
    return LauncherReport(attempt, step=step, ended=attempt - 1, failures=failures)


def said(*words, uid="uid-chief-0", **more):
    """What the launcher of one pod says."""
    return {uid: report(*words, **more)}


def test_leader_that_restarts_without_progress_fails_the_run():
    state = running()
    for attempt in range(1, FRUITLESS_RESTARTS + 2):
        seen = see(group(), now=NOW + attempt)._replace(reports=said(attempt, 400, cause="peer-lost"))
        decision = decide(PLAN, seen, state)
        state = decision.state
        assert state.phase == RUNNING
    assert [incident.cause for incident in state.incidents] == ["peer-lost"] * FRUITLESS_RESTARTS
    further = see(group(), now=NOW + 50)._replace(reports=said(attempt + 1, 401))
    assert decide(PLAN, further, state).state.progress.fruitless_restarts == 0
    seen = see(group(), now=NOW + 50)._replace(reports=said(attempt + 1, 400, cause="peer-lost"))
    verdict = decide(PLAN, seen, state).state.verdict
    assert (verdict.result, verdict.cause, verdict.pod) == (FAILED, "no-progress", "exp1-mnist-chief-0")


def test_leader_that_keeps_failing_is_explained_by_its_own_words():
    words = "socket.gaierror: no such name"
    seen = see(group())._replace(reports=said(3, None, cause="peer-unresolvable", error=words))
    state = decide(PLAN, seen, running()).state
    assert state.progress.fruitless_restarts == 2, "those before the first look count as well"
    last = report(FRUITLESS_RESTARTS + 2, None, cause="peer-unresolvable", error=words)
    verdict = decide(PLAN, see(group(), now=NOW + 9)._replace(reports={"uid-chief-0": last}), state).state.verdict
    assert (verdict.cause, verdict.pod, verdict.node) == ("peer-unresolvable", "exp1-mnist-chief-0", "node-1")
    assert verdict.error == f"{words} ({FRUITLESS_RESTARTS + 1} restarts without a step)"


def test_leader_evicted_again_and_again_fails_the_run():
    state = running()
    for number in range(FRUITLESS_RESTARTS + 1):
        assert state.phase == RUNNING
        evicted = Problem("evicted", "The node was low on resource: ephemeral-storage.")
        chief = pod("chief-0", uid=f"u{number}")
        state = decide(
            PLAN, see(group(chief_0=chief), now=NOW + 20 * number)._replace(reports=said(1, 5, uid=chief.uid)), state
        ).state
        going = chief._replace(problem=evicted, is_running=False)
        state = decide(PLAN, see(group(chief_0=going), now=NOW + 20 * number + 10), state).state
    again = see(group(chief_0=pod("chief-0", uid="last")), now=NOW + 900)._replace(reports=said(1, 5, uid="last"))
    verdict = decide(PLAN, again, state).state.verdict
    assert (verdict.result, verdict.cause, verdict.pod) == (FAILED, "evicted", "exp1-mnist-chief-0")
    assert verdict.error.startswith("The node was low on resource: ephemeral-storage. (6 restarts since step 5")


@pytest.mark.parametrize("way", ["upgrade", "resume"])
def test_what_a_user_changes_gets_its_own_starts_without_a_step(way):
    progress = RunProgress(NOW, 1, best_step=5, fruitless_restarts=FRUITLESS_RESTARTS, uid="uid-chief-0")
    state = running()._replace(progress=progress)
    if way == "upgrade":
        state = decide(PLAN, upgraded(see(group()), "chief"), state).state
    else:
        state = decide(PLAN, see(sets=zero()), state._replace(phase=SUSPENDED)).state
    assert state.phase in (RESTARTING, STARTING) and state.progress.fruitless_restarts == 0
    state = decide(PLAN, see(sets=zero(), now=NOW + 5), state).state
    again = group(chief_0=pod("chief-0", uid="new"))
    state = decide(PLAN, see(again, now=NOW + 9)._replace(reports=said(1, 5, uid="new")), state).state
    assert (state.phase, state.attempt, state.progress.fruitless_restarts) == (RUNNING, 2, 0)


def test_peer_evicted_again_and_again_is_named_for_its_leader():
    state = running()
    for number in range(FRUITLESS_RESTARTS + 1):
        assert state.phase == RUNNING
        evicted = Problem("evicted", 'Usage of EmptyDir volume "tmp" exceeds the limit "20Mi".')
        worker = pod("worker-1", uid=f"w{number}")
        now = NOW + 20 * number
        state = decide(
            PLAN,
            see(group(worker_1=worker), now=now)._replace(reports=said(number + 1, 5, cause="peer-lost")),
            state,
        ).state
        going = worker._replace(problem=evicted, is_running=False, node="node-9")
        state = decide(PLAN, see(group(worker_1=going), now=now + 10), state).state
    again = see(group(), now=NOW + 900)._replace(reports=said(FRUITLESS_RESTARTS + 2, 5, cause="peer-lost"))
    verdict = decide(PLAN, again, state).state.verdict
    assert (verdict.cause, verdict.pod, verdict.node) == ("evicted", "exp1-mnist-worker-1", "node-9")
    assert verdict.error.startswith('Usage of EmptyDir volume "tmp" exceeds the limit "20Mi". (6 restarts since step 5')


def test_restarts_before_the_first_look_alone_end_no_run():
    late = decide(PLAN, see(group())._replace(reports=said(40, None, cause="peer-lost")), None).state
    assert late.verdict is None
    assert 0 < late.progress.fruitless_restarts <= FRUITLESS_RESTARTS


def test_leader_without_steps_that_works_long_is_not_given_up():
    state = running()
    for attempt in range(1, 3 * FRUITLESS_RESTARTS):
        seen = see(group(), now=NOW + attempt * STEADY_SECONDS)._replace(reports=said(attempt, None))
        state = decide(PLAN, seen, state).state
    assert (state.phase, state.progress.fruitless_restarts) == (RUNNING, 1)


def test_unprovisioned_claim_is_explained_by_its_provisioner():
    unbound = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    problem = Problem("volume-error", unbound)
    waiting = pod("ps-0", is_running=False, node="", problem=problem, claims=("exp1-mnist-data",))
    scheduler = Event("Pod", "exp1-mnist-ps-0", "FailedScheduling", unbound, NOW)
    provisioner = Event("PersistentVolumeClaim", "exp1-mnist-data", "ProvisioningFailed", "no class fast", NOW)

    def explain(*events):
        (problem,) = decide(PLAN, see(group(ps_0=waiting))._replace(events=events), running()).state.problems
        return problem.cause, problem.message

    assert explain(scheduler) == ("volume-error", unbound)
    assert explain(scheduler, provisioner) == ("volume-error", "claim exp1-mnist-data: no class fast")
    missing = 'storageclass.storage.k8s.io "fast" not found'
    absent = provisioner._replace(message=missing)
    assert explain(scheduler, absent) == ("storage-class-missing", f"claim exp1-mnist-data: {missing}")
    pulling = see(group(ps_0=waiting._replace(node="node-1", problem=None)))._replace(events=(scheduler, provisioner))
    assert decide(PLAN, pulling, running()).state.problems == (), "it has its claim and its node by now"


def test_the_step_is_recorded_now_and_then():
    first = decide(PLAN, see(group())._replace(reports=said(1, 10)), running())
    state = first.state
    soon = decide(PLAN, see(group(), now=NOW + 20)._replace(reports=said(1, 20)), state)
    assert (soon.is_recorded, soon.wake_at) == (True, NOW + 30)
    later = decide(PLAN, see(group(), now=NOW + 30)._replace(reports=said(1, 30)), state)
    assert (later.is_recorded, later.state.progress.step) == (False, 30)


def test_logs_are_kept_when_the_verdict_is_made_and_only_then():
    first = decide(PLAN, see(group(chief_0=pod("chief-0", end()))), running())
    assert first.keeps_logs
    assert not decide(PLAN, see([pod("ps-0", gone_by=NOW + 9)], zero()), first.state).keeps_logs


def test_a_set_that_is_gone_is_left_alone():
    assert decide(PLAN, see(group(), {"exp1-mnist-chief": 1}), running()).scales == ()
    assert SetView(0).revision == ""


@pytest.mark.parametrize(
    ("last", "cause"),
    [
        (end(causes.TERMINATED, 143), "probe-failed"),
        (ContainerEnd(143, "Error"), "probe-failed"),
        (ContainerEnd(137, "Error"), "killed"),
        (ContainerEnd(137, "OOMKilled"), "out-of-memory"),
        (ContainerEnd(128, "StartError", "exec: no such file or directory"), "program-missing"),
        (ContainerEnd(255, "Error", "exec /usr/bin/python3: exec format error"), "wrong-architecture"),
        (ContainerEnd(128, "StartError", 'exec "/app/train": exec format error'), "wrong-architecture"),
        (ContainerEnd(128, "StartError", 'error mounting "/a" to rootfs at "/b": not a directory'), "volume-error"),
        (ContainerEnd(128, "StartError", "nvidia-container-cli: initialization error: nvml error"), "device-error"),
        (ContainerEnd(128, "StartError", "container init was OOM-killed (memory limit too low?)"), "out-of-memory"),
    ],
)
def test_a_death_is_named_by_its_evidence(last, cause):
    state = decide(PLAN, see(group(ps_0=pod("ps-0", last, restarts=1))), running()).state
    assert [incident.cause for incident in state.incidents] == [cause]


def test_last_line_of_early_success_is_recorded():
    last = end(lines=("step 60 loss 0.7", "end of shard after 62 batches"))
    state = decide(PLAN, see(group(worker_1=pod("worker-1", last, is_running=False))), running()).state
    assert state.final_lines == {"worker-1": "end of shard after 62 batches"}
    assert decide(PLAN, see(group(worker_1=None)), state).state.final_lines == state.final_lines
    many = make_plan(worker=FINAL_LINES_KEPT + 9, ps=1, chief=1)
    pods = group(many, **{f"worker_{n}": pod(f"worker-{n}", last) for n in range(FINAL_LINES_KEPT + 9)})
    assert len(decide(many, see(pods, plan=many), running(many)).state.final_lines) == FINAL_LINES_KEPT


def test_unseen_success_is_taken_from_the_next_pods_launcher():
    """The pod was lost with its node in the moment of its success; the one after it finds the shared marker."""
    parked = {"uid-chief-0": LauncherReport(0, is_parked=True)}
    decision = decide(PLAN, see(group())._replace(reports=parked), running())
    assert decision.state.verdict is not None
    assert (decision.state.phase, decision.state.verdict.result) == (STOPPING, SUCCEEDED)


NO_NODE = Problem("no-node-matches", "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity.")


def look_again_and_again(state, pods, looks=FRUITLESS_RESTARTS + 3):
    """Return the state after looks between which the leader's program was started again."""
    for number in range(1, looks):
        report = said(number, None, cause="peer-unresolvable")
        state = decide(PLAN, see(pods, now=NOW + number)._replace(reports=report), state).state
    return state


def test_leader_that_reaches_no_peer_names_those_that_do_not_run():
    """Its own error says no more than that a name is unknown."""
    absent = group(ps_0=pod("ps-0", is_running=False, node="", problem=NO_NODE))
    verdict = look_again_and_again(running(), absent).verdict
    assert (verdict.cause, verdict.pod) == ("peer-unresolvable", "exp1-mnist-chief-0")
    assert verdict.error.endswith(f"; exp1-mnist-ps-0 did not run: {NO_NODE.message} [no-node-matches]")


def test_leader_that_dies_until_its_peers_come_is_not_given_up():
    absent = group(ps_0=pod("ps-0", is_running=False, node="", problem=NO_NODE))
    state = look_again_and_again(decide(PLAN, see(absent), None).state, absent, looks=4 * FRUITLESS_RESTARTS)
    assert (state.phase, state.verdict) == (STARTING, None)
    report = said(4 * FRUITLESS_RESTARTS, None, cause="peer-unresolvable")
    state = decide(PLAN, see(group(), now=NOW + 99)._replace(reports=report), state).state
    assert (state.phase, state.progress.fruitless_restarts) == (RUNNING, 0)
