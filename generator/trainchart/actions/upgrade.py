"""Generate all charts of a project again after trainchart or a pack has changed, and say once what that changes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.diff import compare_files
from trainchart.actions.support.chart_folder import list_differing_files, require_unedited, write_charts
from trainchart.actions.support.specs import load_specs, render_spec
from trainchart.archive.lock import LOCK_FILE, name_locked_model, parse_lock
from trainchart.compare.chart import ChartChanges
from trainchart.compare.fleet import FleetChange, group_changes
from trainchart.errors import ToolError, TrainchartError
from trainchart.host.files import read_tree

_FEW = 4
"""Charts that are compared sooner than other processes start."""
_NO_VALUES = {"": ""}

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Upgrade:
    """What generating the charts of a project again changes."""

    groups: tuple[FleetChange, ...]
    """Each kind of change once."""
    changes: Mapping[str, ChartChanges]
    """By chart; those that nothing but their lock changes in have empty changes."""
    new: tuple[str, ...]
    """Charts that were not there before."""
    unchanged: tuple[str, ...]

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.changes or self.new)


def plan_upgrade(
    specs: tuple[Path, ...], charts: Path, *, engine: str, overwrite: bool, report: Callable[[int, int], None]
) -> Upgrade:
    """Return what generating the charts of `specs` again would change; nothing is written.

    `report` is called with how many of how many charts were compared.

    Raises:
        ChecksFailed: files were edited or added by hand, and `overwrite` is off.
        SpecError, PlanError: a spec or a pack is wrong.
        RenderError: a chart does not render.
    """
    rendered = {chart.name: chart for chart in map(render_spec, load_specs(specs))}
    if not overwrite:
        require_unedited(rendered.values(), charts)
    new = tuple(name for name in rendered if not (charts / name / LOCK_FILE).is_file())
    pairs: dict[str, tuple[Files, Files]] = {}
    for name, chart in rendered.items():
        if name not in new and list_differing_files(charts / name, chart.files):
            pairs[name] = (read_tree(charts / name), chart.files)
    changes = _compare(pairs, charts, engine, report)
    unchanged = tuple(name for name in rendered if name not in pairs and name not in new)
    return Upgrade(group_changes(changes), changes, new, unchanged)


def write_upgrade(specs: tuple[Path, ...], charts: Path, *, overwrite: bool) -> None:
    """Write the charts of `specs`; each chart is replaced in one step, and a second call goes on after an interruption.

    Raises:
        ChecksFailed, SpecError, ToolError: as generate_charts does.
    """
    write_charts(specs, charts, overwrite=overwrite, beside={})


def _compare(
    pairs: Mapping[str, tuple[Files, Files]], charts: Path, engine: str, report: Callable[[int, int], None]
) -> dict[str, ChartChanges]:
    """Compare old and new files of charts, on all cores where there are many."""
    folders = [charts / name for name in pairs]
    arguments = (folders, pairs.values(), [engine] * len(pairs))
    if len(pairs) <= _FEW:
        return _collect(pairs, map(_compare_pair, *arguments), report)
    workers = min(len(pairs), len(os.sched_getaffinity(0)))
    # Not by fork: Helm's library has threads of its own.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        return _collect(pairs, pool.map(_compare_pair, *arguments), report)


def _collect(
    names: Collection[str], found: Iterable[ChartChanges], report: Callable[[int, int], None]
) -> dict[str, ChartChanges]:
    changes: dict[str, ChartChanges] = {}
    for name, each in zip(names, found, strict=True):
        changes[name] = each
        report(len(changes), len(names))
    return changes


def _compare_pair(folder: Path, pair: tuple[Files, Files], engine: str) -> ChartChanges:
    try:
        return compare_files(*pair, _NO_VALUES, engine=engine)
    except TrainchartError as error:
        lock = parse_lock(pair[0][LOCK_FILE].decode(errors="replace"))
        hint = f"to do without the comparison: trainchart generate {name_locked_model(lock)} --overwrite"
        raise ToolError(f"{folder} cannot be compared: {error.message}", hint=hint, problems=error.problems) from error
