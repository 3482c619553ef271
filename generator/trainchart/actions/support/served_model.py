"""Finds the model that `trainchart serve` is to serve: the export of a local run, or that of a chart."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import copy2, disk_usage
from typing import Any

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.cluster_access import Place
from trainchart.actions.support.given_values import read_overrides
from trainchart.actions.support.project import find_project, list_specs
from trainchart.actions.support.run_lookup import RunAddress, find_local_run
from trainchart.actions.support.target import is_chart
from trainchart.checkpoints.saved_model import RECORD_FILE, SUMS_FILE
from trainchart.errors import PlanError, ToolError, UsageError
from trainchart.helm.io.choose import find_engine
from trainchart.host.files import read_text
from trainchart.host.trees import walk
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.local.io.release_folder import RUN_FILE, holds_run, read_record
from trainchart.local.io.release_lock import is_running
from trainchart.serving.chart_server import FAMILY, ChartServer, read_chart_server
from trainchart.serving.export import MARK, Export, choose_export, is_in_place, read_step
from trainchart_runtime.contract import FAMILY_ANNOTATION

_CLAIMS = "claims"
_RELEASE = "served"
"""Name of the release for which a chart is rendered."""
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
"""Of a model, as in charts of the family model-server."""
_RECORD_LIMIT = 1024 * 1024
_MOST_FILES = 100_000
"""Of an export, and of folders that are searched for exports."""


@dataclass(frozen=True)
class ServeRequest:
    """What the user asked for."""

    target: str
    """A local run, a chart folder or an archive; empty: the run that was started last."""
    runs_folder: Path
    step: int | None = None
    model: Path | None = None
    """The export to serve in the place of the chart's."""
    values: tuple[Path, ...] = ()
    sets: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedModel:
    """A model, and how its server is started."""

    name: str
    version: int
    source: str
    """Folder or URI of the export."""
    origin: str
    """What it is, in words."""
    content: str = ""
    """The hash that it must have; empty where nothing pins it."""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()


def find_model(request: ServeRequest) -> ServedModel:
    """Return the model that is meant. Raises TrainchartError."""
    target = request.target
    is_run = target != "" and "/" not in target and holds_run(request.runs_folder / target)
    if target and not is_run and ("/" in target or is_chart(Path(target))):
        if request.step is not None:
            raise UsageError("--step is for runs: a chart says which version it serves")
        return _find_in_chart(request)
    if request.model or request.values or request.sets:
        raise UsageError("--model, --values and --set are for charts: a run has its own export")
    return _find_in_run(request)


def _find_in_run(request: ServeRequest) -> ServedModel:
    folder = _find_run(request)
    record = read_record(folder / RUN_FILE)
    exports = list(_list_exports(folder, record))
    export = choose_export(exports, request.step, folder.name, goes_on=is_running(folder.parent, folder.name))
    chart = str(record.get("chartName") or str(record.get("chart", "")).rpartition("-")[0])
    at = f" of step {export.step}" if export.step is not None else ""
    is_listed = (Path(export.folder) / SUMS_FILE).is_file()
    note = "the export has no SHA256SUMS, so its files cannot be verified"
    return ServedModel(
        name=chart if _NAME.fullmatch(chart) else folder.name,
        version=export.version,
        source=export.folder,
        origin=f"the export{at} of the run {folder.name}",
        notes=() if is_listed else (note,),
    )


def _find_run(request: ServeRequest) -> Path:
    address = RunAddress(request.target, Place(), request.runs_folder)
    try:
        folder = find_local_run(address)
    except ToolError as error:
        raise _explain_absent(request.target, error) from error
    if folder is None:
        absent = ToolError(
            f"there is no local run {request.target!r} in {request.runs_folder}",
            hint="for a release on a cluster, use its model server: kubectl port-forward service/NAME 8501",
        )
        raise _explain_absent(request.target, absent)
    return folder


def _explain_absent(name: str, error: ToolError) -> ToolError:
    """Return the error with a better hint where `name` is that of a model or of a chart."""
    if name and (find_project().charts / name).is_dir() and _read_family(find_project().charts / name) == FAMILY:
        chart = os.path.relpath(find_project().charts / name)
        return ToolError(error.message, hint=f"serve the chart: trainchart serve {shlex.quote(chart)}")
    if name in (spec.stem for spec in list_specs()):
        return ToolError(
            error.message,
            hint=f"{name} is a model: train it with trainchart run {shlex.quote(name)}, then serve that run",
        )
    return error


def _list_exports(folder: Path, record: Mapping[str, Any]) -> Iterator[Export]:
    """Yield the exports in the claims of a run, also in folders that the user has chosen for them."""
    options = record.get("options")
    chosen = options.get("claims") if isinstance(options, Mapping) else None
    started_at = record.get("startedAt")
    since = started_at if isinstance(started_at, int | float) else 0.0
    places = {str(folder / _CLAIMS): 0.0}
    # In a folder of the user's own, only what is newer is the run's.
    own = (str(path) for path in (chosen.values() if isinstance(chosen, Mapping) else ()))
    places |= {path: since for path in own if "\0" not in path}
    for place, oldest in places.items():
        for parent, _, names in itertools.islice(walk(place), _MOST_FILES):
            if MARK not in names or not is_in_place(parent):
                continue
            # A training that goes on may replace it just now.
            with suppress(OSError):
                times = Path(parent, MARK).lstat()
                # A copy keeps the time of its original, and only the second one says when it came here.
                if max(times.st_mtime, times.st_ctime) >= oldest:
                    step = read_step(parent, _read_export_record(Path(parent, RECORD_FILE)))
                    yield Export(parent, step, times.st_mtime)


