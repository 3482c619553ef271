"""Scenes of a release for the tests of the run controller's rules: plans, pods and looks, with short names."""

from __future__ import annotations

from trainchart_runtime import causes
from trainchart_runtime.cluster import PARAMETER_SERVER, Cluster, Role, Task
from trainchart_runtime.run.judge import SETTLE_SECONDS
from trainchart_runtime.run.observation import ContainerEnd, Observation, PodView, SetView
from trainchart_runtime.run.plan import RunPlan
from trainchart_runtime.run.rules import decide
from trainchart_runtime.termination import Termination

NOW = 1_790_000_000.0
PSS = {"chief": 1, "worker": 2, "ps": 1}


def make_plan(strategy=PARAMETER_SERVER, run_id="run-1", **replicas):
    roles = {role: Role(f"exp1-mnist-{role}", number) for role, number in (replicas or PSS).items()}
    return RunPlan(run_id, Cluster(strategy, "exp1-mnist", 2222, 2223, roles), 3, 1800.0, 600.0)


PLAN = make_plan()


def words(cause=causes.SUCCEEDED, task="chief-0", code=0, run_id="run-1", **more):
    task_type, _, index = task.partition("-")
    return Termination(cause.name, code, task_type, int(index), run_id, finished_at=NOW, **more)


def end(cause=causes.SUCCEEDED, code=0, run_id="run-1", **more):
    return ContainerEnd(code, termination=words(cause, code=code, run_id=run_id, **more))


def pod(task, *ends, run_id="run-1", **more):
    task_type, _, index = task.partition("-")
    more = {"is_running": True, "node": "node-1", "uid": f"uid-{task}", **more}
    return PodView(f"exp1-mnist-{task}", Task(task_type, int(index)), run_id=run_id, ends=ends, **more)


def group(plan=PLAN, **changed):
    """Every pod of the plan running, but for those given (by task, underscores for hyphens; None: no pod)."""
    tasks = [str(task) for role in plan.cluster.roles for task in plan.cluster.tasks(role)]
    pods = [changed.get(task.replace("-", "_"), pod(task)) for task in tasks]
    return [each for each in pods if each]


def see(pods=(), sets=None, now=NOW, plan=PLAN):
    numbers = {role.name: role.replicas for role in plan.cluster.roles.values()} if sets is None else sets
    return Observation(now, tuple(pods), {name: SetView(number, f"{name}-1") for name, number in numbers.items()})


def zero(plan=PLAN):
    return {role.name: 0 for role in plan.cluster.roles.values()}


def wanted(plan=PLAN, **changes):
    numbers = {role.name: role.replicas for role in plan.cluster.roles.values()}
    return {**numbers, **{f"exp1-mnist-{role}": number for role, number in changes.items()}}


def settle(plan, pods, state, now=NOW):
    """Look until a failure is judged: once when it is seen, once when those of the same moment have come."""
    first = decide(plan, see(pods, now=now, plan=plan), state)
    assert first.wake_at == now + SETTLE_SECONDS
    return decide(plan, see(pods, now=first.wake_at, plan=plan), first.state)


def running(plan=PLAN):
    return decide(plan, see(group(plan), plan=plan), None).state
