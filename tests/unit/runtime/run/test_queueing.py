"""A run in a queue: waits as a whole, starts as a whole, saves and waits again when preempted, and frees its quota."""

from __future__ import annotations

import pytest

from tests.unit.runtime.run_scenes import NOW, PLAN, end, group, pod, see, zero
from trainchart_runtime import pod_causes
from trainchart_runtime.contract import QUEUE_GATE
from trainchart_runtime.pod_problems import Problem
from trainchart_runtime.run.observation import parse_pod, parse_set
from trainchart_runtime.run.plan import DESIRED_STOPPED, DESIRED_SUSPENDED
from trainchart_runtime.run.queueing import (
    CREATE,
    DELETE,
    FINISH,
    READY,
    REQUEUE,
    Placement,
    QueueView,
    WorkloadView,
    parse_workload,
    reduce_template,
)
from trainchart_runtime.run.rules import decide
from trainchart_runtime.run.state import (
    FINISHING,
    QUEUED,
    RESTARTING,
    RUNNING,
    STARTING,
    STOPPED,
    SUCCEEDED,
    SUSPENDED,
)

QUEUED_PLAN = PLAN._replace(queue="team-a")
TEMPLATE = {"containers": [{"name": "training", "resources": {"requests": {"cpu": "1"}}}]}
PLACES = {"chief": Placement(), "worker": Placement({"pool": "a100"}, ({"key": "gpu", "operator": "Exists"},))}
UNUSABLE = Problem(pod_causes.QUEUE_UNUSABLE.name, "forbidden")


def look(pods=(), sets=None, workload=None, now=NOW, places=PLACES, problem=None, template=TEMPLATE):
    seen = see(pods, sets, now)
    sets = {name: view._replace(template=template) for name, view in seen.sets.items()}
    known = places if workload and workload.is_admitted else None
    return seen._replace(sets=sets, queue=QueueView("team-a", workload, known, problem))


def gated(task, **more):
    more = {"problem": Problem(pod_causes.SCHEDULING_GATED.name, "held"), **more}
    return pod(task, is_running=False, node="", gates=(QUEUE_GATE,), **more)


ASKS = decide(QUEUED_PLAN, look([gated("chief-0")]), None).queue_step.asks
PENDING = WorkloadView(ASKS, is_answered=True, message="insufficient unused quota for nvidia.com/gpu, 6 more needed")
ADMITTED = WorkloadView(ASKS, is_admitted=True, holds_quota=True, is_answered=True)
EVICTED = ADMITTED._replace(is_evicted=True, message="Preempted to accommodate a workload")


def queued():
    """Return the state of a run that waits."""
    return decide(QUEUED_PLAN, look([gated("chief-0")]), None).state


def started(now=NOW):
    return decide(QUEUED_PLAN, look(sets=zero(), workload=ADMITTED, now=now), queued()).state


def trains():
    state = decide(QUEUED_PLAN, look(group(), workload=ADMITTED), started()).state
    assert state.phase == RUNNING
    return state


def test_new_run_creates_its_workload_and_keeps_its_pods_away():
    sets = {role.name: 1 for role in PLAN.cluster.roles.values()}
    decision = decide(QUEUED_PLAN, look([gated("chief-0"), gated("worker-0")], sets), None)
    assert (decision.state.phase, decision.queue_step.action, decision.is_recorded) == (QUEUED, CREATE, False)
    assert {(scale.set_name, scale.replicas) for scale in decision.scales} == {(name, 0) for name in sets}
    spec = decision.queue_step.spec
    assert spec["queueName"] == "team-a"
    assert [(each["name"], each["count"]) for each in spec["podSets"]] == [("chief", 1), ("worker", 2), ("ps", 1)]
    assert spec["podSets"][1]["template"] == {"spec": TEMPLATE}
    assert (decision.wake_at, decision.exit_code, decision.admissions) == (None, None, ())
    assert decision.state.problems == ()


def test_workload_is_created_once_every_template_is_known():
    seen = look(sets=zero(), template={})
    assert decide(QUEUED_PLAN, seen, queued()).queue_step is None


def test_waiting_run_starts_nothing_and_misses_no_deadline():
    plan = QUEUED_PLAN._replace(active_deadline_seconds=60.0)
    later = decide(plan, look(sets=zero(), workload=PENDING, now=NOW + 9e6), queued())
    assert (later.state.phase, later.scales, later.queue_step, later.wake_at) == (QUEUED, (), None, None)
    (problem,) = later.state.problems
    assert not later.is_recorded, "why it waits is told at once"
    assert (problem.subject, problem.cause, problem.message) == ("queue team-a", "queued", PENDING.message)
    begun = decide(plan, look(sets=zero(), workload=ADMITTED, now=NOW + 9e6), later.state)
    assert begun.state.phase == STARTING and begun.wake_at == NOW + 9e6 + 60