def _read_export_record(path: Path) -> Mapping[str, Any]:
    try:
        record = parse_json(read_text(path, limit=_RECORD_LIMIT, follow_links=False))
    except (ToolError, ValueError):
        return {}
    return record if isinstance(record, Mapping) else {}


def _find_in_chart(request: ServeRequest) -> ServedModel:
    chart = Path(request.target)
    family = _read_family(chart)
    if family != FAMILY:
        kind = f"of the family {family}" if family else "for training, and serves nothing"
        hint = "give a chart of the family model-server, or a run: trainchart run, then trainchart serve RUN"
        raise PlanError(f"the chart {chart} is {kind}", hint=hint)
    overrides = read_overrides(request.values, request.sets, (), ())
    server = read_chart_server(find_engine("auto").render(chart, release=_RELEASE, overrides=overrides))
    return ServedModel(
        name=server.model_name,
        version=server.version,
        source=_find_source(request, server),
        origin=f"version {server.version} of the chart {chart}",
        content=server.content,
        arguments=server.arguments,
        environment=server.environment,
        notes=server.notes,
    )


def _read_family(chart: Path) -> str:
    try:
        document = parse_mapping(read_chart_files(chart).get("Chart.yaml", b"").decode(errors="replace"))
    except YamlError as error:
        raise ToolError(
            f"cannot read Chart.yaml of {chart}: {error}", hint="is this the chart that you mean?"
        ) from error
    annotations = document.get("annotations")
    return str(annotations.get(FAMILY_ANNOTATION, "")) if isinstance(annotations, Mapping) else ""


def _find_source(request: ServeRequest, server: ChartServer) -> str:
    """Return where the model of a chart is on this machine. Raises ToolError where it is not."""
    hint = f"name a copy of the export: trainchart serve {shlex.quote(str(request.target))} --model FOLDER"
    if request.model is not None:
        if not (request.model / MARK).is_file():
            raise ToolError(f"--model: {request.model} is not an export: it has no {MARK}")
        return str(request.model.absolute())
    if not server.claim:
        if "://" in server.path or (Path(server.path) / MARK).is_file():
            return server.path
        raise ToolError(f"the model of the chart is in its image, at {server.path}, not on this machine", hint=hint)
    for claim in request.runs_folder.glob(f"*/{_CLAIMS}/{server.claim}"):
        if holds_run(claim.parent.parent) and (claim / server.path / MARK).is_file():
            return str((claim / server.path).absolute())
    raise ToolError(
        f"the model of the chart is in the claim {server.claim}, which no local run in {request.runs_folder} has",
        hint=hint,
    )


def advise_on_problem(model: ServedModel, problem: str) -> str:
    """Return what to do where the server refuses a model, for the reason that it gives."""
    if model.content and "is pinned" in problem:
        return "name the export that the chart pins, or pin another one: --set model.content=sha256:…"
    if SUMS_FILE in problem or "is damaged" in problem:
        return f"the files in {model.source} have changed since the export: copy it again, or train again"
    return "the model needs the TensorFlow that it was trained with, and everything its graph uses; see --verbose"


def copy_model(model: ServedModel, target: Path) -> None:
    """Copy the export to the new folder `target`, as pods do: what is served cannot change then. Raises ToolError."""
    if "://" in model.source:
        _download(model, target)
        return
    try:
        source = Path(model.source).resolve()
        sizes = _list_files(source)
        target.mkdir(parents=True)
        needed, free = sum(sizes.values()), disk_usage(target).free
        if needed > free:
            raise OSError(f"it has {needed} bytes, and {free} are free")
        for file in sizes:
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy2(file, copy)
    except OSError as error:
        hint = "try again; TMPDIR=FOLDER sets another place for the copy"
        raise ToolError(f"cannot copy {model.source} to {target}: {error.strerror or error}", hint=hint) from error


def _list_files(source: Path) -> dict[Path, int]:
    """Return the files of an export with their sizes; a training wrote it, so no link in it may lead elsewhere.

    Raises:
        ToolError: it holds what is no file of its own, or very many files.
        OSError: it cannot be read.
    """
    found: dict[Path, int] = {}

    def refuse(error: OSError) -> None:
        raise error

    for parent, folders, names in walk(source, on_error=refuse):
        entries = [Path(parent, name) for name in names]
        linked = [path for path in map(Path(parent).joinpath, folders) if path.is_symlink()]
        for path in (*entries, *linked):
            status = path.stat()
            if not stat.S_ISREG(status.st_mode) or not path.resolve().is_relative_to(source):
                raise ToolError(
                    f"cannot copy the export: {path} is not a regular file, or is a link that leads elsewhere",
                    hint="copy the export with cp -rL; for a chart, serve the copy with --model",
                )
            found[path] = status.st_size
        if len(found) > _MOST_FILES:
            raise ToolError(f"cannot copy the export {source}: it has more than {_MOST_FILES} files")
    return found


def _download(model: ServedModel, target: Path) -> None:
    command = [sys.executable, "-P", "-m", "trainchart_serving.fetch", model.source, str(target), model.content]
    environment = {**os.environ, **(model.environment or {})}
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise ToolError(last.removeprefix("error: ") or f"cannot copy the export {model.source}")
