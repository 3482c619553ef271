"""The use case `trainchart run`: chart and values through the Helm engine, plan, ports, folders, processes.

The same manifests that `helm install` would create are what runs; printing is the command line's.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainchart.actions.support.chart_drift import find_edits, refuse_incomplete
from trainchart.actions.support.given_values import merge_values, read_overrides
from trainchart.actions.support.project import find_project
from trainchart.actions.support.run_code import FoundCode, recall_image_code
from trainchart.actions.support.run_record import add_overrides, keep_engine, make_record, require_run_of
from trainchart.actions.support.target import Target, is_chart, open_target
from trainchart.check.objects import mapping_at, mappings_at
from trainchart.errors import NotFound, Problem, RenderError, ToolError
from trainchart.helm.asked import Asked
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.inputs import describe_request, require_release_name
from trainchart.helm.misread_values import find_misread_values
from trainchart.helm.rendering import Rendering, ValueOverrides
from trainchart.host.files import read_tree
from trainchart.host.machine import has_gpu
from trainchart.host.time_limit import TookTooLong, time_limit
from trainchart.local.io import release_folder
from trainchart.local.io.curve_file import read_points
from trainchart.local.io.launcher_archive import ensure_launcher, find_launcher
from trainchart.local.io.outputs import find_outputs, holds_outputs
from trainchart.local.io.ports import PortReservation, reserve_ports
from trainchart.local.io.release_folder import Existing
from trainchart.local.io.release_lock import hold_checkpoints
from trainchart.local.io.run_keeper import RunKeeper
from trainchart.local.io.supervise import run_plan
from trainchart.local.io.writes import WATCH_FOLDER, describe_writes, read_code_times
from trainchart.local.kill import parse_kills
from trainchart.local.observer import Observer
from trainchart.local.plan import LocalPlan, LocalSettings, needed_addresses, plan_local_run
from trainchart.local.report import describe_result
from trainchart.local.result import RunResult
from trainchart.local.run_record import RunOptions, RunRecord, describe_record, parse_record
from trainchart.local.summary import warn_of_loss
from trainchart.reports.curves import Curve, make_curves

_ARCHIVES = (".tgz", ".tar.gz")
DEFAULT_NAMESPACE = "default"
_MISREAD_SECONDS = 5.0
"""Processor time for the notes about one values file."""
_STARTS_OVER = "the previous start left no file in a volume, so this one trains from step 0"


@dataclass(frozen=True)
class RunRequest:
    """What the user asked for."""

    target: str
    """A chart folder, a chart archive, a model spec file, or the name of a model in models/."""
    runs_folder: Path
    strategy: str = ""
    """A strategy to train a model with, instead of its spec's."""
    command: str = ""
    """The command line as typed, for the record."""
    python: str = ""
    """Empty, like the strategy, namespace, engine and code: what the start before took, else the default."""
    release: str = ""
    namespace: str = ""
    values: tuple[Path, ...] = ()
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    set_jsons: tuple[str, ...] = ()
    engine: str = ""
    code: Path | None = None
    existing: Existing = Existing.REFUSE
    keeps_values: bool = True
    """Whether a resumed run starts from the values of the start before."""
    kept_values: Mapping[str, Any] = field(default_factory=dict)
    """Those values."""
    kills: tuple[str, ...] = ()
    claims: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over, and what there is to say about it."""

    plan: LocalPlan
    result: RunResult
    record: Mapping[str, Any]
    """As in run.json."""
    install: tuple[str, ...]
    """Commands that put the same chart with the same values into a cluster."""
    curves: tuple[Curve, ...] = ()
    """What its leading pod reported by step; the others' names begin with their pod."""


@dataclass(frozen=True)
class _Prepared:
    plan: LocalPlan
    record: RunRecord
    reservation: PortReservation


def preview_run(request: RunRequest) -> LocalPlan:
    """Return the plan of the run that this request would start, without leaving anything behind."""
    request = _take_over(request)
    with open_target(request.target, request.strategy) as target:
        if request.release:
            require_release_name(request.release)
            require_run_of(target.chart_name, request.runs_folder / request.release)
            release_folder.require_startable(request.runs_folder, request.release, request.existing)
        release = request.release or release_folder.choose_release(request.runs_folder, target.chart_name)
        folder = request.runs_folder.resolve() / release
        prepared = _prepare(request, target, release, folder)
        prepared.reservation.close()
        parse_kills(request.kills, [pod.label for pod in prepared.plan.pods])
        return prepared.plan