def test_admitted_run_starts_all_its_sets_at_once():
    decision = decide(QUEUED_PLAN, look(sets=zero(), workload=ADMITTED, now=NOW + 50), queued())
    assert (decision.state.phase, decision.state.attempt, decision.state.since) == (STARTING, 1, NOW + 50)
    assert sorted((scale.set_name, scale.replicas) for scale in decision.scales) == [
        ("exp1-mnist-chief", 1),
        ("exp1-mnist-ps", 1),
        ("exp1-mnist-worker", 2),
    ]


def test_pods_are_admitted_where_their_flavors_are():
    worker = gated("worker-1", tolerations=({"key": "a"},))
    pods = [gated("chief-0"), worker._replace(gates=(QUEUE_GATE, "policy.example.com/hold"))]
    chief, other = decide(QUEUED_PLAN, look(pods, workload=ADMITTED), started()).admissions
    assert (chief.pod_name, chief.uid, chief.gates, chief.placement) == (
        "exp1-mnist-chief-0", "uid-chief-0", (), Placement(),
    )  # fmt: skip
    assert (other.gates, other.placement.node_selector) == (("policy.example.com/hold",), {"pool": "a100"})
    assert list(other.tolerations) == [{"key": "a"}, {"key": "gpu", "operator": "Exists"}]


def test_no_pod_is_admitted_while_flavors_are_unknown():
    seen = look([gated("chief-0")], workload=ADMITTED, places=None, problem=UNUSABLE)
    assert decide(QUEUED_PLAN, seen, started()).admissions == ()
    waiting = decide(QUEUED_PLAN, look(sets=zero(), workload=ADMITTED, places=None, problem=UNUSABLE), queued())
    assert waiting.state.phase == QUEUED
    assert [(each.subject, each.cause) for each in waiting.state.problems] == [("queue team-a", "queue-unusable")]


def test_recreated_pod_of_an_admitted_run_goes_on():
    seen = look(group(worker_1=gated("worker-1")), workload=ADMITTED._replace(is_ready=True))
    decision = decide(QUEUED_PLAN, seen, trains())
    assert decision.state.phase == RUNNING
    assert [each.pod_name for each in decision.admissions] == ["exp1-mnist-worker-1"]


def test_all_pods_running_is_told_to_kueue_once():
    assert decide(QUEUED_PLAN, look(group(), workload=ADMITTED), trains()).queue_step.action == READY
    assert decide(QUEUED_PLAN, look(group(), workload=ADMITTED._replace(is_ready=True)), trains()).queue_step is None


def test_preempted_run_saves_first_and_then_gives_its_quota_back():
    decision = decide(QUEUED_PLAN, look(group(), workload=EVICTED, now=NOW + 5), trains())
    assert (decision.state.phase, decision.queue_step) == (RESTARTING, None)
    assert [(scale.set_name, scale.replicas) for scale in decision.scales] == [("exp1-mnist-chief", 0)]
    assert "Preempted to accommodate a workload" in decision.state.history[-1].message
    saving = decide(QUEUED_PLAN, look([pod("ps-0", gone_by=NOW + 30)], zero(), EVICTED, NOW + 8), decision.state)
    assert (saving.state.phase, saving.queue_step) == (RESTARTING, None)
    gone = decide(QUEUED_PLAN, look([], zero(), EVICTED, NOW + 9), saving.state)
    assert (gone.state.phase, gone.state.attempt, gone.queue_step.action) == (QUEUED, 2, REQUEUE)
    back = EVICTED._replace(is_admitted=False, holds_quota=False)
    waits = decide(QUEUED_PLAN, look([], zero(), back, NOW + 10), gone.state)
    assert (waits.state.phase, waits.queue_step) == (QUEUED, None)
    again = decide(QUEUED_PLAN, look([], zero(), ADMITTED, NOW + 99), waits.state)
    assert (again.state.phase, again.state.attempt) == (STARTING, 2)


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (None, "was deleted"),
        (ADMITTED._replace(is_deleting=True), "was deleted"),
        (ADMITTED._replace(is_finished=True), "marked as finished"),
        (PENDING, "has not admitted it"),
    ],
)
def test_run_without_quota_stops(workload, words):
    state = decide(QUEUED_PLAN, look(group(), workload=workload), trains()).state
    assert state.phase == RESTARTING and words in state.history[-1].message
    assert state.history[-1].message.endswith("; the pods get SIGTERM, to save and stop")


