"""Charts that were generated before, and are still what their specs give: there is nothing to do for them.

What a chart follows from is its spec, the project file, packs, the names and dates of the files of the code folder, and
trainchart itself. The chart on disk is compared by content, so an edit is never taken for what was generated.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from trainchart.actions.support.pack_files import PACK_LOCK_FILE, VENDOR, read_pack_files
from trainchart.actions.support.project import project_of
from trainchart.errors import Problem, ToolError
from trainchart.host.clock import utc_today
from trainchart.host.files import read_text, read_tree, tidy_tree
from trainchart.host.result_cache import ResultCache, hash_inputs, hash_listing
from trainchart.local.io.code_index import remember_code

_KIND = "charts"


@dataclass(frozen=True)
class GeneratedChart:
    """A chart on disk; `changed` tells which of its files were not there, or not so, before."""

    name: str
    version: str
    chart: Path
    code: Path | None
    """The folder of the training code; None for a chart that is no training."""
    changed: tuple[str, ...]
    notes: tuple[Problem, ...]
    """What the author should know of, such as a role that the strategy does not have."""
    gives_image_the_token: bool = False
    """Whether the run controller, the only pod with a token, runs the training image."""
    is_new: bool = False
    """Whether there was no chart before."""


@dataclass(frozen=True)
class _Known:
    """What generating a spec gave."""

    chart: GeneratedChart
    files: Mapping[str, str]
    """sha256 of each file of the chart, by path."""
    authored: frozenset[str]
    """Files in the folder of the chart that its authors write, and generating leaves alone."""
    repository: str
    """Of the image, to which the code folder is remembered."""
    packs: tuple[str, ...]
    """The folders and archives of the packs."""
    day: date | None
    """Today, where a pack has waivers, which end; None where the chart does not depend on it."""


def recall_chart(spec: Path, charts: Path) -> GeneratedChart | None:
    """Return the chart of `spec` if it is in `charts`, and as it would be generated now; None where that is unknown."""
    found = ResultCache(_KIND, _Known).recall(_subject(spec, charts))
    if found is None:
        return None
    inputs, known = found
    if known.day not in (None, utc_today()):
        return None
    chart = known.chart
    if chart.code is None:
        return None
    try:
        now = hash_chart_inputs(spec, read_text(spec), charts, chart.code, tuple(map(_hash_pack, known.packs)))
        if not now or inputs != now or chart.chart.is_symlink() or not chart.chart.is_dir():
            return None
        present = read_tree(chart.chart)
    except ToolError:
        return None
    if {path: _hash_file(content) for path, content in present.items() if path not in known.authored} != known.files:
        return None
    tidy_tree(chart.chart)
    remember_code(known.repository, chart.code)
    return chart


def remember_chart(
    chart: GeneratedChart,
    files: Mapping[str, bytes],
    *,
    spec: Path,
    inputs: str,
    charts: Path,
    authored: frozenset[str],
    repository: str,
    packs: tuple[str, ...],
    day: date | None,
) -> None:
    """Remember that `inputs`, hashed before anything was made of them, give `chart` of these `files`."""
    if inputs:
        hashes = {path: _hash_file(content) for path, content in files.items()}
        known = _Known(replace(chart, changed=(), is_new=False), hashes, authored, repository, packs, day)
        ResultCache(_KIND, _Known).remember(_subject(spec, charts), inputs, known)


def _subject(spec: Path, charts: Path) -> str:
    return f"{spec.absolute()}\0{charts.absolute()}"


def hash_chart_inputs(
    spec: Path,
    text: str,
    charts: Path,
    code: Path,
    packs: tuple[str, ...],
    hash_folder: Callable[[Path], str] = hash_listing,
) -> str:
    """Return one hash of all that a chart follows from, and of where names in notes start; empty if unknown.

    `packs` are the hashes of the packs' files. `hash_folder` hashes the code folder and the vendored packs.
    """
    project = project_of(spec)
    listing = hash_folder(code)
    lock = project.folder / PACK_LOCK_FILE
    locked = read_text(lock) if lock.is_file() else ""
    vendored = hash_folder(project.folder / VENDOR)
    # A link on the way to code or chart is refused where it leads out of the project.
    places = (project.file, project.folder, os.path.realpath(code), os.path.realpath(charts), Path.cwd(), spec, charts)
    return hash_inputs(text, listing, locked, vendored, *packs, *map(str, places)) if listing else ""


def _hash_pack(path: str) -> str:
    from trainchart.archive.lock import hash_tree

    return hash_tree(read_pack_files(Path(path)))


def _hash_file(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
