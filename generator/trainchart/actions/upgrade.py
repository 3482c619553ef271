"""Generate all charts of a project again after trainchart or a pack has changed, and say once what that changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trainchart.actions.diff import compare_files
from trainchart.actions.support.chart_folder import (
    PreparedChart,
    prepare_charts,
    require_one_spec_each,
    require_unedited,
    write_chart,
)
from trainchart.actions.support.hand_edits import list_differing_files
from trainchart.actions.support.parallel import map_parallel
from trainchart.actions.support.rendered_version import require_rendering
from trainchart.archive.lock import LOCK_FILE, name_locked_model, parse_lock
from trainchart.chart_version import version_key
from trainchart.compare.chart import OWN_VALUES, ChartChanges
from trainchart.compare.fleet import FleetChange, group_changes
from trainchart.compare.version import next_version
from trainchart.errors import Problem, RenderError, ToolError, TrainchartError
from trainchart.host.files import read_tree, write_file
from trainchart.render.chart import RenderedChart
from trainchart.spec.edit import set_version

_NO_VALUES = {"": ""}

Files = Mapping[str, bytes]


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
    made = prepare_charts(specs, charts)
    require_one_spec_each((each.located.spec, each.rendered.name) for each in made)
    if not options.overwrite:
        require_unedited(made, charts)
    prepared = {each.rendered.name: each for each in made}
    new = tuple(name for name in prepared if not (charts / name / LOCK_FILE).is_file())
    pairs: dict[str, tuple[Files, Files]] = {}
    for name, chart in prepared.items():
        if name not in new and list_differing_files(charts / name, chart.rendered.files):
            pairs[name] = (read_tree(charts / name), chart.rendered.files)
    changes = _compare(pairs, charts, options.engine, report)
    # Where the present chart does not render, the new one was not rendered either.
    untried = [*new, *(name for name, found in changes.items() if found.not_compared)]
    _require_renderings(changes, {name: prepared[name].rendered.files for name in untried}, options.engine)
    texts = _raise_versions(changes, prepared) if options.bump else {}
    if texts:
        prepared |= {each.rendered.name: each for each in prepare_charts(tuple(texts), charts, texts)}
    unchanged = tuple(name for name in prepared if name not in pairs and name not in new)
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


def _compare(
    pairs: Mapping[str, tuple[Files, Files]], charts: Path, engine: str, report: Callable[[int, int], None]
) -> dict[str, ChartChanges]:
    """Compare old and new files of charts."""
    tasks = [(charts / name, pair, engine) for name, pair in pairs.items()]
    changes: dict[str, ChartChanges] = {}
    for name, each in zip(pairs, map_parallel(_compare_pair, tasks), strict=True):
        changes[name] = each
        report(len(changes), len(tasks))
    return changes


def _compare_pair(task: tuple[Path, tuple[Files, Files], str]) -> ChartChanges:
    folder, pair, engine = task
    try:
        # The values of the new chart fit its schema, or it would not have been resolved.
        return compare_files(*pair, _NO_VALUES, engine=engine, validate=False)
    except TrainchartError as error:
        lock = parse_lock(pair[0][LOCK_FILE].decode(errors="replace"))
        hint = f"to do without the comparison: trainchart generate {name_locked_model(lock)} --overwrite"
        raise ToolError(f"{folder} cannot be compared: {error.message}", hint=hint, problems=error.problems) from error


def _require_renderings(changes: Mapping[str, ChartChanges], untried: Mapping[str, Files], engine: str) -> None:
    """Refuse charts that Helm does not render: those of `changes`, and `untried` ones. Raises RenderError with all."""
    problems = [
        Problem(f"chart {name} does not render: {found.refused[OWN_VALUES]}")
        for name, found in changes.items()
        if found.refused and OWN_VALUES in found.refused
    ]
    tasks = [(name, files, engine) for name, files in untried.items()]
    problems += [problem for problem in map_parallel(_try_rendering, tasks) if problem is not None]
    if problems:
        raise RenderError(
            "charts would not render, and nothing was written",
            hint="correct the pack or the spec that the message names",
            problems=tuple(problems),
        )


def _try_rendering(task: tuple[str, Files, str]) -> Problem | None:
    name, files, engine = task
    try:
        require_rendering(files, engine)
    except RenderError as error:
        return Problem(f"chart {name} does not render: {error.message}")
    return None
