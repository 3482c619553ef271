"""The use case `trainchart run`: chart and values through the Helm engine, plan, ports, folders, processes.

The same manifests that `helm install` would create are what runs; printing is the command line's.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainchart.actions.chart_input import read_chart_files
from trainchart.archive.lock import LOCK_FILE, parse_lock
from trainchart.errors import PlanError, Problem, ToolError, TrainchartError
from trainchart.host.files import read_text
from trainchart.host.helm import find_engine
from trainchart.host.helm_input import require_chart, require_release_name
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.local import release_folder
from trainchart.local.code_index import recall_code
from trainchart.local.kill import parse_kills
from trainchart.local.launcher_archive import ensure_launcher, find_launcher
from trainchart.local.notices import Notices
from trainchart.local.objects import find_training_sets, image_repository
from trainchart.local.observer import Observer
from trainchart.local.plan import LocalPlan, LocalSettings, needed_addresses, plan_local_run
from trainchart.local.ports import PortReservation, reserve_ports
from trainchart.local.release_folder import Existing
from trainchart.local.report import describe_result
from trainchart.local.result import RunResult
from trainchart.local.supervise import run_plan
from trainchart.plan.strategies import find_strategy
from trainchart.rendering import Rendering, ValueOverrides

_ARCHIVES = (".tgz", ".tar.gz")


@dataclass(frozen=True)
class RunRequest:
    """What the user asked for."""

    target: str
    """A chart folder, a chart archive, a model spec file, or the name of a model in models/."""
    python: str
    runs_folder: Path
    strategy: str = ""
    """A strategy to train a model with, instead of its spec's."""
    release: str = ""
    namespace: str = "default"
    values: tuple[Path, ...] = ()
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    set_jsons: tuple[str, ...] = ()
    engine: str = "auto"
    code: Path | None = None
    existing: Existing = Existing.REFUSE
    kills: tuple[str, ...] = ()
    claims: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class _Target:
    chart: Path
    chart_name: str
    code: Path | None
    """Where a model spec says that its code is."""
    notes: tuple[Problem, ...] = ()
    """What the author of a model spec should know of."""


def preview_run(request: RunRequest) -> LocalPlan:
    """Return the plan of the run that this request would start, without leaving anything behind."""
    with _open_target(request.target, request.strategy) as target:
        release = request.release or release_folder.choose_release(request.runs_folder, target.chart_name)
        folder = (request.runs_folder / release).absolute()
        plan, reservation = _plan(request, target, release, folder)
        reservation.close()
        parse_kills(request.kills, [pod.label for pod in plan.pods])
        return plan


def run_local(request: RunRequest, observer: Observer) -> tuple[LocalPlan, RunResult]:
    """Run to the verdict. Call it from the main thread.

    :raises TrainchartError: for all that keeps the run from starting; a failed training is a result.
    """
    with _open_target(request.target, request.strategy) as target:
        if request.release:
            require_release_name(request.release)
        release = request.release or release_folder.claim_release(request.runs_folder, target.chart_name)
        with release_folder.open_release(request.runs_folder, release, request.existing) as folder:
            plan, reservation = _plan(request, target, release, folder)
            try:
                kills = parse_kills(request.kills, [pod.label for pod in plan.pods])
                ensure_launcher(find_launcher(folder))
                observer.show_plan(plan)
                release_folder.write_plan(plan)
                result = run_plan(plan, kills, observer)
            finally:
                reservation.close()
            _record(folder, describe_result(plan, result), observer)
            return plan, result


def _record(folder: Path, result: Mapping[str, Any], observer: Observer) -> None:
    try:
        release_folder.write_record(folder / release_folder.RESULT_FILE, result)
    except ToolError as err:
        # A disk that is full by now must not hide how the training ended.
        observer.show_event(f"the result is not recorded: {err.message}")


def chart_argument(target: str, chart: str) -> str:
    """Return what `helm install` takes for a target: a model's chart lies where `trainchart generate` puts it."""
    if _is_chart(Path(target)):
        return target
    return f"charts/{chart.rpartition('-')[0] or chart}"


def _plan(request: RunRequest, target: _Target, release: str, folder: Path) -> tuple[LocalPlan, PortReservation]:
    python = _find_python(request.python)
    overrides = _read_overrides(request)
    engine = find_engine(request.engine)
    rendering = engine.render(target.chart, release=release, namespace=request.namespace, overrides=overrides)
    code = _find_code(request, target, rendering)
    reservation = reserve_ports(needed_addresses(rendering.manifests))
    try:
        settings = LocalSettings(
            release=release,
            namespace=request.namespace,
            release_folder=str(folder),
            launcher=str(find_launcher(folder)),
            code=str(code),
            python=python,
            caller=os.environ,
            claims={name: str(path.absolute()) for name, path in request.claims.items()},
            ports=reservation.ports,
            # Whoever tries a program wants to see its error once; a cluster's restarts hide it.
            max_restarts=None if request.kills or _sets_restarts(overrides) else 0,
        )
        plan = plan_local_run(rendering.manifests, settings)
        notes = (str(note) for note in target.notes if note.message not in plan.warnings)
        return replace(plan, warnings=(*notes, *plan.warnings)), reservation
    except BaseException:
        reservation.close()
        raise


