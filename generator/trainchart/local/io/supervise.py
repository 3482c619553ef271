"""Runs a LocalPlan to its verdict: starts pods, restarts, injects kills, stops in order, leaves nothing.

One thread, one loop: it waits for output or a tenth of a second, then looks at ends, timers and signals.
Rules are in verdict.py; one pod's mechanics in pod_runner.py.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import FrameType

from trainchart.local.io.pod_runner import LIVING, PodRunner, PodState
from trainchart.local.io.process_table import find_program
from trainchart.local.io.processes import Guardian
from trainchart.local.io.telemetry import Telemetry, read_attempt, read_progress
from trainchart.local.kill import KillRequest
from trainchart.local.observer import ClosableObserver, Observer, RunSnapshot
from trainchart.local.plan import LocalPlan
from trainchart.local.result import Failure, PodEnd, PodResult, RunResult, explain_failure
from trainchart.local.verdict import Next, RunPhase, Verdict, stop_stages
from trainchart.stop_signals import StopRequests
from trainchart_runtime.cluster import EVALUATOR

_TICK_SECONDS = 0.1
_SNAPSHOT_SECONDS = 1.0
_UNFINISHED = (*LIVING, PodState.RESTARTING)
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_plan(plan: LocalPlan, kills: Sequence[KillRequest], observer: Observer) -> RunResult:
    """Run the plan, whose folders and files exist, until its verdict. Call it from the main thread.

    Whatever happens, no process of the run outlives this call, nor the death of the calling process.
    """
    guardian = Guardian(f"{plan.release_folder}/", os.environ)
    supervisor = _Supervisor(plan, kills, observer, guardian)
    try:
        with _catching(supervisor.note_signal):
            return supervisor.run()
    finally:
        supervisor.kill_all()
        guardian.close()


class _Supervisor:
    def __init__(self, plan: LocalPlan, kills: Sequence[KillRequest], observer: Observer, guardian: Guardian) -> None:
        self._plan = plan
        self._kills = list(kills)
        self._observer = ClosableObserver(observer, self._note_closed)
        self._guardian = guardian
        self._runners = [PodRunner(pod, self._observer.show_lines) for pod in plan.pods]
        self._by_label = {runner.plan.label: runner for runner in self._runners}
        self._selector = selectors.DefaultSelector()
        self._telemetry = Telemetry()
        self._phase = RunPhase.TRAINING
        self._verdict = Verdict.SUCCEEDED
        self._ends: dict[str, PodEnd] = {}
        self._signals: list[int] = []
        self._requests = StopRequests()
        self._signals_seen = 0
        self._stages: list[tuple[PodRunner, ...]] = []
        self._evaluator_deadline = 0.0
        self._started_at = time.monotonic()
        self._next_snapshot = 0.0

    def note_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._requests.is_new(time.monotonic()):
            self._signals.append(number)

    def _note_closed(self) -> None:
        """Take an output that is not read any more for SIGPIPE, unless the run stops already."""
        if not self._signals:
            self._signals.append(signal.SIGPIPE)

    def run(self) -> RunResult:
        for runner in self._runners:
            self._start(runner)
        while self._phase is not RunPhase.ENDED:
            self._read_outputs()
            self._look_at_ends()
            self._look_at_signals()
            self._look_at_timers()
            self._look_at_guardian()
            self._advance()
            self._take_snapshot()
        self._take_snapshot(at_once=True)
        return self._result()

    def kill_all(self) -> None:
        for runner in self._runners:
            runner.kill()
            if runner.process is not None:
                runner.process.close()
            runner.log.close()
        self._selector.close()

    def _start(self, runner: PodRunner) -> None:
        process = runner.start()
        self._guardian.watch(process.pid)
        for output in process.outputs:
            self._selector.register(output, selectors.EVENT_READ, runner)

    def _read_outputs(self) -> None:
        for key, _ in self._selector.select(_TICK_SECONDS):
            runner: PodRunner = key.data
            if not runner.read_output(key.fd):
                self._selector.unregister(key.fileobj)

    def _look_at_ends(self) -> None:
        for runner in self._runners:
            was_living = runner.state in LIVING
            following = runner.poll_end()
            if not was_living or runner.state in LIVING or runner.process is None:
                continue
            self._release(runner)
            self._report_end(runner, following)
            if following is Next.GIVE_UP:
                self._ends[runner.plan.label] = PodEnd(
                    exit_code=runner.exit_code or 0,
                    termination=runner.termination,
                    log_file=runner.plan.log_file,
                    last_line=runner.last_line,
                    at=time.time(),
                )

    def _release(self, runner: PodRunner) -> None:
        assert runner.process is not None
        for output in runner.process.outputs:
            with contextlib.suppress(KeyError):
                self._selector.unregister(output)
        self._guardian.forget(runner.process.pid)
        runner.process.close()
        if runner.log.failure:
            self._observer.show_event(f"the log of {runner.plan.label} is not complete: {runner.log.failure}")

    def _report_end(self, runner: PodRunner, following: Next | None) -> None:
        code = runner.exit_code or 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        if following is Next.RESTART:
            how += f" and is started again (restart {runner.restarts})"
        elif following is Next.GIVE_UP:
            how += " and gave up"
        elif runner.state is PodState.FINISHED:
            how = "has finished"
        elif runner.state is PodState.STOPPED:
            how = "has stopped"
        self._observer.show_event(f"{runner.plan.label} {how}")

    def _look_at_signals(self) -> None:
        fresh = self._signals[self._signals_seen :]
        for number in fresh:
            is_again = any(seen != signal.SIGPIPE for seen in self._signals[: self._signals_seen])
            self._signals_seen += 1
            name = signal.Signals(number).name
            if number == signal.SIGPIPE:
                self._observer.show_event("the output was closed: stopping all pods")
                self._begin_stop(Verdict.STOPPED)
            elif is_again:
                self._observer.show_event(f"{name} again: killing all pods")
                for runner in self._runners:
                    runner.kill()
            else:
                self._observer.show_event(
                    f"{name}: stopping all pods; another {name}, at least a second later, kills them at once"
                )
                self._begin_stop(Verdict.STOPPED)

    def _look_at_timers(self) -> None:
        for runner in self._runners:
            if self._phase is not RunPhase.STOPPING and runner.is_due():
                self._start(runner)
            if runner.enforce_stop():
                self._observer.show_event(
                    f"{runner.plan.label} did not stop within {runner.plan.stop_grace_seconds} s: killed"
                )
        self._inject_kills()

    def _look_at_guardian(self) -> None:
        # A machine without room for one more process refuses now and may agree at the next look.
        with contextlib.suppress(OSError):
            if self._guardian.revive():
                self._observer.show_event("restarted the orphan guard, which was killed")

    def _inject_kills(self) -> None:
        run_seconds = time.monotonic() - self._started_at
        for request in [request for request in self._kills if request.after_seconds <= run_seconds]:
            runner = self._by_label[request.label]
            if runner.state is not PodState.RUNNING or runner.process is None:
                continue
            program = find_program(runner.process.pid)
            if program is None:
                continue  # not started yet, or between two starts: the next one is killed
            self._kills.remove(request)
            with contextlib.suppress(ProcessLookupError):
                os.kill(program, signal.SIGKILL)
            self._observer.show_event(f"killed the program of {request.label} (--kill {request.text})")

    def _advance(self) -> None:
        """Move on to the next phase where the pods' states allow it."""
        if self._phase is RunPhase.TRAINING:
            deciders = [self._by_label[label] for label in self._plan.deciding]
            if self._ends:
                self._begin_stop(Verdict.FAILED)
            elif all(runner.state is PodState.FINISHED for runner in deciders):
                self._begin_evaluation()
        if self._phase is RunPhase.EVALUATING:
            self._look_at_evaluators()
        if self._phase is RunPhase.STOPPING:
            self._advance_stop()

    def _begin_evaluation(self) -> None:
        self._phase = RunPhase.EVALUATING
        self._evaluator_deadline = time.monotonic() + self._plan.evaluator_grace_seconds
        if self._living_evaluators():
            self._observer.show_event("training is done; the evaluator measures the last checkpoint")

    def _look_at_evaluators(self) -> None:
        if self._living_evaluators():
            if time.monotonic() < self._evaluator_deadline:
                return
            self._observer.show_event(
                f"the evaluator did not finish within {self._plan.evaluator_grace_seconds} s and is stopped"
            )
        self._begin_stop(Verdict.SUCCEEDED)

    def _living_evaluators(self) -> list[PodRunner]:
        return [item for item in self._runners if item.plan.role == EVALUATOR and item.state in _UNFINISHED]

    def _begin_stop(self, verdict: Verdict) -> None:
        if self._phase is RunPhase.STOPPING:
            return
        self._phase = RunPhase.STOPPING
        self._verdict = verdict
        stages = stop_stages(self._plan.pods, self._plan.deciding)
        self._stages = [tuple(self._by_label[pod.label] for pod in stage) for stage in stages]
        for runner in self._runners:
            if runner.state is PodState.RESTARTING:
                runner.stop()
        self._stop_stage()

    def _stop_stage(self) -> None:
        for runner in self._stages[0]:
            runner.stop()

    def _advance_stop(self) -> None:
        while self._stages and not any(runner.state in LIVING for runner in self._stages[0]):
            self._stages.pop(0)
            if self._stages:
                self._stop_stage()
        if not self._stages:
            self._phase = RunPhase.ENDED

    def _take_snapshot(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if now < self._next_snapshot and not at_once:
            return
        self._next_snapshot = now + _SNAPSHOT_SECONDS
        pods = self._telemetry.sample(self._runners)
        step = max(
            (pod.step for pod in pods if pod.step is not None and pod.label in self._plan.deciding), default=None
        )
        self._observer.show_snapshot(RunSnapshot(str(self._phase), now - self._started_at, step, pods))

    def _result(self) -> RunResult:
        seconds = time.monotonic() - self._started_at
        return RunResult(
            verdict=self._verdict,
            release=self._plan.release,
            release_folder=self._plan.release_folder,
            seconds=seconds,
            pods=tuple(_pod_result(runner) for runner in self._runners),
            deciding=self._plan.deciding,
            failure=self._explain_failure() if self._verdict is Verdict.FAILED else None,
            finished_at=time.time(),
            signal=self._signals[0] if self._verdict is Verdict.STOPPED else None,
            warnings=tuple(request.explain_miss(seconds) for request in self._kills),
        )

    def _explain_failure(self) -> Failure | None:
        """Return the first failure; what it repeats of its program must not bring a secret into a record."""
        failure = explain_failure(self._ends)
        if failure is None:
            return None
        mask = self._by_label[failure.pod].plan.mask
        return replace(failure, error=mask(failure.error), last_lines=tuple(map(mask, failure.last_lines)))


def _pod_result(runner: PodRunner) -> PodResult:
    progress = read_progress(runner)
    return PodResult(
        label=runner.plan.label,
        name=runner.plan.name,
        role=runner.plan.role,
        state=str(runner.state),
        exit_code=runner.exit_code,
        attempts=read_attempt(runner),
        container_restarts=runner.restarts,
        step=progress.step,
        examples_per_second=progress.examples_per_second,
        metrics=progress.metrics,
        log_file=runner.plan.log_file,
        nan_metrics=tuple(progress.nan_metrics),
    )


@contextlib.contextmanager
def _catching(note: signal._HANDLER) -> Iterator[None]:
    previous = {number: signal.signal(number, note) for number in _ENDING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
