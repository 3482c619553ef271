"""The loop: look, decide, record, scale, tell, wait.

Whatever fails is tried again from the beginning, with what is there by then; what must follow is decided in
trainchart_runtime.run_rules.
"""

from __future__ import annotations

import queue
import time
from typing import Dict, List, Optional

from trainchart_controller.api import Api, ApiError
from trainchart_controller.backoff import Backoff
from trainchart_controller.console import TroubleLog, print_line
from trainchart_controller.pod_watch import PodList, PodWatch, Sighting, WatchTimes
from trainchart_controller.release import Release
from trainchart_controller.settings import Settings
from trainchart_runtime.run_observation import Observation, PodView
from trainchart_runtime.run_rules import Decision, Notice, decide
from trainchart_runtime.run_state import RunState, StateError

REREAD_SECONDS = 5.0
"""Others may change replicas, which shows in the pods: they are read again when pods change, at most so often."""
QUIET_REREAD_SECONDS = 300.0
_GATHER_SECONDS = 0.05
"""Pods come and go in groups: what arrives so close together is decided at once."""


class Superseded(Exception):
    """The record belongs to a run that began after this controller."""


class Controller:
    """Controls one run from its start, or from wherever it is, to its end."""

    def __init__(self, settings: Settings, times: Optional[WatchTimes] = None) -> None:
        def connect() -> Api:
            return Api(settings.host, settings.port, settings.service_account_dir)

        self._settings = settings
        self._release = Release(connect(), settings)
        plan = settings.plan
        self._watch = PodWatch(connect(), plan.cluster, settings.namespace, settings.selector, times)
        self._backoff = Backoff((times or WatchTimes()).first_retry)
        self._trouble = TroubleLog("controlling the run")
        self._event_trouble = TroubleLog("creating Events")
        self._untold: List[Notice] = []
        self._pods: Optional[Dict[str, PodView]] = None
        """None until the first list has come."""
        self._state: Optional[RunState] = None
        self._is_state_read = False
        self._is_ours = False
        """This process has seen or begun its own run in the record: another one there has followed it."""
        self._sets: Dict[str, int] = {}
        self._sets_due = 0.0
        """time.monotonic() at which the replicas must be read again."""
        self._sets_read_at = -QUIET_REREAD_SECONDS

    def run(self) -> int:
        """Return the controller's exit code once the run is over."""
        self._watch.start()
        while True:
            try:
                decision = self._step()
                self._backoff.succeed()
                self._trouble.succeed()
            except Superseded as err:
                print_line(f"{err}: this controller has nothing left to do")
                return 0
            except (ApiError, StateError) as err:
                is_new = self._trouble.fail(err)
                if is_new and isinstance(err, StateError):
                    self._tell(Notice("RunStateUnusable", str(err), is_warning=True))
                # After a conflict, or somebody's repair, the record is another one, and so may the replicas be.
                self._is_state_read = False
                self._sets_due = 0.0
                self._look(self._backoff.fail(err), is_pause=True)
                continue
            if decision is not None and decision.exit_code is not None:
                print_line(f"the run is over: {decision.state.phase}")
                return decision.exit_code
            self._look(self._resolve_wait(decision))

    def _step(self) -> Optional[Decision]:
        """Do what follows from what is known; None while too little is."""
        if not self._is_state_read:
            self._read_state()
        if time.monotonic() >= self._sets_due:
            self._sets = self._release.read_replicas()
            self._sets_read_at = time.monotonic()
            self._sets_due = self._sets_read_at + QUIET_REREAD_SECONDS
        if self._pods is None:
            return None
        seen = Observation(time.time(), tuple(self._pods.values()), dict(self._sets))
        decision = decide(self._settings.plan, seen, self._state)
        if not decision.is_recorded:
            self._release.write_state(decision.state)
            self._state = decision.state
            self._is_ours = True
        for notice in decision.notices:
            print_line(f"{notice.reason}: {notice.message}")
        # Events come last, and are not forgotten when a scale fails.
        self._untold += decision.notices
        for change in decision.scales:
            self._sets[change.set_name] = self._release.scale(change)
            print_line(f"scaled {change.set_name} to {change.replicas}")
        while self._untold:
            self._tell(self._untold.pop(0))
        return decision

    def _read_state(self) -> None:
        state = self._release.read_state()
        is_own = state is not None and state.run_id == self._settings.plan.run_id
        if self._is_ours and state is not None and not is_own:
            raise Superseded(f"run {state.run_id!r} has followed run {self._settings.plan.run_id!r}")
        self._state = state
        self._is_state_read = True
        self._is_ours = self._is_ours or is_own

    def _tell(self, notice: Notice) -> None:
        """Create an Event if that is possible: the record says the same, so nothing waits for it."""
        try:
            self._release.tell(notice)
            self._event_trouble.succeed()
        except ApiError as err:
            self._event_trouble.fail(err)

    def _resolve_wait(self, decision: Optional[Decision]) -> float:
        wait = self._sets_due - time.monotonic()
        if decision is not None and decision.wake_at is not None:
            wait = min(wait, decision.wake_at - time.time())
        return max(wait, 0.0)

    def _look(self, seconds: float, is_pause: bool = False) -> None:
        """Wait until pods change, `seconds` at most, and take in what has come; a pause is waited out."""
        until = time.monotonic() + seconds
        sighting = self._next(until)
        if not is_pause:
            until = time.monotonic() + _GATHER_SECONDS
        while sighting is not None:
            self._take_in(sighting)
            sighting = self._next(until)

    def _next(self, until: float) -> Optional[Sighting]:
        try:
            return self._watch.sightings.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            return None

    def _take_in(self, sighting: Sighting) -> None:
        if isinstance(sighting, Exception):
            raise RuntimeError("the watch of the pods has failed") from sighting
        if isinstance(sighting, PodList):
            self._pods = {pod.name: pod for pod in sighting.pods}
        elif self._pods is not None and sighting.pod is not None:
            self._pods[sighting.name] = sighting.pod
        elif self._pods is not None:
            self._pods.pop(sighting.name, None)
        self._sets_due = min(self._sets_due, self._sets_read_at + REREAD_SECONDS)
