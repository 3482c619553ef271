"""The recorded state of a run: what the run controller keeps in its ConfigMap, from the start to the day after.

Types, JSON and nothing else; rules.py decides what follows. The schema is for readers too (CLI, dashboards,
people with kubectl), so a field is never renamed: a change raises VERSION.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Iterator, Mapping, NamedTuple, Optional, Sequence

from trainchart_runtime.cluster import MAX_REPLICAS
from trainchart_runtime.log_text import shorten
from trainchart_runtime.progress import add_counts
from trainchart_runtime.records import RecordError, dump_record, parse_record

VERSION = 1

QUEUED = "Queued"
"""There are no pods until the run's queue has quota for all of them."""
STARTING = "Starting"
"""Every set has its replicas; not every pod has run yet."""
RUNNING = "Running"
FINISHING = "Finishing"
"""The leading task has succeeded; the evaluator, or the other workers, may finish their work."""
RESTARTING = "Restarting"
"""The pods are going, those that write checkpoints first; when all are gone, the next attempt starts."""
SUSPENDED = "Suspended"
"""Asked for in the values: there are no pods, or they are going, and the run can go on."""
STOPPING = "Stopping"
"""The verdict is recorded; the pods are going."""
SUCCEEDED = "Succeeded"
FAILED = "Failed"
STOPPED = "Stopped"
"""Ended on request, before it had succeeded or failed."""
STATE_LOST = "StateLost"
"""The sets say that a run was here, but its record is gone: nothing is started until a person decides."""

VERDICTS = (SUCCEEDED, FAILED, STOPPED)
PHASES = (QUEUED, STARTING, RUNNING, FINISHING, RESTARTING, SUSPENDED, STOPPING, *VERDICTS, STATE_LOST)
ENDED_PHASES = (*VERDICTS, STATE_LOST)

HISTORY_KEPT = 20
PROBLEMS_KEPT = 20
FINAL_LINES_KEPT = 20
SETBACKS_KEPT = 5
KILLED = "killed"
NOTICE_SENT = "sent"
INCIDENTS_KEPT = 20
"""The first of a run is kept as well: what came after it is often its consequence."""
RECORD_LIMIT = 700_000
"""Bytes of JSON. The API server refuses a ConfigMap of more than 1,048,576, and kept logs lie beside the record."""
MESSAGE_LIMIT = 1000
"""Characters kept of one message: a scheduler's message about a thousand nodes must not fill the ConfigMap."""


_SHORTER, _SHORTEST = 300, 100
_TASKS_KEPT = 1000
_FEWEST_KEPT = 10


class StateError(ValueError):
    """The recorded state is not one that this version can read."""


class Verdict(NamedTuple):
    """How the run ended, and for a failure the first one: where, why, and the program's own words."""

    result: str
    """One of VERDICTS."""
    at: float
    cause: str = ""
    sentence: str = ""
    hint: str = ""
    pod: str = ""
    node: str = ""
    exit_code: Optional[int] = None
    error: str = ""
    step: Optional[int] = None
    metrics: Mapping[str, float] = {}
    lines: Sequence[str] = ()
    changes: str = ""
    """How the pod differs from what its StatefulSet says: an admission policy, a webhook or a person changed it."""
    build: str = ""
    """Which build of its image the pod ran, where other pods ran others under the same tag."""
    spared: str = ""
    """Pods of its StatefulSet on other nodes that have not failed, where several failures were all on its node."""


class RoleState(NamedTuple):
    """The pods of one role in numbers."""

    wanted: int
    """In the present attempt, whatever an upgrade asks for since."""
    running: int = 0
    failures: int = 0
    """Deaths of the containers and of the programs in them, over all pods of the run."""
    finished: int = 0
    """Tasks that have ended well."""


class PodProblem(NamedTuple):
    """What keeps a pod from running, or a set from creating it."""

    subject: str
    """Name of the pod, or kind and name of an object that is gone."""
    node: str
    cause: str
    message: str
    since: float
    """Unix time at which it was first seen."""


class Incident(NamedTuple):
    """Something that a pod did not survive, and what was done about it."""

    at: float
    pod: str
    node: str
    cause: str
    action: str
    exit_code: Optional[int] = None
    error: str = ""
    uid: str = ""


