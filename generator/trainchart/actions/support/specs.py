"""Specs on disk, of models and of charts of other families: read and complete them, and render their charts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from trainchart.actions.support.models import CHART_KIND, SPEC_LIMIT, LocatedModel, render_model, resolve_model
from trainchart.actions.support.packs import read_packs
from trainchart.actions.support.project import project_of
from trainchart.archive.lock import WAIVER_FILE
from trainchart.host.files import read_inside, read_text
from trainchart.packs.pack import Pack
from trainchart.render.chart import RenderedChart
from trainchart.spec.document import parse_document

if TYPE_CHECKING:
    from trainchart.actions.support.family_charts import LocatedChart

    LocatedSpec = LocatedModel | LocatedChart


def load_spec(spec: Path) -> LocatedSpec:
    """Read and complete a spec, as `load_specs` does."""
    return load_specs((spec,))[0]


def load_specs(specs: tuple[Path, ...], texts: Mapping[Path, str] = MappingProxyType({})) -> list[LocatedSpec]:
    """Read and complete specs; packs are read once. `texts` are read in place of what is on disk.

    Raises:
        ToolError: a file, or a pack, cannot be read.
        SpecError, PlanError: what a spec or a pack says is wrong; every problem with its line.
    """
    packs: dict[Path, tuple[Pack, ...]] = {}
    located: list[LocatedSpec] = []
    for spec in specs:
        project = project_of(spec)
        if project.folder not in packs:
            packs[project.folder] = read_packs(project)
        text = texts[spec] if spec in texts else read_text(spec, limit=SPEC_LIMIT)
        document = parse_document(text, file=str(spec), layer="model spec")
        if document.tree.get("kind") == CHART_KIND:
            # Imported where it is needed: most projects have models alone.
            from trainchart.actions.support.family_charts import complete_chart

            located.append(complete_chart(spec, text, document, packs[project.folder]))
        else:
            located.append(resolve_model(spec, text, document, project, packs[project.folder]))
    return located


def render_spec(located: LocatedSpec) -> RenderedChart:
    """Return all files of the chart of a spec, the lock included."""
    if isinstance(located, LocatedModel):
        return render_model(located)
    from trainchart.actions.support.family_charts import render_chart_of_family

    return render_chart_of_family(located)


def render_with_waivers(located: LocatedSpec) -> RenderedChart:
    """Return all files of the chart of a spec, and the waivers that its authors have put into its folder."""
    chart = render_spec(located)
    waivers = project_of(located.spec).charts / chart.name / WAIVER_FILE
    if not waivers.is_file():
        return chart
    return replace(chart, files={**chart.files, WAIVER_FILE: read_inside(waivers, waivers.parent)})
