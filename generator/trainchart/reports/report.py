"""What is known about one training, here or on a cluster, as `list`, `status`, `why` and `wait` say it.

Types only, those of the run's record where it has them. local/io/run_report.py and cluster/diagnosis.py fill
them, text.py and why.py put them into words, report_json.py into JSON.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainchart.reports.log_line import LogLine
from trainchart.reports.run_settings import UNKNOWN_SETTINGS, RunSettings
from trainchart.reports.runs_option import runs_option
from trainchart.reports.upgrade import Upgrade
from trainchart_runtime.causes import (
    ACCESS_REFUSED,
    CAUSES,
    PEER_LOST,
    PEER_MISSING,
    PEER_UNRESOLVABLE,
    PROGRAM_ERROR,
    PROGRAM_EXIT,
    TERMINATED,
)
from trainchart_runtime.classify import Diagnosis, identify_failure
from trainchart_runtime.data_causes import DATA_MISMATCH, EXAMPLES_DIFFER, FILE_MISSING
from trainchart_runtime.run.state import (
    ENDED_PHASES,
    FAILED,
    FINISHING,
    RUNNING,
    HistoryEntry,
    Incident,
    Setback,
    Verdict,
)
from trainchart_runtime.start_words import name_sentence

NOT_RUNNING = "NotRunning"
"""No pod is there or asked for, and no record says why."""
NO_CONTROLLER = "none"
"""The release has no run controller."""
STATEFUL_SET = "StatefulSet"
UNKNOWN = "Unknown"
"""What would tell could not be read."""
TERMINATING = "Terminating"
"""State of a pod that was deleted and is still there."""
BACKING_OFF = "CrashLoopBackOff"
"""State of a pod whose program has ended and is started again, after a pause that grows."""
PENDING = "Pending"
_NOT_STARTED = (PENDING, "Starting")
"""States of a pod whose training container was not started; the second has a node."""

LOCAL = "local"
CLUSTER = "cluster"

SILENT_SECONDS = 180.0
"""Without a step for so long, a run may hang: steps are recorded every 30 seconds."""
_PAUSE_SECONDS = 90.0
_PAUSE_STEPS = 20
"""A pause is longer than this, and than so many steps: steps are recorded every 30 seconds."""
_FIRST_STEP_SECONDS = 60.0
"""What has trained for so long may have made its first step, though many load and compile for longer."""
_START_SECONDS = 300.0
"""What reports no step may have made some by then."""
_SAME_MOMENT_SECONDS = 60.0
"""A step is recorded up to half a minute late."""
_PEER_CAUSES = (PEER_LOST.name, PEER_MISSING.name, PEER_UNRESOLVABLE.name)
_OF_PROGRAMS = tuple(
    cause.name for cause in (PROGRAM_ERROR, PROGRAM_EXIT, FILE_MISSING, DATA_MISMATCH, EXAMPLES_DIFFER)
)
"""Causes that lie in the program, or in what it is given."""
_IDLE_CONTROLLERS = ("starting", "held", "failed", "missing", "finished")

FROM_RECORD = "record"
FROM_PODS = "pods"


class TrainingKey(NamedTuple):
    """One training: a release holds one for every trainchart chart in it."""

    namespace: str
    release: str
    chart: str

    def __str__(self) -> str:
        return f"{self.release}/{self.chart}"


@dataclass(frozen=True)
class ReportedProblem:
    """Something that keeps a pod from running, or its being made."""

    subject: str
    """The pod's or the StatefulSet's name."""
    cause: str
    message: str
    node: str = ""
    since: float = 0.0

    @property
    def sentence(self) -> str:
        return name_sentence(self.cause, self.message)

    @property
    def hint(self) -> str:
        return CAUSES[self.cause].hint if self.cause in CAUSES else ""


@dataclass(frozen=True)
class Progress:
    """How far the training is, as its leading task reported it last."""

    step: int | None = None
    examples_per_second: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Those of the evaluators as evaluator/NAME."""
    at: float = 0.0
    fruitless_restarts: int = 0
    """Starts of its program since the highest step was reached."""
    before: int | None = None
    """Step of the start before the present one, which has told none of its own yet."""
    first_at: float = 0.0
    """When its first step was seen; 0 where it is not known."""
    nan_metrics: tuple[str, ...] = ()
    """Names of those that are not a number, as of a training that has diverged."""


NOT_REPORTED = Progress()


@dataclass(frozen=True)
class QueueStanding:
    """Where a run that waits stands in its queue."""

    name: str
    position: int | None = None
    """From 1; None where it is not known."""
    length: int | None = None
    """How many wait there."""
    needs: Mapping[str, float] = field(default_factory=dict)
    """Resource → amount for all pods: GPUs, or CPUs where it needs none."""
    free: Mapping[str, float] | None = None
    """What is left of the quota for these; None where it is not known."""


@dataclass(frozen=True)
class RoleReport:
    """The pods of one role in numbers."""

    role: str
    wanted: int
    running: int | None
    """None where it is not known."""
    failures: int = 0
    set_name: str = ""
    """Of its StatefulSet, which starts the names of its pods; empty where it is not known."""
    finished: int = 0
    """Tasks that have ended well."""