class Deaths(NamedTuple):
    """How often the container of one task, or the program in it, has died."""

    uid: str
    """Of the pod that was seen last."""
    earlier: int
    """In the pods before it."""
    current: int
    """In this pod."""

    @property
    def total(self) -> int:
        return add_counts(self.earlier, self.current)


class ReportedFailures(NamedTuple):
    """How many failures that a launcher reported have become incidents: limited, since a pod can make them up."""

    since: float
    """Unix time when the count starts."""
    number: int


class Scaling(NamedTuple):
    """Another client than the run controller has told a StatefulSet to have fewer pods."""

    at: float
    by: str
    """As the API server calls that client."""
    replicas: int


class RunProgress(NamedTuple):
    """What the leading task's launcher reported last, and when its highest step was reached."""

    at: float
    attempt: int
    """Start of the program in the leader's pod, from 1."""
    step: Optional[int] = None
    examples_per_second: Optional[float] = None
    metrics: Mapping[str, float] = {}
    best_step: Optional[int] = None
    fruitless_restarts: int = 0
    """Starts of the program since `best_step` was reached, in whichever pod."""
    uid: str = ""
    """Of the leader's pod."""
    before: Optional[int] = None
    """Step of the start before this one, until this one has told a step of its own."""
    end: str = ""
    """KILLED where the pod of the start before was killed at the end of its grace period; kept as long as `before`."""


class Setback(NamedTuple):
    """Steps that were lost: a start of the leading task's program went on from an earlier step."""

    at: float
    attempt: int
    """Of the run."""
    pod: str
    reached: int
    resumed: int
    """The first step that the new start was seen at."""
    end: str = ""
    """KILLED where the pod before was killed at the end of its grace period: it may have been saving."""


class HistoryEntry(NamedTuple):
    """One change of phase."""

    at: float
    phase: str
    message: str


class StepMark(NamedTuple):
    """A step that the leading task had reached: two of the same program tell how fast it was between them."""

    at: float
    step: int
    program: str
    """Another one after every start."""


class PhaseNotice(NamedTuple):
    """The message of run.notify about one phase, recorded before it is sent: it is never sent twice."""

    phase: str
    since: float
    """Unix time of the entry into that phase."""
    outcome: str = ""
    """Empty while it is on its way, NOTICE_SENT, or why it could not be sent."""


class RunState(NamedTuple):
    """Everything that outlives a controller."""

    run_id: str
    phase: str
    since: float
    """Unix time of the entry into `phase`: deadlines count from here, whichever controller watches."""
    updated: float
    """Unix time of the last recording."""
    attempt: int = 1
    succeeded: Mapping[str, float] = {}
    """Task, such as "chief-0" → Unix time at which it ended well: its pod may be gone before the run is over."""
    pending_verdict: Optional[Verdict] = None
    """While FINISHING: the leading task's success, which becomes the verdict."""
    verdict: Optional[Verdict] = None
    roles: Mapping[str, RoleState] = {}
    history: Sequence[HistoryEntry] = ()
    active_since: float = 0.0
    """Unix time from which the active deadline counts: the begin of the run, or when it was resumed last."""
    revisions: Mapping[str, str] = {}
    """StatefulSet → revision of its pods in the present attempt."""
    failure_seen_at: Optional[float] = None
    """A failure is to be judged, once those of the same moment have been reported too."""
    missing_since: Optional[float] = None
    """Since when a running training lacks a pod that it cannot do without."""
    deaths: Mapping[str, Deaths] = {}
    """By task, such as "ps-0": of its container, without its launcher's last words; only of tasks that have died."""
    restarts: Mapping[str, Deaths] = {}
    """By task: of the program, as its launcher tells; only of tasks whose program has died."""
    reported_failures: Mapping[str, ReportedFailures] = {}
    """By task, in the current hour."""
    builds: Mapping[str, Mapping[str, str]] = {}
    """Image that names no digest → its builds that pods of the present attempt ran, the first few → a node of each."""
    pods: Mapping[str, str] = {}
    """Task → begin of the uid of its pod, by which one is known that came while no controller looked."""
    problems: Sequence[PodProblem] = ()
    incidents: Sequence[Incident] = ()
    scalings: Mapping[str, Scaling] = {}
    """StatefulSet → how it was scaled down last by another client."""
    taken_away: Sequence[str] = ()
    """Uids of the pods that are known to be taken away: of so many, incidents are not kept."""
    progress: Optional[RunProgress] = None
    first_step: Optional[int] = None
    """The first step that the leading task reported: a program that had nothing left to do makes none after it."""
    first_step_at: float = 0.0
    """When it was seen; 0 before that."""
    marks: Sequence[StepMark] = ()
    """The last ones, a minute or more apart, and some of those before."""
    setbacks: Sequence[Setback] = ()
    """The last of them."""
    final_lines: Mapping[str, str] = {}
    """Task → last line of its program, of the first tasks that ended well: the others may have needed them."""
    notice: Optional[PhaseNotice] = None
    """The last one."""


