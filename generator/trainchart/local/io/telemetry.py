"""Reads how the pods of a local run are doing: their progress files and what their processes use.

Reads only; serves the snapshots that observers get and the numbers of the final result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path

from trainchart.json_documents import parse_json
from trainchart.local.io.pod_runner import LIVING, PodRunner
from trainchart.local.io.process_table import Usage, sample_usage
from trainchart.local.io.release_folder import read_told
from trainchart.local.observer import PodSnapshot
from trainchart.reports.metric_names import find_loss
from trainchart_runtime import contract
from trainchart_runtime.progress import Progress, parse_progress, parse_whole

_MIB = 1024 * 1024


def read_progress(runner: PodRunner) -> Progress:
    """Return the last report of the pod's program; empty where there is none."""
    return parse_progress(_read(runner, contract.PROGRESS_FILE_NAME))


class Telemetry:
    """Turns running totals into rates, so it remembers the sample before."""

    def __init__(self) -> None:
        self._sampled_at = 0.0
        self._usage: dict[str, tuple[int, Usage]] = {}

    def sample(self, runners: Sequence[PodRunner]) -> tuple[PodSnapshot, ...]:
        now = time.monotonic()
        sessions = {
            runner.process.pid: runner.plan.label
            for runner in runners
            if runner.process is not None and runner.state in LIVING
        }
        usage = {label: (pid, value) for pid, value in sample_usage(sessions).items() for label in [sessions[pid]]}
        elapsed = now - self._sampled_at
        snapshots = tuple(self._snapshot(runner, usage, elapsed) for runner in runners)
        self._usage, self._sampled_at = usage, now
        return snapshots

    def _snapshot(self, runner: PodRunner, usage: dict[str, tuple[int, Usage]], elapsed: float) -> PodSnapshot:
        progress = read_progress(runner)
        pid, current = usage.get(runner.plan.label, (0, None))
        before_pid, before = self._usage.get(runner.plan.label, (0, None))
        cpu_percent = None
        if current is not None and before is not None and pid == before_pid:
            # A process that ended takes its seconds with it: the rate is then unknown, not negative.
            cpu_percent = max(0.0, 100 * (current.cpu_seconds - before.cpu_seconds) / elapsed)
        return PodSnapshot(
            label=runner.plan.label,
            role=runner.plan.role,
            state=str(runner.state),
            attempt=read_attempt(runner),
            step=progress.step,
            examples_per_second=progress.examples_per_second,
            cpu_percent=cpu_percent,
            memory_mib=None if current is None else current.memory_bytes / _MIB,
            loss=_find_loss(progress),
            metrics=progress.metrics,
        )


def _find_loss(progress: Progress) -> float | None:
    name = find_loss([*progress.metrics, *progress.nan_metrics])
    return None if name is None else progress.metrics.get(name, math.nan)


def read_attempt(runner: PodRunner) -> int:
    """Return how often the pod's program has been started, as the launcher counts in its state folder."""
    try:
        started = parse_whole(parse_json(_read(runner, "attempts.json")).get("started"))
    except (ValueError, AttributeError):
        started = None
    if started is not None:
        return started
    return runner.restarts + 1 if runner.process is not None else 0


def _read(runner: PodRunner, name: str) -> str:
    return read_told(Path(runner.plan.state_folder, name))