@dataclass(frozen=True)
class PodReport:
    """One pod as it is now."""

    name: str
    label: str
    """Short name, such as worker-1."""
    role: str
    state: str
    node: str
    restarts: int
    created: float
    gpus: Mapping[str, int]
    holds_gpus: bool
    placed: float = 0.0
    started: float = 0.0
    last_end: str = ""
    program_restarts: int = 0
    """Starts of the program by its launcher after the first, without a restart of the container."""


@dataclass(frozen=True)
class OutsideChange:
    """A change of the pods that a StatefulSet makes, or of a ConfigMap, by another than what applies the release."""

    kind: str
    name: str
    by: str
    """Name of the program as the API server knows it, such as kubectl-set."""
    at: float
    fields: tuple[str, ...]
    """Such as training.resources.limits.memory=176Mi."""
    outlives_rollback: bool = False
    """Whether the chart sets none of these fields, so that helm rollback leaves them."""
    is_of_release: bool = True
    """Whether Helm made the object for this release, so that helm rollback knows what it was."""

    @property
    def subject(self) -> str:
        """The object, for people: pods are known by the name of their StatefulSet."""
        return self.name if self.kind == STATEFUL_SET else f"{self.kind} {self.name}"


class Slowdown(NamedTuple):
    """Since when steps take far longer, and how many seconds one took before."""

    since: float
    usual: float