def enter_phase(state: RunState, phase: str, now: float, message: str) -> RunState:
    """Return `state` in `phase` from `now` on, with an entry in its history."""
    entry = HistoryEntry(now, phase, shorten(message, MESSAGE_LIMIT))
    return state._replace(phase=phase, since=now, history=(*state.history, entry)[-HISTORY_KEPT:])


def dump_state(state: RunState) -> str:
    """Return the state as JSON; people read it with kubectl, so it is indented.

    What a run went through is kept as far as RECORD_LIMIT allows: a record that is refused would end no run.
    """
    text = ""
    for candidate in _ever_shorter(state):
        # Text from a program may hold lone surrogates, which UTF-8 cannot carry: escaped, they come back as they were.
        text = json.dumps({"version": VERSION, **dump_record(candidate)}, indent=1)
        if len(text) <= RECORD_LIMIT:
            break
    return text


def _ever_shorter(state: RunState) -> Iterator[RunState]:
    """Yield the state, then with shorter texts, then without what no decision needs."""
    yield state
    for limit in (_SHORTER, _SHORTEST):
        yield _cut(state, limit)
    bare = _cut(state, _SHORTEST)._replace(history=(), problems=(), incidents=(), final_lines={}, marks=())
    yield bare
    bare = bare._replace(reported_failures={}, pods={})
    yield bare
    yield _cut(bare, _SHORTEST, _TASKS_KEPT)
    # This always fits. No run needs so much room, but anyone who may write the ConfigMap can add to its record.
    yield _cut(bare, _SHORTEST, _FEWEST_KEPT)


def _cut(value: Any, limit: int, entries: int = sys.maxsize) -> Any:
    """Return a record with texts of at most `limit` characters, without longer keys, and with the last `entries`."""
    if isinstance(value, str):
        return shorten(value, limit)
    if hasattr(value, "_asdict"):
        return value._replace(**{field: _cut(each, limit, entries) for field, each in value._asdict().items()})
    if isinstance(value, Mapping):
        kept = [(key, each) for key, each in value.items() if len(key) <= limit][-entries:]
        return {key: _cut(each, limit, entries) for key, each in kept}
    if isinstance(value, (list, tuple)):
        return tuple(_cut(each, limit, entries) for each in value[-entries:])
    return value


def parse_state(text: str) -> RunState:
    """Parse a recorded state; raises StateError naming the first thing that is wrong."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as err:
        raise StateError(f"it is not JSON: {err}") from err
    version = document.get("version") if isinstance(document, dict) else None
    if version != VERSION:
        raise StateError(f"its version is {version!r:.80}, but this program reads {VERSION}")
    try:
        state = parse_record(RunState, document, "the record")
    except RecordError as err:
        raise StateError(str(err)) from err
    if state.phase not in PHASES:
        raise StateError(f"its phase is {state.phase!r:.80}, expected one of: {', '.join(PHASES)}")
    for verdict in (state.verdict, state.pending_verdict):
        if verdict is not None and verdict.result not in VERDICTS:
            raise StateError(f"the result in its verdict is {verdict.result!r:.80}")
    if (state.verdict is None) == (state.phase in (STOPPING, *VERDICTS)):
        raise StateError(f"its phase {state.phase!r} and its verdict do not fit together")
    if state.phase == FINISHING and state.pending_verdict is None:
        raise StateError(f"its phase is {state.phase!r}, but it has no pendingVerdict")
    negative = [task_type for task_type, role in state.roles.items() if role.wanted < 0]
    if negative:
        raise StateError(f"it wants a negative number of pods of role {negative[0]!r:.80}")
    large = [task_type for task_type, role in state.roles.items() if role.wanted > MAX_REPLICAS]
    if large:
        raise StateError(f"it wants more than {MAX_REPLICAS} pods of role {large[0]!r:.80}")
    return state