def run_local(request: RunRequest, observer: Observer) -> FinishedRun:
    """Run to the verdict. Call it from the main thread.

    Raises:
        TrainchartError: the run cannot start; a failed training is a result.
    """
    request = _take_over(request)
    with open_target(request.target, request.strategy) as target:
        if request.release:
            require_release_name(request.release)
            require_run_of(target.chart_name, request.runs_folder / request.release)
        release = request.release or release_folder.claim_release(request.runs_folder, target.chart_name)
        with release_folder.open_release(request.runs_folder, release, request.existing) as folder:
            # Of a run that was killed, nothing is known but that it was there.
            before = release_folder.read_result(folder) if request.existing is Existing.RESUME else None
            prepared = _prepare(request, target, release, folder)
            plan, record = prepared.plan, describe_record(prepared.record, prepared.plan)
            keeper = RunKeeper(folder, request.command, observer)
            try:
                kills = parse_kills(request.kills, [pod.label for pod in plan.pods])
                ensure_launcher(find_launcher(folder))
                with hold_checkpoints(plan.checkpoints):
                    keeper.show_plan(plan)
                    release_folder.write_plan(plan, record)
                    code_times = read_code_times(plan)
                    result = run_plan(plan, kills, keeper)
            finally:
                prepared.reservation.close()
            outputs = find_outputs(plan, prepared.record.started_at)
            result = replace(result, outputs=outputs, before=before)
            warnings = (*result.warnings, *warn_of_loss(plan, result), *describe_writes(plan, code_times))
            result = replace(result, warnings=warnings)
            _keep(folder, plan, record, result, keeper)
            install = tuple(_install_commands(request, target, plan, record))
            curves = make_curves(read_points(folder), plan.deciding[0])
            return FinishedRun(plan, result, record, install, curves)


def _keep(folder: Path, plan: LocalPlan, record: Mapping[str, Any], result: RunResult, keeper: RunKeeper) -> None:
    try:
        body = {**describe_result(plan, result), "record": record}
        release_folder.write_record(folder / release_folder.RESULT_FILE, body)
    except ToolError as err:
        # A disk that is full by now must not hide how the training ended.
        keeper.show_event(f"the result was not recorded: {err.message}")
    keeper.finish(result.verdict)


