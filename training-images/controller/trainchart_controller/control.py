"""The loop: look, decide, record, scale, tell, wait.

Whatever fails is tried again from the beginning, with what is there by then; what must follow is decided in
trainchart_runtime.run.rules.
"""

from __future__ import annotations

import contextlib
import queue
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from trainchart_controller.api import Api, ApiError, NotFound, Refused, Unauthorized
from trainchart_controller.backoff import Backoff
from trainchart_controller.console import TroubleLog, print_line
from trainchart_controller.launchers import LauncherAnswer, LauncherPoll, Target
from trainchart_controller.metrics import MetricsPage
from trainchart_controller.notify import NoticeOutcome, Notifier
from trainchart_controller.pod_logs import read_logs
from trainchart_controller.pod_watch import PodList, PodWatch, WatchItem, WatchTimes, WorkloadSeen
from trainchart_controller.release import JobGone, Release, Superseded
from trainchart_controller.rollback import await_rollback
from trainchart_controller.settings import Settings
from trainchart_controller.workload import RunQueue, WorkloadWatch
from trainchart_runtime.cluster import deciding_tasks
from trainchart_runtime.contract import EXIT_TOKEN_REFUSED
from trainchart_runtime.pod_problems import Event
from trainchart_runtime.run.observation import LauncherReport, Observation, PodView, SetView
from trainchart_runtime.run.plan import Decision, Notice
from trainchart_runtime.run.rules import decide
from trainchart_runtime.run.state import RunState, StateError

REREAD_SECONDS = 5.0
"""Others may change replicas, which shows in the pods: they are read again when pods change, at most so often."""
QUIET_REREAD_SECONDS = 120.0
"""By then, a set that was deleted without its pods is noticed; with them, the pods tell."""
_UNSETTLED_REREAD_SECONDS = 1.0
"""Kubernetes has not looked at a set's last change yet."""
_FIRST_EVENTS_SECONDS = 3.0
"""Pods need a moment to start; then what keeps them from it is asked for."""
_EVENTS_SECONDS = 20.0
_REFUSALS = (400, 403, 422)
"""Statuses of a change that will be refused again: by a right that is missing, an admission policy or a webhook."""
_GATHER_SECONDS = 0.05
"""Pods come and go in groups: what arrives so close together is decided at once."""
_GATHER_SECONDS_PER_POD = 0.0002
"""On top of that: a decision about a thousand pods takes milliseconds, and their start would make it a steady load."""