def test_run_goes_on_while_kueue_is_gone():
    decision = decide(QUEUED_PLAN, look(group(), problem=UNUSABLE), trains())
    assert (decision.state.phase, decision.queue_step) == (RUNNING, None)
    assert [each.cause for each in decision.state.problems] == ["queue-unusable"]
    assert decide(QUEUED_PLAN, look(sets=zero(), problem=UNUSABLE), queued()).queue_step is None


def test_preemption_after_the_success_ends_the_run():
    done = group(chief_0=pod("chief-0", end()), evaluator_0=None)
    plan = QUEUED_PLAN._replace(cluster=PLAN.cluster._replace(strategy="multi-worker-mirrored"))
    state = trains()._replace(phase=FINISHING, pending_verdict=decide(PLAN, see(done), None).state.verdict)
    ended = decide(plan, look(done, workload=EVICTED), state).state
    assert ended.verdict.result == SUCCEEDED


@pytest.mark.parametrize("wish", [DESIRED_SUSPENDED, DESIRED_STOPPED])
def test_suspended_and_stopped_runs_free_quota_after_their_pods(wish):
    plan = QUEUED_PLAN._replace(desired_state=wish)
    first = decide(plan, look(group(), workload=ADMITTED), trains())
    assert first.queue_step is None
    still = decide(plan, look([pod("ps-0", gone_by=NOW + 30)], zero(), ADMITTED), first.state)
    assert still.queue_step is None
    gone = decide(plan, look([], zero(), ADMITTED), still.state)
    assert gone.state.phase == (SUSPENDED if wish == DESIRED_SUSPENDED else STOPPED)
    assert gone.queue_step.action == (DELETE if wish == DESIRED_SUSPENDED else FINISH)


@pytest.mark.parametrize("wish", [DESIRED_SUSPENDED, DESIRED_STOPPED])
def test_waiting_run_can_be_suspended_and_stopped(wish):
    plan = QUEUED_PLAN._replace(desired_state=wish)
    state = decide(plan, look(sets=zero(), workload=PENDING), queued()).state
    assert state.phase == (SUSPENDED if wish == DESIRED_SUSPENDED else STOPPED)


def test_resumed_run_waits_in_the_queue_again():
    plan = QUEUED_PLAN._replace(desired_state=DESIRED_SUSPENDED)
    held = decide(plan, look(sets=zero(), workload=PENDING), queued()).state
    again = decide(QUEUED_PLAN, look(sets=zero()), held).state
    again = decide(QUEUED_PLAN, look(sets=zero()), again)
    assert (again.state.phase, again.state.attempt, again.queue_step.action) == (QUEUED, 2, CREATE)


def test_run_is_over_when_its_quota_is_free():
    stopping = decide(QUEUED_PLAN, look(group(chief_0=pod("chief-0", end())), workload=ADMITTED), trains()).state
    over = decide(QUEUED_PLAN, look([], zero(), ADMITTED, NOW + 2), stopping)
    step = over.queue_step
    assert (over.state.phase, over.exit_code, step.action, step.reason) == (SUCCEEDED, None, FINISH, "Succeeded")
    freed = decide(QUEUED_PLAN, look([], zero(), ADMITTED._replace(is_finished=True), NOW + 3), over.state)
    assert (freed.exit_code, freed.queue_step) == (0, None)
    assert decide(QUEUED_PLAN, look([], zero(), None, NOW + 3), over.state).exit_code == 0


def test_next_run_replaces_the_finished_workload():
    plan = QUEUED_PLAN._replace(run_id="run-2")
    finished = ADMITTED._replace(is_finished=True)
    decision = decide(plan, look(sets=zero(), workload=finished), trains())
    assert (decision.state.phase, decision.queue_step.action) == (QUEUED, DELETE)


def test_upgrade_that_asks_for_more_asks_the_queue_again():
    bigger = {"containers": [{"name": "training", "resources": {"requests": {"cpu": "2"}}}]}
    decision = decide(QUEUED_PLAN, look(sets=zero(), workload=ADMITTED, template=bigger), queued())
    assert (decision.state.phase, decision.queue_step.action) == (QUEUED, DELETE)
    other_queue = decide(QUEUED_PLAN._replace(queue="team-b"), look(sets=zero(), workload=PENDING), queued())
    assert other_queue.queue_step.action == DELETE