def _install_commands(request: RunRequest, target: Target, plan: LocalPlan, record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the commands that install the chart and the values of a run, generated first where it is not there."""
    if request.strategy:
        return  # no chart on disk has the strategy that was tried
    chart = request.target
    if not is_chart(Path(chart)):
        chart = str(find_project().charts / target.chart_name)
        if not _has_same_files(Path(chart), target.chart):
            yield f"trainchart generate {shlex.quote(request.target)}"
    words = ["helm", "install", plan.release, chart]
    if record["options"]["namespace"]:
        words += ["-n", record["options"]["namespace"]]
    if record["values"]:
        words += ["-f", str(request.runs_folder / plan.release / release_folder.VALUES_FILE)]
    yield f"{shlex.join(words)}   # the same chart and values, in a cluster"


def _has_same_files(chart: Path, other: Path) -> bool:
    return chart.is_dir() and read_tree(chart) == read_tree(other)


def _take_over(request: RunRequest) -> RunRequest:
    """Return the request of a resumed run completed by what the start before took."""
    if request.existing is not Existing.RESUME:
        return request
    folder = request.runs_folder / request.release
    release_folder.require_startable(request.runs_folder, request.release, request.existing)
    before = parse_record(release_folder.read_record(folder / release_folder.RUN_FILE))
    if before is None:
        raise release_folder.damaged_record(folder)
    kept = before.options
    return replace(
        request,
        strategy=request.strategy or kept.strategy,
        python=request.python or kept.python,
        namespace=request.namespace or kept.namespace,
        engine=request.engine or keep_engine(kept.engine, request.release),
        code=request.code or (Path(kept.code) if kept.code else None),
        claims={**{name: Path(path) for name, path in kept.claims.items()}, **request.claims},
        kept_values=before.values if request.keeps_values else {},
    )


def _find_claims_to_resume(
    runs_folder: Path, values: Mapping[str, Any], rendering: Rendering, chosen: Mapping[str, str]
) -> dict[str, str]:
    """Return the claim of checkpoints, left by another local run, from which this one is to begin.

    Raises NotFound where there is no such run, and no folder was named for a claim.
    """
    other = str(mapping_at(values, "run").get("resumeRelease") or "")
    if other and not chosen and not (runs_folder / other).is_dir():
        raise NotFound(
            f"run.resumeRelease: there is no local run {other} in {runs_folder}",
            hint="name another run, or the folder with its checkpoints: --claim CLAIM=FOLDER",
        )
    pods = (mapping_at(manifest.document, "spec", "template", "spec") for manifest in rendering.manifests)
    volumes = (volume for pod in pods for volume in mappings_at(pod, "volumes") if other)
    names = {str(mapping_at(volume, "persistentVolumeClaim").get("claimName")) for volume in volumes}
    folders = {name: runs_folder / other / "claims" / name for name in names}
    return {name: str(folder.absolute()) for name, folder in folders.items() if folder.is_dir()}


def _prepare(request: RunRequest, target: Target, release: str, folder: Path) -> _Prepared:
    namespace, engine = request.namespace or DEFAULT_NAMESPACE, find_engine(request.engine or "auto")
    python = _find_python(request.python or sys.executable)
    overrides = add_overrides(
        request.kept_values,
        read_overrides(request.values, request.sets, request.set_strings, request.set_jsons),
        f"the values of {release}",
    )
    try:
        rendering = engine.render(target.chart, release=release, namespace=namespace, overrides=overrides)
    except RenderError as err:
        refuse_incomplete(target.chart, err)
        err.problems += find_edits(target.chart)  # a file that was cut off is the likely reason
        raise
    code = _find_code(request, target, rendering)
    claims = {name: str(path.absolute()) for name, path in request.claims.items()}
    values = merge_values(engine, overrides)
    asked = RunRecord(
        command=request.command,
        target=request.target,
        options=RunOptions(
            strategy=request.strategy,
            namespace=request.namespace,
            engine=request.engine,
            python=str(request.python),
            code=str(request.code.absolute()) if request.code else "",
            claims=claims,
        ),
        values=values,
        chart_name=target.chart_name,
        python=python,
    )
    reservation = reserve_ports(needed_addresses(rendering.manifests))
    try:
        settings = LocalSettings(
            release=release,
            namespace=namespace,
            release_folder=str(folder),
            launcher=str(find_launcher(folder)),
            code=str(code.folder),
            python=python,
            caller=os.environ,
            claims={**_find_claims_to_resume(request.runs_folder, values, rendering, claims), **claims},
            ports=reservation.ports,
            write_watch=WATCH_FOLDER,
            has_gpu=has_gpu(),
            # A user who tries a program wants to see its error once; a cluster's restarts hide it.
            max_restarts=None if request.kills or _sets_restarts(overrides) else 0,
        )
        plan = plan_local_run(rendering.manifests, settings)
        found = (*code.notes, *target.notes, *_find_misread(target.chart, overrides))
        notes = (str(note) for note in found if note.message not in plan.warnings)
        starts_over = request.existing is Existing.RESUME and not holds_outputs(plan)
        plan = replace(plan, warnings=(*notes, *plan.warnings, *([_STARTS_OVER] if starts_over else [])))
        return _Prepared(plan, make_record(asked, target.chart, code.folder), reservation)
    except BaseException:
        reservation.close()
        raise


def _find_misread(chart: Path, overrides: ValueOverrides) -> Iterator[Problem]:
    """Yield what Helm reads as something else than what a values file says."""
    asked = describe_request(chart, overrides) if overrides.files else Asked()
    for file, text in asked.overrides.files:
        try:
            with time_limit(_MISREAD_SECONDS):
                found = tuple(find_misread_values(text, asked.schemas, asked.chart))
        except TookTooLong:
            hint = "a pattern of the chart's schema, such as ^(a+)+$, may never end"
            found = ((0, Problem("not compared with what Helm reads, which takes too long", hint=hint)),)
        for line, problem in found:
            yield replace(problem, where=f"{file}:{line}" if line else file)


def _sets_restarts(overrides: ValueOverrides) -> bool:
    """Return whether the user's values hold run.maxRestarts, also for a chart below another one."""
    texts = (*overrides.sets, *overrides.set_strings, *overrides.set_jsons, *(text for _, text in overrides.files))
    return any(re.search(r"\bmaxRestarts\b", text) for text in texts)


def _find_code(request: RunRequest, target: Target, rendering: Rendering) -> FoundCode:
    """Return what stands for the image's code: the folder asked for, the spec's, remembered, or this one."""
    if request.code is not None:
        if not request.code.is_dir():
            raise ToolError(f"there is no folder {request.code}", hint="--code takes the folder of the training code")
        return FoundCode(request.code.absolute())
    code = target.code or recall_image_code(target.chart, target.chart_name, rendering)
    if not code.folder.is_dir():
        raise ToolError(
            f"the code folder {code.folder} is not there", hint="give its current folder with --code FOLDER"
        )
    return code


def _find_python(wanted: str) -> str:
    found = shutil.which(wanted)
    if found is None:
        raise ToolError(f"there is no Python at {wanted!r}", hint="--python takes an interpreter's path or name")
    # Not resolved: a virtual environment's python is a link, and only the link knows its packages.
    return str(Path(found).absolute())
