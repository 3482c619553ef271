"""What a local run records about itself before it starts, and what a resumed run takes over from the start before."""

from __future__ import annotations

import platform
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.archive.identity import compute_identity
from trainchart.archive.lock import hash_tree
from trainchart.errors import PlanError, ToolError
from trainchart.helm.io.choose import OWN_CHOICES
from trainchart.helm.rendering import ValueOverrides
from trainchart.host.files import read_bytes
from trainchart.host.git import read_commit
from trainchart.host.trees import walk
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.local.io.release_folder import RUN_FILE, holds_run, read_record
from trainchart.local.run_record import CodeVersion, RunRecord
from trainchart.local.summary import resume_command

_FILES_READ = 5000
_BYTES_READ = 64 * 1024 * 1024
"""Code is smaller; a folder that holds more holds data as well, and is not read for a hash."""
_PASSED_OVER = ("__pycache__", ".git", ".trainchart", ".venv", "node_modules")


def require_run_of(chart_name: str, folder: Path) -> None:
    """Refuse to continue or replace the run in `folder`, if there is one, with another model or chart.

    Raises:
        PlanError: the values and checkpoints of one model do not fit another, and --fresh would delete them.
    """
    record = read_record(folder / RUN_FILE) if holds_run(folder) else {}
    started = record.get("chartName") or chart_name
    if started != chart_name:
        raise PlanError(
            f"{folder.name} is a run of {started}, not of {chart_name}",
            hint=f"continue it: {resume_command(record, str(folder))}; or choose another name with --release",
        )


def keep_engine(kept: str, release: str) -> str:
    """Return the choice that the record of a run has kept. A record may be another's, whose program must not run here.

    Raises:
        ToolError: it names a program.
    """
    if kept and kept not in OWN_CHOICES:
        raise ToolError(
            f"the previous start of {release} used the helm program {kept}",
            hint=f"choose the program to use now: --engine {shlex.quote(kept)}, or auto",
        )
    return kept


def add_overrides(values: Mapping[str, Any], overrides: ValueOverrides, origin: str) -> ValueOverrides:
    """Return `overrides` laid over `values`."""
    if not values:
        return overrides
    return replace(overrides, files=((origin, dump_mapping(values)), *overrides.files))


def make_record(asked: RunRecord, chart: Path, code: Path) -> RunRecord:
    """Return the record of a run that starts now with this chart and code."""
    return replace(
        asked,
        chart_identity=identify_chart(chart),
        code=_find_version(code),
        started_at=time.time(),
        host=platform.node(),
    )


def identify_chart(chart: Path) -> str:
    """Return the identity of a chart; empty for one that is not shaped as trainchart packages charts."""
    with suppress(ToolError):
        return compute_identity(read_chart_files(chart))
    return ""


def _find_version(code: Path) -> CodeVersion:
    commit = read_commit(code)
    files = _read_code(code)
    return CodeVersion(
        folder=str(code),
        commit=commit.commit if commit else "",
        is_dirty=commit is not None and commit.is_dirty,
        sha256="" if files is None else hash_tree(files),
    )


def _read_code(folder: Path) -> dict[str, bytes] | None:
    """Return the files of a code folder by relative path; None where there are too many, or one cannot be read."""
    files: dict[str, bytes] = {}
    left = _BYTES_READ
    for parent, folders, names in walk(folder):
        folders[:] = [name for name in folders if name not in _PASSED_OVER]
        for path in (Path(parent, name) for name in names):
            if not path.is_file():
                continue
            try:
                content = read_bytes(path, limit=left)
            except ToolError:
                return None
            left -= len(content)
            if len(files) == _FILES_READ:
                return None
            files[path.relative_to(folder).as_posix()] = content
    return files
