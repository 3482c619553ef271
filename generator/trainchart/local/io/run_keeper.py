"""Keeps what a run does while it goes on, in state.json and curves.jsonl of its folder, for other processes to read.

An observer around another one. A disk that is full by now must not end a training: what cannot be kept is left out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.local.io.curve_file import CurveFile
from trainchart.local.io.release_folder import STATE_FILE, read_record, write_record
from trainchart.local.observer import Observer, RunSnapshot
from trainchart.local.plan import LocalPlan
from trainchart.local.verdict import RunPhase
from trainchart_runtime.cluster import EVALUATOR
from trainchart_runtime.records import RecordError, dump_record, parse_record
from trainchart_runtime.run.state import FINISHING, HISTORY_KEPT, RUNNING, STOPPING, HistoryEntry

_PHASES = {RunPhase.EVALUATING: FINISHING, RunPhase.STOPPING: STOPPING, RunPhase.ENDED: STOPPING}


class RunKeeper:
    """Writes the state once a second, and hands everything on."""

    def __init__(self, folder: Path, command: str, observer: Observer) -> None:
        self._file = folder / STATE_FILE
        self._command = command
        self._observer = observer
        self._phase = RUNNING
        self._since = time.time()
        self._history = list(read_history(self._file))
        self._pods: dict[str, dict[str, object]] = {}
        self._curves = CurveFile(folder)
        self._reporting: tuple[str, ...] = ()

    def show_plan(self, plan: LocalPlan) -> None:
        evaluators = (pod.label for pod in plan.pods if pod.role == EVALUATOR)
        self._reporting = (*plan.deciding[:1], *evaluators)
        self._note(f"started by: {self._command}")
        self._write()
        self._observer.show_plan(plan)

    def show_lines(self, label: str, lines: Sequence[str]) -> None:
        self._observer.show_lines(label, lines)

    def show_event(self, text: str) -> None:
        self._note(text)
        self._observer.show_event(text)

    def show_snapshot(self, snapshot: RunSnapshot) -> None:
        self._enter(_PHASES.get(RunPhase(snapshot.phase), RUNNING))
        self._pods = {pod.label: {"state": pod.state, "attempt": pod.attempt} for pod in snapshot.pods}
        self._write()
        now = time.time()
        for pod in snapshot.pods:
            if pod.label in self._reporting:
                self._curves.add(pod.label, now, pod.step, pod.metrics, pod.examples_per_second)
        self._observer.show_snapshot(snapshot)

    def finish(self, verdict: str) -> None:
        """Keep the end of the run."""
        self._enter(verdict)
        self._note("the run is over")
        self._write()

    def _enter(self, phase: str) -> None:
        if phase != self._phase:
            self._phase, self._since = phase, time.time()

    def _note(self, text: str) -> None:
        self._history = [*self._history, HistoryEntry(time.time(), self._phase, text)][-HISTORY_KEPT:]

    def _write(self) -> None:
        body = {
            "phase": self._phase,
            "since": self._since,
            "updated": time.time(),
            "pods": self._pods,
            "history": [dump_record(entry) for entry in self._history],
        }
        with suppress(ToolError):
            write_record(self._file, body)


def read_history(file: Path) -> Sequence[HistoryEntry]:
    """Return the history that state.json holds; empty where it is not there or damaged."""
    entries = read_record(file).get("history")
    try:
        return [parse_record(HistoryEntry, each, "history") for each in entries] if isinstance(entries, list) else []
    except RecordError:
        return []
