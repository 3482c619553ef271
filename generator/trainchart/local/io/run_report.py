"""Reads the report of a local run from its folder: while it goes on, after its end, and after it was killed.

Reads only. The lock says whether it goes on; run.json, state.json, result.json and the progress files say the rest.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trainchart.local.io.release_folder import (
    RESULT_FILE,
    RUN_FILE,
    STATE_FILE,
    damaged_record,
    holds_run,
    read_record,
    read_told,
    refuse_damaged,
)
from trainchart.local.io.release_lock import is_running
from trainchart.local.io.run_keeper import read_history
from trainchart.local.record_types import require_types
from trainchart.local.summary import resume_command
from trainchart.reports.local_causes import NOTHING_DONE, RUN_KILLED
from trainchart.reports.report import (
    FROM_RECORD,
    LOCAL,
    PodReport,
    Progress,
    Report,
    RoleReport,
    TrainingKey,
)
from trainchart.reports.run_settings import parse_settings
from trainchart.secret_masks import mask_values
from trainchart_runtime import contract
from trainchart_runtime.cluster import EVALUATOR
from trainchart_runtime.progress import parse_progress
from trainchart_runtime.run.state import ENDED_PHASES, FAILED, STARTING, STOPPED, SUCCEEDED, Verdict

_LIVING = ("running", "stopping")
_STATES = {"finished": SUCCEEDED}
_ON_REQUEST = "The run was stopped on request"


def find_runs(runs_folder: Path) -> list[Path]:
    """Return the folders of all local runs, the one that was started last at the end."""
    return [folder for folder in find_records(runs_folder) if holds_run(folder)]


def find_records(runs_folder: Path) -> list[Path]:
    """Return the folders with the record of a run, damaged ones too, the one that was written last at the end."""
    folders = [path.parent for path in runs_folder.glob(f"*/{RUN_FILE}")]
    return sorted(folders, key=lambda folder: (folder / RUN_FILE).stat().st_mtime)


def read_report(folder: Path) -> Report:
    """Return the report of the run in `folder`. Raises ToolError where its record is damaged."""
    refuse_damaged(folder)
    try:
        return _read_report(folder)
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as err:
        raise damaged_record(folder) from err


def stamp_record(folder: Path) -> tuple[tuple[int, int] | None, ...]:
    """Return what changes whenever the record of a run that is over does: it is resumed, or removed and made again."""
    return tuple(_stamp(folder / name) for name in (RUN_FILE, STATE_FILE, RESULT_FILE))


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.lstat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


def _read_report(folder: Path) -> Report:
    # Asked before the files are read: a run that ends meanwhile has then written its result.
    is_alive = is_running(folder.parent, folder.name)
    record, state, result = (read_record(folder / name) for name in (RUN_FILE, STATE_FILE, RESULT_FILE))
    require_types(record, result)
    if is_alive and not result:
        phase = state.get("phase", STARTING)
        # What was written before this start.
        phase = STARTING if phase in ENDED_PHASES else str(phase)
        outcome, progress = None, _read_progress(record, folder)
    else:
        # A run that was killed has no result, and what its program reported is still there.
        told = _read_progress(record, folder)
        outcome = _conclude(result, state, told.step)
        phase, progress = outcome.result, _final_progress(record, result, outcome) if result else told
    pods = tuple(_read_pods(record, state, is_alive=phase not in ENDED_PHASES))
    chart = str(record.get("chart", ""))
    return Report(
        key=TrainingKey("", folder.name, chart.rpartition("-")[0] or chart),
        now=time.time(),
        phase=phase,
        source=FROM_RECORD,
        origin=LOCAL,
        folder=str(folder),
        resume_command=resume_command(record, str(folder)),
        record=mask_values({name: record.get(name) for name in _RECORDED}),
        settings=parse_settings(mask_values(record)),
        chart=chart,
        since=float(state.get("since") or 0.0),
        attempt=max((_attempt(pod, state) for pod in record.get("deciding", ())), default=None),
        progress=progress,
        outcome=outcome,
        roles=tuple(_count_roles(pods)),
        pods=pods,
        history=tuple(read_history(folder / STATE_FILE)),
    )


_RECORDED = ("command", "startedAt", "values", "hyperparameters", "code", "python", "chartIdentity", "host")


def _conclude(result: Mapping[str, Any], state: Mapping[str, Any], told: int | None) -> Verdict:
    """Return how a run ended that does not go on any more; `told` is the last step that its program reported."""
    if not result:
        return Verdict(
            result=FAILED,
            at=float(state.get("updated") or 0.0),
            cause=RUN_KILLED,
            sentence="The process of `trainchart run` was killed, or the machine went down.",
            step=told,
        )
    at, failure = float(result.get("finishedAt") or 0.0), result.get("failure")
    if failure:
        return Verdict(
            result=FAILED,
            at=float(failure["at"]),
            cause=str(failure["cause"]),
            sentence=str(failure["sentence"]),
            hint=str(failure["hint"]),
            pod=str(failure["pod"]),
            exit_code=failure["exit_code"],
            error=str(failure["error"]),
            step=result.get("step"),
            lines=tuple(failure["last_lines"]),
        )
    if result.get("nothingDone"):
        return Verdict(SUCCEEDED, at, NOTHING_DONE, str(result["nothingDone"]), step=result.get("step"))
    is_unread = result.get("signal") == signal.SIGPIPE
    stopped = "The run was stopped because its output was closed, as by `| head`" if is_unread else _ON_REQUEST
    sentences = {SUCCEEDED: "The training is done", STOPPED: stopped}
    verdict = str(result.get("verdict"))
    return Verdict(verdict, at, verdict.lower(), sentences.get(verdict, ""), step=result.get("step"))


def _read_progress(record: Mapping[str, Any], folder: Path) -> Progress:
    """Return what the deciding pods report now, and what evaluators measure."""
    found = []
    own_folder = os.path.realpath(folder)
    for pod in record.get("pods", ()):
        file = Path(str(pod.get("state")), contract.PROGRESS_FILE_NAME)
        # A record that came with the files of others may name any path.
        is_own = Path(os.path.realpath(file)).is_relative_to(own_folder)
        with suppress(FileNotFoundError, NotADirectoryError):
            if is_own:
                at = file.lstat().st_mtime
                found.append((pod, parse_progress(read_told(file)), at))
    deciding = [(each, at) for pod, each, at in found if pod["label"] in record.get("deciding", ())]
    # Each pod that decides reports the speed of the whole training.
    speeds = (each.examples_per_second for each, _ in deciding)
    told = _PodMetrics(record)
    return Progress(
        step=max((each.step for each, _ in deciding if each.step is not None), default=None),
        examples_per_second=next((speed for speed in speeds if speed is not None), None),
        metrics=told.join({pod["label"]: each.metrics for pod, each, _ in found}),
        at=max((at for _, at in deciding), default=0.0),
        nan_metrics=tuple(told.join({pod["label"]: dict.fromkeys(each.nan_metrics, 0) for pod, each, _ in found})),
    )


def _final_progress(record: Mapping[str, Any], result: Mapping[str, Any], outcome: Verdict) -> Progress:
    told = _PodMetrics(record)
    nan = {str(pod.get("pod")): dict.fromkeys(pod.get("nanMetrics") or (), 0) for pod in result.get("pods") or ()}
    return Progress(
        step=result.get("step"),
        examples_per_second=result.get("examplesPerSecond"),
        metrics=told.join(result.get("metrics") or {}),
        at=outcome.at,
        nan_metrics=tuple(told.join(nan)),
    )


class _PodMetrics:
    """Joins what the pods of a run report, as a run controller does: the leading pod's, and evaluator/NAME."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self._deciding = tuple(record.get("deciding", ()))
        self._evaluators = [pod["label"] for pod in record.get("pods", ()) if pod["role"] == EVALUATOR]

    def join(self, by_pod: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
        leading = next((by_pod[label] for label in self._deciding if by_pod.get(label)), {})
        measured = (by_pod.get(label, {}) for label in self._evaluators)
        return {**leading, **{f"{EVALUATOR}/{name}": value for each in measured for name, value in each.items()}}


def _read_pods(record: Mapping[str, Any], state: Mapping[str, Any], *, is_alive: bool) -> list[PodReport]:
    pods = []
    for pod in record.get("pods", ()):
        known = state.get("pods", {}).get(pod["label"], {})
        now = str(known.get("state", "waiting"))
        if not is_alive and now in (*_LIVING, "restarting", "waiting"):
            now = "gone"
        pods.append(
            PodReport(
                name=pod["name"],
                label=pod["label"],
                role=pod["role"],
                state=_STATES.get(now, now.capitalize()),
                node=str(record.get("host") or ""),
                restarts=max(0, _attempt(pod["label"], state) - 1),
                created=float(record.get("startedAt") or 0.0),
                gpus={},
                holds_gpus=False,
            )
        )
    return pods


def _attempt(label: str, state: Mapping[str, Any]) -> int:
    return int(state.get("pods", {}).get(label, {}).get("attempt", 0))


def _count_roles(pods: tuple[PodReport, ...]) -> list[RoleReport]:
    roles: dict[str, list[PodReport]] = {}
    for pod in pods:
        roles.setdefault(pod.role, []).append(pod)
    return [
        RoleReport(
            role,
            wanted=len(own),
            running=sum(pod.state.lower() in _LIVING for pod in own),
            failures=sum(pod.restarts + (pod.state == FAILED) for pod in own),
            finished=sum(pod.state == SUCCEEDED for pod in own),
        )
        for role, own in roles.items()
    ]