@dataclass(frozen=True)
class Report:
    """Everything that is known about one training."""

    key: TrainingKey
    now: float
    phase: str
    source: str
    """Who says the phase: the record of the run, or what the pods show."""
    origin: str = CLUSTER
    """Where it runs: LOCAL, on a machine as processes, or CLUSTER."""
    folder: str = ""
    """Of a local run, as the user named it."""
    resume_command: str = ""
    """What goes on with a local run that is over."""
    record: Mapping[str, Any] = field(default_factory=dict)
    """What a local run was asked for and made of; see local/run_record.py."""
    settings: RunSettings = UNKNOWN_SETTINGS
    chart: str = ""
    since: float = 0.0
    """When the phase was entered; 0 where it is not known."""
    gives_up_at: float = 0.0
    """Unix time at which the run fails unless all of its pods run; 0 for never, or not known."""
    run_id: str = ""
    attempt: int | None = None
    progress: Progress = NOT_REPORTED
    outcome: Verdict | None = None
    """How the run ended, or for a run without a controller: how it will not go on."""
    roles: tuple[RoleReport, ...] = ()
    pods: tuple[PodReport, ...] | None = None
    """None where they could not be read."""
    problems: tuple[ReportedProblem, ...] = ()
    incidents: tuple[Incident, ...] = ()
    setbacks: tuple[Setback, ...] = ()
    history: tuple[HistoryEntry, ...] = ()
    finished: Mapping[str, float] = field(default_factory=dict)
    """Task → Unix time at which it ended well, as far as the record says."""
    final_lines: Mapping[str, str] = field(default_factory=dict)
    """Task → last line of its program, of the first that ended well."""
    controller: str = ""
    """running, starting, held, finished, failed, missing; none: the release has no controller; empty: not known."""
    outside_changes: tuple[OutsideChange, ...] = ()
    upgrades: tuple[Upgrade, ...] = ()
    """Since the run began or soon before, oldest first; only of a run in trouble."""
    queue: QueueStanding | None = None
    """Only while it waits there."""
    last_lines: tuple[LogLine, ...] = ()
    """The last line of each pod, of a run that seems to hang or has reported no step so far."""
    waits: tuple[LogLine, ...] = ()
    """Where each program waits that has done nothing for minutes, where its launcher can see that."""
    busy: tuple[LogLine, ...] = ()
    """Where each program computes that has made no step and printed nothing for minutes, known in the same way."""
    warnings: tuple[LogLine, ...] = ()
    """Of a run that failed: those in the kept lines of other pods; of one that seems to hang: exceptions in logs."""
    log_gaps: tuple[str, ...] = ()
    """Of a run that failed: of which pods no lines were kept, or not all; of one that seems to hang: whose are gone."""
    remarks: tuple[str, ...] = ()
    """What does not fit together, and what that means."""
    leads: tuple[str, ...] = ()
    """What its pods are given that the trouble may come from, and what to do about it; in sentences."""
    blockade: str = ""
    """Which NetworkPolicies of others keep its pods or run controller from what they need, and the cure; sentences."""
    seconds_per_step: float = 0.0
    """As it is now, as far as is known, else on average in this run; 0 where neither is."""
    slowdown: Slowdown | None = None
    unknown: tuple[str, ...] = ()
    """What could not be found out, and why."""

    @property
    def seems_to_hang(self) -> bool:
        """Whether it should make steps, and has not for long. Slow steps look the same."""
        return self._is_watched and 0 < self.progress.at <= self.now - SILENT_SECONDS

    @property
    def step_pause(self) -> float:
        """Seconds since the last step, where steps took far less before; 0 where not, or where it is not known."""
        silence = self.now - self.progress.at
        is_long = silence >= max(_PAUSE_SECONDS, _PAUSE_STEPS * self.seconds_per_step)
        return silence if self._is_watched and self.seconds_per_step and self.progress.step and is_long else 0.0

    @property
    def awaits_first_step(self) -> bool:
        """Whether it runs, has reported no step so far, and could have."""
        is_new = self.progress.step is None and self.progress.before is None
        return self._is_watched and is_new and self.now - self.since >= _FIRST_STEP_SECONDS

    @property
    def _is_watched(self) -> bool:
        """Whether it runs, and its record would have newer steps if it made any."""
        # An end that is not recorded, and a run controller that does not act: then the record knows too little.
        is_known = all(pod.last_end != "succeeded" or pod.label in self.finished for pod in self.pods or ())
        is_acting = self.controller not in _IDLE_CONTROLLERS
        is_loaded = not any(0 <= self.now - pod.started < _FIRST_STEP_SECONDS for pod in self.pods or ())
        is_running = self.phase == RUNNING and self.outcome is None and not self.waits_for_pods
        return is_running and is_known and is_acting and is_loaded

    @property
    def waits_for_pods(self) -> bool:
        """Whether its record says that it runs, but its leading pod is missing or was not started."""
        if self.origin == LOCAL or self.phase != RUNNING or self.outcome is not None or self.pods is None:
            return False
        states = {pod.label: pod.state for pod in self.pods}
        is_missing = states.get(self.leading_task, PENDING) in _NOT_STARTED
        return bool(self.roles) and is_missing and self.leading_task not in self.finished

    @property
    def leading_task(self) -> str:
        """The task whose success decides the run, such as chief-0; roles are in this order."""
        return f"{self.roles[0].role}-0" if self.roles else ""

    @property
    def fails_at_start(self) -> bool:
        """Whether its program has failed before it reported a step, each time in the same way that does not pass."""
        outcome = self.outcome
        began = [each.at for each in self.history if each.phase == RUNNING][-1:]
        if outcome is None or outcome.result != FAILED or outcome.step is not None or self.progress.step is not None:
            return False
        diagnosis = Diagnosis(CAUSES.get(outcome.cause, TERMINATED), outcome.error)
        is_program = outcome.cause in _OF_PROGRAMS and identify_failure(diagnosis, None, 0.0)
        is_alike = all(each.cause == outcome.cause for each in self.incidents if each.pod == outcome.pod)
        # The fastest failures end a run before every pod was seen running.
        is_soon = not began or outcome.at - began[0] <= _START_SECONDS
        return bool(is_program and is_alike and is_soon)

    @property
    def waits_long(self) -> bool:
        """Whether its end is waited for since long, though its leading task has succeeded."""
        return self.phase == FINISHING and self.now - self.since >= SILENT_SECONDS

    @property
    def lacks_peers(self) -> bool:
        """Whether tasks that run do not find or reach each other, or lose each other again and again."""
        return any(each.cause in _PEER_CAUSES for each in self.problems)

    @property
    def lacks_names(self) -> bool:
        """Whether names of tasks do not resolve: a problem says so, or a death since the last step."""
        deaths = (each.cause for each in self.incidents if each.at > self.progress.at)
        return PEER_UNRESOLVABLE.name in (*(each.cause for each in self.problems), *deaths)

    @property
    def is_refused_access(self) -> bool:
        """Whether a server has refused a task: what it signs in with may have been changed."""
        told = (self.outcome.cause if self.outcome else "", *(each.cause for each in self.incidents))
        return ACCESS_REFUSED.name in told

    @property
    def early_finishers(self) -> tuple[str, ...]:
        """Tasks that ended well about when the last step was made, of a run that has made none since."""
        if not self.seems_to_hang or self.progress.step is None:
            return ()
        return tuple(task for task, at in self.finished.items() if abs(at - self.progress.at) <= _SAME_MOMENT_SECONDS)

    @property
    def place(self) -> str:
        """Where it runs, for people."""
        return "this machine" if self.origin == LOCAL else self.key.namespace

    @property
    def address(self) -> str:
        """Arguments by which every command finds it again."""
        if self.origin == CLUSTER:
            return f"{self.key.release} -n {self.key.namespace}"
        return shlex.quote(self.key.release) + runs_option(self.folder)

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more: it has ended, or nothing runs and nothing would start it."""
        return self.phase in ENDED_PHASES or (self.phase == NOT_RUNNING and self.controller == NO_CONTROLLER)

    @property
    def gpus(self) -> dict[str, int] | None:
        """Accelerators that the training's pods hold now; None where the pods could not be read."""
        if self.pods is None:
            return None
        total: Counter[str] = Counter()
        for pod in self.pods:
            total.update(pod.gpus if pod.holds_gpus else {})
        return dict(sorted(total.items()))

    @property
    def gpus_since(self) -> float:
        """When the first of them was taken; 0 for none."""
        times = [pod.placed or pod.created for pod in self.pods or () if pod.holds_gpus and pod.gpus]
        return min(times, default=0.0)
