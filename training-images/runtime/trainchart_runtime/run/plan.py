"""What the rules of a run are asked with and answer with: the chart's plan, and the controller's next steps."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence

from trainchart_runtime.cluster import (
    BETWEEN_GRAPH_ASYNC,
    CHIEF,
    EVALUATOR,
    PARAMETER_SERVER,
    WORKER,
    Cluster,
    Role,
    Task,
    deciding_tasks,
)
from trainchart_runtime.run.queueing import Placement, QueueStep
from trainchart_runtime.run.state import QUEUED, RoleState, RunState, StateError

DESIRED_RUNNING = "running"
DESIRED_SUSPENDED = "suspended"
DESIRED_STOPPED = "stopped"
DESIRED_STATES = (DESIRED_RUNNING, DESIRED_SUSPENDED, DESIRED_STOPPED)

RESTART_GROUP = "restart-group"
"""After an upgrade that changes pods, all of them start again from the last checkpoint."""
FINISH_FIRST = "finish-first"
"""After such an upgrade the attempt goes on, until a pod has to be recreated."""
CHANGE_POLICIES = (RESTART_GROUP, FINISH_FIRST)


class RunPlan(NamedTuple):
    """What the chart asks of the controller; fixed for a controller's life."""

    run_id: str
    cluster: Cluster
    max_restarts: int
    start_deadline_seconds: float
    """0: the run may wait for its pods without end."""
    evaluator_grace_seconds: float
    active_deadline_seconds: float = 0.0
    """0: the run may take as long as it wants."""
    desired_state: str = DESIRED_RUNNING
    on_change: str = RESTART_GROUP
    force_delete_lost: bool = False
    """Replace pods of nodes that do not answer, though their programs may still run there."""
    queue: str = ""
    """The LocalQueue whose quota all pods wait for; empty: they wait for none."""
    queue_priority_class: str = ""
    """Of the Workload; empty: priority 0."""


class Notice(NamedTuple):
    """Something to tell: one log line and one Event."""

    reason: str
    message: str
    is_warning: bool = False


class Scale(NamedTuple):
    """One StatefulSet that must get another number of replicas."""

    set_name: str
    replicas: int


class Deletion(NamedTuple):
    """One pod that must be recreated."""

    pod_name: str
    uid: str
    is_forced: bool = False
    """Without waiting for its node's word."""


class Admission(NamedTuple):
    """One pod that need not wait any more."""

    pod_name: str
    uid: str
    gates: Sequence[str]
    """Those that stay, because others have set them."""
    placement: Placement
    tolerations: Sequence[Mapping[str, Any]]
    """All that it has then."""


class Decision(NamedTuple):
    """What to do now, in this order: record the state, scale, delete, admit, change the Workload, tell, leave."""

    state: RunState
    is_recorded: bool
    """False: `state` must be recorded first. Nothing is scaled or deleted without a record, whose precondition
    keeps a controller that was replaced from acting."""
    scales: Sequence[Scale] = ()
    deletions: Sequence[Deletion] = ()
    admissions: Sequence[Admission] = ()
    queue_step: Optional[QueueStep] = None
    notices: Sequence[Notice] = ()
    wants_events: bool = False
    """A pod does not run, and only Events can tell why."""
    keeps_logs: bool = False
    """The pods are about to go: their last lines must be fetched before."""
    wake_at: Optional[float] = None
    """Unix time at which to ask again, even if nothing changes."""
    exit_code: Optional[int] = None


def resolve_group(cluster: Cluster, known: Mapping[str, RoleState]) -> Cluster:
    """Return the cluster with the pods of the present attempt, where it is `known`: an upgrade may ask for others.

    A role that an upgrade has brought belongs to the next attempt: it has no pods while others go on in this one.
    Raises StateError where no task is left whose success could end the run.
    """
    goes_on = any(known[role].wanted for role in (CHIEF, WORKER) if role in known and role in cluster.roles)
    roles: Dict[str, Role] = {}
    for task_type, role in cluster.roles.items():
        newly_wanted = 0 if goes_on else role.replicas
        roles[task_type] = role._replace(replicas=known[task_type].wanted if task_type in known else newly_wanted)
    group = cluster._replace(roles=roles)
    if not deciding_tasks(group):
        raise StateError("by the record, there is neither a chief nor a worker")
    return group


def require_group(plan: RunPlan, state: RunState) -> None:
    """Raise StateError for a record of this run by which no task is left whose success could end it."""
    if state.run_id == plan.run_id and state.phase != QUEUED:
        resolve_group(plan.cluster, state.roles)


def saving_roles(cluster: Cluster) -> Sequence[str]:
    """Return the roles that write the checkpoint when they are told to stop: they must be told first.

    Told to stop together with ps and workers, a chief hangs in its last save.
    """
    return (CHIEF,) if cluster.tasks(CHIEF) else (WORKER,)


def is_dispensable(cluster: Cluster, task: Task) -> bool:
    """Say whether the training goes on while `task` is away."""
    if task in deciding_tasks(cluster):
        return False
    loses_workers = cluster.strategy in (PARAMETER_SERVER, BETWEEN_GRAPH_ASYNC)
    return task.task_type == EVALUATOR or (task.task_type == WORKER and loses_workers)
