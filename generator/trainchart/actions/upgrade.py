"""Generate all charts of a project again after trainchart or a pack has changed, and say once what that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainchart.actions.diff import compare_files
from trainchart.actions.support.chart_folder import (
    PreparedChart,
    prepare_charts,
    refuse_edits,
    require_one_spec_each,
    write_chart,
)
from trainchart.actions.support.hand_edits import find_edits_in, is_generated, list_differences
from trainchart.actions.support.parallel import FEW, map_parallel
from trainchart.actions.support.project import name_model
from trainchart.actions.support.rendered_version import require_rendering
from trainchart.chart_version import version_key
from trainchart.compare.chart import OWN_VALUES, ChartChanges
from trainchart.compare.fleet import FleetChange, group_changes
from trainchart.compare.version import next_version
from trainchart.errors import Problem, RenderError, ToolError, TrainchartError
from trainchart.host.files import read_tree, write_file
from trainchart.render.chart import RenderedChart
from trainchart.spec.edit import set_version

_AT_ONCE = 10
"""Charts that a process gets at once: it reads their packs once."""
_NO_VALUES = {"": ""}


@dataclass(frozen=True)
class UpgradeOptions:
    """How to upgrade: with which engine, over edits by hand or not, and with new versions in the specs or not."""

    engine: str = "auto"
    overwrite: bool = False
    bump: bool = False


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
    prepared: Mapping[str, PreparedChart]
    """By chart: what is written."""
    specs: Mapping[Path, str] = field(default_factory=dict)
    """Specs that get another version, with their new text."""

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.changes or self.new)

    @property
    def charts(self) -> Mapping[str, RenderedChart]:
        """Return the charts as they are after the upgrade, by name."""
        return {name: each.rendered for name, each in self.prepared.items()}


def plan_upgrade(
    specs: tuple[Path, ...], charts: Path, options: UpgradeOptions, report: Callable[[int, int], None]
) -> Upgrade:
    """Return what generating the charts of `specs` again would change; nothing is written.

    `report` is called with how many of how many charts were compared.

    Raises:
        ChecksFailed: files were edited or added by hand, and `options` do not say to overwrite them.
        SpecError, PlanError: a spec or a pack is wrong.
        RenderError: charts do not render, in Jinja or in Helm.
    """
    compared = list(_compare_all(specs, charts, options, report))
    require_one_spec_each((each.chart.located.spec, each.chart.rendered.name) for each in compared)
    refuse_edits([problem for each in compared for problem in each.edits])
    broken = tuple(each.broken for each in compared if each.broken is not None)
    if broken:
        hint = "correct the pack or the spec that the message names"
        raise RenderError("charts do not render, so nothing was written", hint=hint, problems=broken)
    prepared = {each.chart.rendered.name: each.chart for each in compared}
    changes = {each.chart.rendered.name: each.changes for each in compared if each.changes is not None}
    texts = _raise_versions(changes, prepared) if options.bump else {}
    if texts:
        prepared |= {each.rendered.name: each for each in prepare_charts(tuple(texts), charts, texts)}
    new = tuple(each.chart.rendered.name for each in compared if each.is_new)
    unchanged = tuple(name for name in prepared if name not in changes and name not in new)
    return Upgrade(group_changes(changes), changes, new, unchanged, prepared, texts)


def write_upgrade(upgrade: Upgrade, charts: Path) -> None:
    """Write the charts, each in one step after its spec; a second upgrade goes on after an interruption.

    Raises:
        ToolError: a folder cannot be written.
    """
    for name, prepared in upgrade.prepared.items():
        spec = prepared.located.spec
        if spec in upgrade.specs:
            write_file(spec, upgrade.specs[spec].encode())
        if name not in upgrade.unchanged:
            write_chart(prepared, charts)


def _raise_versions(changes: Mapping[str, ChartChanges], prepared: Mapping[str, PreparedChart]) -> dict[Path, str]:
    """Return the texts of specs whose version is below the one that the changes of their chart ask for."""
    texts = {}
    for name, found in changes.items():
        located, version = prepared[name].located, next_version(found.old_version, found.bump)
        if version_key(version) > version_key(prepared[name].rendered.version):
            texts[located.spec] = set_version(located.text, version, file=str(located.spec))
    return texts


@dataclass(frozen=True)
class _Compared:
    """A chart that was rendered, and what that changes."""

    chart: PreparedChart
    is_new: bool = False
    edits: tuple[Problem, ...] = ()
    """What was edited by hand."""
    changes: ChartChanges | None = None
    """None for a chart that is new or as before, or was edited."""
    broken: Problem | None = None
    """Why Helm does not render it."""


def _compare_all(
    specs: tuple[Path, ...], charts: Path, options: UpgradeOptions, report: Callable[[int, int], None]
) -> Iterator[_Compared]:
    """Yield what each spec gives now, compared with the chart on disk; on all cores where there are many."""
    size = 1 if len(specs) <= FEW else _AT_ONCE
    tasks = [(specs[start : start + size], charts, options) for start in range(0, len(specs), size)]
    done = 0
    for some in map_parallel(_compare_some, tasks, are_many=len(specs) > FEW):
        yield from some
        done += len(some)
        report(done, len(specs))


def _compare_some(task: tuple[tuple[Path, ...], Path, UpgradeOptions]) -> list[_Compared]:
    specs, charts, options = task
    return [_compare(chart, charts / chart.rendered.name, options) for chart in prepare_charts(specs, charts)]


def _compare(chart: PreparedChart, folder: Path, options: UpgradeOptions) -> _Compared:
    files = chart.rendered.files
    if not is_generated(folder):
        return _Compared(chart, is_new=True, broken=_try_rendering(chart.rendered, options.engine))
    present = read_tree(folder)
    edits = () if options.overwrite else tuple(find_edits_in(folder, present, files, chart.located))
    if edits or not list_differences(present, files):
        return _Compared(chart, edits=edits)
    try:
        # The values of the new chart fit its schema, or it would not have been resolved.
        changes = compare_files(present, files, _NO_VALUES, engine=options.engine, validate=False)
    except TrainchartError as error:
        hint = f"to skip the comparison: trainchart generate {name_model(chart.located.spec)} --overwrite"
        raise ToolError(f"{folder} cannot be compared: {error.message}", hint=hint, problems=error.problems) from error
    refusal = (changes.refused or {}).get(OWN_VALUES, "")
    broken = Problem(f"chart {chart.rendered.name} does not render: {refusal}") if refusal else None
    if changes.not_compared:
        # Then the new chart was not rendered either.
        broken = _try_rendering(chart.rendered, options.engine)
    return _Compared(chart, changes=changes, broken=broken)


def _try_rendering(chart: RenderedChart, engine: str) -> Problem | None:
    try:
        require_rendering(chart.files, engine)
    except RenderError as error:
        return Problem(f"chart {chart.name} does not render: {error.message}")
    return None