def _read_overrides(request: RunRequest) -> ValueOverrides:
    return ValueOverrides(
        files=tuple((str(path), read_text(path)) for path in request.values),
        sets=request.sets,
        set_strings=request.set_strings,
        set_jsons=request.set_jsons,
    )


def _sets_restarts(overrides: ValueOverrides) -> bool:
    """Return whether the user's values hold run.maxRestarts, also for a chart below another one."""
    texts = (*overrides.sets, *overrides.set_strings, *overrides.set_jsons, *(text for _, text in overrides.files))
    return any(re.search(r"\bmaxRestarts\b", text) for text in texts)


def _find_code(request: RunRequest, target: _Target, rendering: Rendering) -> Path:
    """Return what stands for the image's code: the folder asked for, the spec's, remembered, or this one."""
    if request.code is not None:
        if not request.code.is_dir():
            raise ToolError(f"there is no folder {request.code}", hint="--code takes the folder of the training code")
        return request.code.absolute()
    if target.code is not None:
        return target.code.absolute()
    sets = find_training_sets(rendering.manifests, Notices())
    repository = image_repository(str(sets[0].container.get("image", ""))) if sets else ""
    return recall_code(repository) or Path.cwd()


def _find_python(wanted: str) -> str:
    found = shutil.which(wanted)
    if found is None:
        raise ToolError(f"there is no Python at {wanted!r}", hint="--python takes an interpreter's path or name")
    # Not resolved: a virtual environment's python is a link, and only the link knows its packages.
    return str(Path(found).absolute())


@contextmanager
def _open_target(target: str, strategy: str) -> Iterator[_Target]:
    path = Path(target)
    if _is_chart(path):
        if strategy:
            raise PlanError(
                f"the strategy of the chart {target} is fixed", hint="--strategy takes a model, or its spec file"
            )
        require_chart(path)
        yield _Target(path, _read_chart_name(path), _find_project_code(path))
        return
    spec = _spec_of(path)
    if not spec.is_file():
        raise ToolError(
            f"there is no model, chart or archive {target!r}",
            hint=f"expected a chart folder, a .tgz, a model spec, or a model's name with the spec in {spec}",
        )
    if strategy:
        find_strategy(strategy)
    with tempfile.TemporaryDirectory(prefix="trainchart-") as scratch:
        yield _render_model(spec, Path(scratch), strategy)


def _is_chart(target: Path) -> bool:
    """Say whether `target` means a chart. A model's code may lie in a folder of the model's name, which is none."""
    if target.is_dir():
        return (target / "Chart.yaml").is_file() or not _spec_of(target).is_file()
    return target.name.endswith(_ARCHIVES)


def _spec_of(target: Path) -> Path:
    return target if target.suffix in (".yaml", ".yml") else Path("models") / f"{target}.yaml"


def _find_project_code(chart: Path) -> Path | None:
    """Return the code of a chart folder that lies in its own project, beside the model spec it was generated from."""
    lock = chart / LOCK_FILE
    if not lock.is_file():
        return None
    spec = parse_lock(read_text(lock)).spec.name
    for folder in chart.absolute().parents:
        if (folder / spec).is_file():
            from trainchart.actions.generate import load_model

            with suppress(TrainchartError):  # a spec that is being edited does not keep its chart from running
                return load_model(folder / spec).code
    return None


def _render_model(spec: Path, scratch: Path, strategy: str) -> _Target:
    """Generate the chart of a model spec, perhaps with another strategy, into `scratch`."""
    from trainchart.actions import generate

    model = generate.render_model_to(spec, scratch, strategy)
    return _Target(model.chart, _read_chart_name(model.chart), model.code, model.notes)


def _read_chart_name(chart: Path) -> str:
    try:
        name = parse_mapping(read_chart_files(chart)["Chart.yaml"].decode(errors="replace")).get("name")
    except (KeyError, YamlError) as err:
        raise ToolError(f"cannot read Chart.yaml of {chart}: {err}", hint="is this the chart you mean?") from err
    if not isinstance(name, str) or not name:
        raise PlanError(f"Chart.yaml of {chart} has no name")
    return name