class Controller:
    """Controls one run from its start, or from wherever it is, to its end."""

    def __init__(self, settings: Settings, times: Optional[WatchTimes] = None) -> None:
        def connect() -> Api:
            return Api(settings.host, settings.port, settings.service_account_dir)

        self._settings = settings
        self._connect = connect
        self._release = Release(connect(), settings)
        plan = settings.plan
        self._watch = PodWatch(connect(), plan.cluster, settings.namespace, settings.selector, times)
        self._launchers = LauncherPoll(plan.cluster.status_port, self._watch.observations)
        self._queue = RunQueue(connect(), settings)
        self._metrics = MetricsPage(settings.release, settings.metrics_address)
        self._notifier = Notifier(settings.notify, settings.release, settings.namespace, self._watch.observations)
        self._times = times or WatchTimes()
        self._backoff = Backoff(self._times.first_retry)
        self._trouble = TroubleLog("controlling the run")
        self._event_trouble = TroubleLog("creating Events")
        self._reason_trouble = TroubleLog("reading Events")
        self._job_trouble = TroubleLog("changing the controller's Job")
        self._refused_since: Optional[float] = None
        """time.monotonic() of the first of those answers in a row that do not accept the token."""
        self._untold: List[Notice] = []
        self._pods: Optional[Dict[str, PodView]] = None
        """None until the first list has come."""
        self._departed: List[PodView] = []
        """Pods that have gone since the last decision."""
        self._state: Optional[RunState] = None
        self._is_state_read = False
        self._record_due = 0.0
        """time.monotonic() at which the record must be read again: it may have been deleted."""
        self._is_job_asked = False
        self._sets: Dict[str, SetView] = {}
        self._missing: Mapping[str, str] = {}
        """Other objects of the run that are gone or changed, each with how."""
        self._refused: Dict[str, str] = {}
        """What the API server refuses to change, each with its words."""
        self._owners: Set[Tuple[str, str]] = set()
        """Name and uid of the sets seen so far. What only looks like a pod of theirs says nothing about the run."""
        self._foreign: Set[str] = set()
        """Names of such pods, each of which the log names once."""
        self._compared: Set[str] = set()
        """UIDs of the pods of which the revision was compared with that of their set."""
        self._sets_due = 0.0
        """time.monotonic() at which the sets must be read again."""
        self._sets_read_at = -QUIET_REREAD_SECONDS
        self._objects_due = 0.0
        """time.monotonic() at which the other objects must be looked at again."""
        self._reports: Dict[str, LauncherReport] = {}
        """By uid of the pod."""
        self._events: Sequence[Event] = ()
        self._events_due: Optional[float] = None
        """time.monotonic() at which Events must be read; None while they are not needed."""

    def run(self) -> int:
        """Return the controller's exit code once the run is over."""
        self._watch.start()
        self._launchers.start()
        if self._settings.plan.queue:
            WorkloadWatch(self._connect(), self._settings, self._times, self._watch.observations).start()
        while True:
            try:
                decision = self._step()
                self._backoff.succeed()
                self._trouble.succeed()
                self._refused_since = None
            except Superseded as err:
                print_line(str(err))
                if not await_rollback(self._release, self._pause, self._times.rollback):
                    print_line("this controller has nothing left to do")
                    return 0
                self._is_state_read, self._sets_due = False, 0.0
                self._departed.clear()
                continue
            except JobGone as err:
                print_line(f"{err}, so the controller has nothing left to do")
                return 0
            except (ApiError, StateError) as err:
                if self._is_refused_for_good(err):
                    print_line("the token is no longer accepted: only a new pod gets a new one")
                    return EXIT_TOKEN_REFUSED
                is_new = self._trouble.fail(err)
                if is_new and isinstance(err, StateError):
                    self._tell(Notice("RunStateUnusable", str(err), is_warning=True))
                # After a conflict, or a user's repair, the record is another one, and so may the replicas be.
                self._is_state_read = False
                self._sets_due = 0.0
                self._pause(self._backoff.fail(err))
                continue
            if decision is not None and decision.exit_code is not None:
                if decision.exit_code:
                    self._change_job(self._release.fail_job)
                self._record_notice(decision.state)
                print_line(f"the run is over: {decision.state.phase}")
                return decision.exit_code
            self._look(self._resolve_wait(decision))

    def _is_refused_for_good(self, err: Exception) -> bool:
        """Say whether the token has been refused for so long that it will never be accepted again."""
        if not isinstance(err, Unauthorized):
            self._refused_since = None
            return False
        self._refused_since = self._refused_since or time.monotonic()
        return time.monotonic() - self._refused_since >= self._times.refusal

    def _step(self) -> Optional[Decision]:
        """Do what follows from what is known; None while too little is."""
        if not self._is_state_read or time.monotonic() >= self._record_due:
            self._state = self._read_record()
            self._is_state_read = True
            self._record_due = time.monotonic() + self._times.record
        if not self._is_job_asked:
            self._is_job_asked = True
            self._change_job(self._release.tolerate_crashes)
        if time.monotonic() >= self._sets_due:
            self._read_sets()
        if time.monotonic() >= self._objects_due:
            self._missing = self._release.find_missing()
            self._objects_due = time.monotonic() + self._times.objects
        if self._pods is None or not self._queue.is_seen:
            return None
        if self._events_due is not None and time.monotonic() >= self._events_due:
            self._read_events()
        pods = tuple(filter(self._is_own, self._pods.values()))
        if self._shows_change(pods):
            self._read_sets()
        departed = tuple(filter(self._is_own, self._departed))
        self._name_foreign(self._pods.values())
        seen = Observation(
            time.time(),
            pods,
            dict(self._sets),
            missing=self._missing,
            refused=self._refused,
            events=self._events,
            reports=self._reports,
            queue=self._queue.look(),
            departed=departed,
        )
        decision = decide(self._settings.plan, seen, self._state)
        state = self._notifier.mark(decision.state)
        if not decision.is_recorded or state is not decision.state:
            self._release.write_state(state, self._fetch_logs(decision))
            self._state = state
            decision = decision._replace(state=state)
            self._notifier.start()
        self._departed.clear()
        self._metrics.show(decision.state)
        self._act(decision)
        return decision

    def _read_record(self) -> Optional[RunState]:
        """Return the recorded state; what is deleted or damaged while this controller lives is written again."""
        try:
            found, trouble = self._release.read_state(), "is empty"
        except NotFound:
            found, trouble = None, "was deleted"
            if self._state is None:
                raise
        except StateError as err:
            found, trouble = None, "is damaged"
            if self._state is None:
                raise err
        if found is not None or self._state is None:
            return found
        self._release.restore_record(self._state)
        message = f"the record {trouble}: the run controller has restored it"
        print_line(f"RunRecordRestored: {message}")
        self._untold.append(Notice("RunRecordRestored", message, is_warning=True))
        return self._state

    def _act(self, decision: Decision) -> None:
        for notice in decision.notices:
            print_line(f"{notice.reason}: {notice.message}")
        # Events come last, and are not forgotten when a scale fails.
        self._untold += decision.notices
        self._refused = {}
        for change in decision.scales:
            with self._noting_refusal(f"StatefulSet {change.set_name}"):
                replicas = self._release.scale(change)
            self._sets[change.set_name] = self._sets[change.set_name]._replace(replicas=replicas)
            print_line(f"scaled {change.set_name} to {change.replicas}")
        for deletion in decision.deletions:
            with self._noting_refusal(deletion.pod_name):
                self._release.delete(deletion)
            print_line(f"{'force-deleted' if deletion.is_forced else 'deleted'} {deletion.pod_name}")
        for admission in decision.admissions:
            self._release.admit(admission)
            pods = self._pods or {}
            pods[admission.pod_name] = pods[admission.pod_name]._replace(gates=admission.gates)
            print_line(f"admitted {admission.pod_name}")
        if decision.queue_step is not None:
            with self._noting_refusal(f"Workload {self._settings.workload}"):
                self._queue.act(decision.queue_step, self._sets)
        while self._untold:
            self._tell(self._untold.pop(0))
        if not decision.wants_events:
            self._events, self._events_due = (), None
        elif self._events_due is None:
            self._events_due = time.monotonic() + _FIRST_EVENTS_SECONDS

    @contextlib.contextmanager
    def _noting_refusal(self, subject: str) -> Iterator[None]:
        """Keep what the API server says where it refuses a change of `subject`, as an admission policy does."""
        try:
            yield
        except Refused as err:
            if err.status in _REFUSALS:
                self._refused = {subject: str(err)}
            raise

    def _read_sets(self) -> None:
        self._sets = self._release.read_sets()
        self._owners.update((name, view.uid) for name, view in self._sets.items())
        self._look_at_launchers()
        self._sets_read_at = time.monotonic()
        is_settled = all(view.revision for view in self._sets.values())
        self._sets_due = self._sets_read_at + (QUIET_REREAD_SECONDS if is_settled else _UNSETTLED_REREAD_SECONDS)

    def _shows_change(self, pods: Sequence[PodView]) -> bool:
        """Say whether a pod that is new here has another revision than its set had when it was read.

        An attempt that remembered the revision of before would take all of its pods for those of an upgrade.
        """
        new = [pod for pod in pods if pod.uid not in self._compared]
        self._compared = {pod.uid for pod in pods}
        known = ((pod.revision, self._sets.get(pod.name.rpartition("-")[0])) for pod in new)
        return any(view is not None and revision and view.revision not in ("", revision) for revision, view in known)

    def _is_own(self, pod: PodView) -> bool:
        """Say whether a set of the run made the pod: any user may give a pod its name and labels."""
        set_name = pod.name.rpartition("-")[0]
        return (set_name, pod.owner_uid) in self._owners

    def _name_foreign(self, pods: Iterable[PodView]) -> None:
        for pod in pods:
            if pod.name not in self._foreign and not self._is_own(pod):
                self._foreign.add(pod.name)
                print_line(f"pod {pod.name} is ignored: no StatefulSet of this run created it")

    def _read_events(self) -> None:
        """Read Events if that is possible: they only say why a pod does not run, so nothing waits for them."""
        try:
            self._events = self._release.read_events()
            self._reason_trouble.succeed()
        except ApiError as err:
            self._reason_trouble.fail(err)
        self._events_due = time.monotonic() + _EVENTS_SECONDS

    def _record_notice(self, state: RunState) -> None:
        """Record what became of the last message; the run is over, so nothing else waits for it."""
        self._notifier.wait()
        marked = self._notifier.mark(state)
        if marked is not state:
            with contextlib.suppress(ApiError):
                self._release.write_state(marked, {})

    def _fetch_logs(self, decision: Decision) -> Mapping[str, Any]:
        if not decision.keeps_logs:
            return {}
        verdict = decision.state.verdict
        pods = filter(self._is_own, (self._pods or {}).values())
        own = [pod for pod in pods if pod.run_id in (None, decision.state.run_id)]
        # The one that decided, then the first of each role: where time is short, or room, the others come last.
        own.sort(key=lambda pod: (verdict is None or pod.name != verdict.pod, pod.task.task_index, pod.task))
        return read_logs(self._connect, self._settings.namespace, own)

    def _tell(self, notice: Notice) -> None:
        """Create an Event if that is possible: the record says the same, so nothing waits for it."""
        try:
            self._release.tell(notice)
            self._event_trouble.succeed()
        except ApiError as err:
            self._event_trouble.fail(err)

    def _change_job(self, change: Callable[[], object]) -> None:
        """Change the controller's Job if that is possible: else it fails later, after some more controllers."""
        if not self._settings.job_name:
            return
        try:
            change()
        except ApiError as err:
            self._job_trouble.fail(err)

    def _resolve_wait(self, decision: Optional[Decision]) -> float:
        if decision is not None and (decision.scales or decision.queue_step):
            # Where a set had no pod, no pod's end will say that the next thing is due.
            return 0.0
        due = [self._sets_due, self._objects_due, self._record_due, self._events_due or self._sets_due]
        due += [self._queue.wake_at] if self._queue.wake_at else []
        wait = min(due) - time.monotonic()
        if decision is not None and decision.wake_at is not None:
            wait = min(wait, decision.wake_at - time.time())
        return max(wait, 0.0)

    def _look(self, seconds: float, is_pause: bool = False) -> None:
        """Wait until pods change, `seconds` at most, and take in what has come; a pause is waited out."""
        until = time.monotonic() + seconds
        item = self._next(until)
        if not is_pause:
            until = time.monotonic() + _GATHER_SECONDS + _GATHER_SECONDS_PER_POD * len(self._pods or ())
        while item is not None:
            self._take_in(item)
            item = self._next(until)
        self._look_at_launchers()

    def _pause(self, seconds: float) -> None:
        self._look(seconds, is_pause=True)

    def _look_at_launchers(self) -> None:
        """Ask the launchers of the pods that there are now, and forget what those before have said."""
        pods = self._pods or {}
        leader = deciding_tasks(self._settings.plan.cluster)[0]
        own = filter(self._is_own, pods.values())
        targets = {pod.task: Target(pod.uid, pod.ip) for pod in own if pod.is_running and pod.ip}
        self._launchers.look_at(targets.pop(leader, None), tuple(targets.values()))
        present = {pod.uid for pod in pods.values()}
        self._reports = {uid: report for uid, report in self._reports.items() if uid in present}

    def _next(self, until: float) -> Optional[WatchItem]:
        try:
            return self._watch.observations.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None

    def _take_in(self, item: WatchItem) -> None:
        if isinstance(item, Exception):
            raise RuntimeError("the watch of the pods has failed") from item
        if isinstance(item, LauncherAnswer):
            self._reports[item.uid] = item.report
            return
        if isinstance(item, NoticeOutcome):
            self._notifier.take_in(item)
            return
        if isinstance(item, WorkloadSeen):
            self._queue.take_in(item)
            return
        if isinstance(item, PodList):
            self._pods = {pod.name: pod for pod in item.pods}
        elif self._pods is not None and not item.is_gone:
            self._pods[item.pod.name] = item.pod
        elif self._pods is not None:
            self._pods.pop(item.pod.name, None)
            self._departed.append(item.pod)
        self._sets_due = min(self._sets_due, self._sets_read_at + REREAD_SECONDS)