def test_upgrade_that_asks_for_the_same_keeps_the_quota():
    restarting = decide(QUEUED_PLAN, look(group(), workload=ADMITTED), trains())
    state = restarting.state._replace(phase=RESTARTING)
    decision = decide(QUEUED_PLAN, look([], zero(), ADMITTED), state)
    assert (decision.state.phase, decision.state.attempt, decision.queue_step) == (STARTING, 2, None)


def test_waiting_run_follows_another_number_of_pods():
    wider = PLAN.cluster._replace(
        roles={**PLAN.cluster.roles, "worker": PLAN.cluster.roles["worker"]._replace(replicas=5)}
    )
    decision = decide(QUEUED_PLAN._replace(cluster=wider), look(sets=zero()), queued())
    assert decision.state.roles["worker"].wanted == 5
    assert decision.queue_step.spec["podSets"][1]["count"] == 5


def test_run_whose_queue_was_removed_starts():
    decision = decide(PLAN, see(sets=zero()), queued())
    assert (decision.state.phase, decision.queue_step) == (STARTING, None)


def test_running_release_that_gets_a_queue_waits_in_it():
    plain = decide(PLAN, see(group()), None).state
    assert decide(QUEUED_PLAN, look(group()), plain).state.phase == RESTARTING


CONDITIONS = {
    "pending": [("QuotaReserved", "False", "Pending", "couldn't assign flavors")],
    "admitted": [("QuotaReserved", "True", "QuotaReserved", "reserved"), ("Admitted", "True", "Admitted", "")],
    "preempted": [
        ("QuotaReserved", "True", "QuotaReserved", "reserved"),
        ("Admitted", "True", "Admitted", ""),
        ("Evicted", "True", "Preempted", "made room"),
    ],
    "waits again": [("QuotaReserved", "False", "Pending", "no room"), ("Evicted", "True", "Preempted", "made room")],
    "no queue": [("QuotaReserved", "False", "Inadmissible", "LocalQueue team-a doesn't exist")],
}


def parse(name, **spec):
    keys = ("type", "status", "reason", "message")
    conditions = [dict(zip(keys, each, strict=True)) for each in CONDITIONS[name]]
    return parse_workload({"spec": spec, "status": {"conditions": conditions}})


def test_workload_is_read_as_kueue_writes_it():
    assert not parse_workload({"metadata": {"name": "x"}}).is_answered
    assert (parse("pending").message, parse("pending").is_refused) == ("couldn't assign flavors", False)
    assert (parse("admitted").is_admitted, parse("admitted").holds_quota) == (True, True)
    preempted, again = parse("preempted"), parse("waits again")
    assert (preempted.is_evicted, preempted.holds_quota, preempted.message) == (True, True, "made room")
    assert (again.is_evicted, again.holds_quota, again.message) == (True, False, "no room")
    assert parse("no queue").is_refused
    assert not parse("pending", active=False).is_active


@pytest.mark.parametrize(
    ("workload", "cause"),
    [
        (parse("no queue"), "queue-closed"),
        (parse("pending", active=False), "queue-closed"),
        (parse("pending"), "queued"),
        (WorkloadView(), "queued"),
    ],
)
def test_wait_is_explained(workload, cause):
    state = decide(QUEUED_PLAN, look(sets=zero(), workload=workload._replace(asks=ASKS)), queued()).state
    assert [each.cause for each in state.problems] == [cause] and state.problems[0].message


def test_template_keeps_what_quota_depends_on():
    container = {"name": "training", "image": "x:1", "resources": {"limits": {"cpu": "1"}}, "env": [{"name": "A"}]}
    sidecar = {"name": "side", "restartPolicy": "Always", "image": "y"}
    spec = {"containers": [container], "initContainers": [sidecar], "nodeSelector": {"a": "b"}, "volumes": [{}]}
    assert reduce_template(spec) == {
        "containers": [{"name": "training", "resources": {"limits": {"cpu": "1"}}}],
        "initContainers": [{"name": "side", "restartPolicy": "Always"}],
        "nodeSelector": {"a": "b"},
    }
    assert parse_set({"spec": {"template": {"spec": spec}}}).template == reduce_template(spec)


def test_gates_and_tolerations_of_a_pod_are_read():
    gates = [{"name": QUEUE_GATE}]
    item = {"metadata": {"name": "exp1-mnist-ps-0"}, "spec": {"schedulingGates": gates, "tolerations": [{"key": "a"}]}}
    found = parse_pod(PLAN.cluster, item)
    assert (found.gates, found.tolerations) == ((QUEUE_GATE,), ({"key": "a"},))
    item["spec"].pop("schedulingGates")
    assert parse_pod(PLAN.cluster, item).tolerations == ()
