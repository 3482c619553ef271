"""Specs of charts that are no trainings: find their family, complete their values, and render their charts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.support.models import add_lock
from trainchart.archive.lock import Source
from trainchart.errors import Problem, SpecError
from trainchart.families.family import Family, parse_family
from trainchart.families.schemas import close_schema, find_default_problems, require_values
from trainchart.families.values import VALUES_KEY, FamilyValues, merge_values
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.host.time_limit import TookTooLong, time_limit
from trainchart.packs.pack import Pack
from trainchart.plan.typed import check_types, suggest_word
from trainchart.render.chart import FAMILY, RenderedChart
from trainchart.render.family_chart import render_family_chart
from trainchart.render.schema import KUBERNETES_VERSION, Schema, render_family_schema
from trainchart.resources import list_families, read_family
from trainchart.spec.chart import ChartSpec
from trainchart.spec.document import Document

_VALIDATION_SECONDS = 10.0
"""Processor time; patterns of packs may never end."""
_SHARED = (".helmignore",)
"""Files of the family of models that every chart has."""


@dataclass(frozen=True)
class LocatedChart:
    """A spec of a chart that is no training, read and completed."""

    spec: Path
    text: str
    chart: ChartSpec
    family: Family
    values: FamilyValues
    schema: Schema
    """The JSON Schema of the chart's values."""
    packs: tuple[Pack, ...]
    """The layers between the family's defaults and the spec, the weakest first."""

    @property
    def name(self) -> str:
        return self.chart.name


def find_families(packs: tuple[Pack, ...]) -> dict[str, Family]:
    """Return the families of trainchart and of `packs` by name, each with the name of what brings it.

    Raises:
        SpecError: two have the same name.
    """
    found = {}
    for name in list_families():
        files = {path: text.encode() for path, text in read_family(name).items()}
        found[name] = parse_family(files, name, f"trainchart/chart-templates/{name}", "trainchart")
    for pack in packs:
        for family in pack.families:
            if family.name in found or family.name == FAMILY:
                known = found[family.name].place if family.name in found else "trainchart's own"
                hint = "rename one of them"
                raise SpecError(f"two families have the name {family.name}: {known} and {family.place}", hint=hint)
            found[family.name] = family
    return found


def complete_chart(spec: Path, text: str, document: Document, packs: tuple[Pack, ...]) -> LocatedChart:
    """Return a spec of a chart with the values that its family and `packs`, the weakest first, give it.

    Raises:
        SpecError: there is no such family, or what the spec or a pack says is wrong; every problem with its line.
    """
    chart, problems = check_types(document.tree, document.origins, ChartSpec, {})
    if chart is None:
        raise SpecError("the spec is not valid", problems=problems)
    families = find_families(packs)
    if chart.family not in families:
        hint = suggest_word(chart.family, list(families))
        problem = Problem(f"unknown family {chart.family}", str(document.origins["family",]), hint)
        raise SpecError("the spec is not valid", problems=(problem,))
    family = families[chart.family]
    layers = [pack.family_defaults[family.name] for pack in packs if family.name in pack.family_defaults]
    values = merge_values(family.values, layers, document)
    definitions = read_definitions(KUBERNETES_VERSION)
    try:
        with time_limit(_VALIDATION_SECONDS):
            problems = tuple(find_default_problems(family.values, definitions))
            if problems:
                raise SpecError(f"the values of family {family.title} are not valid", problems=problems)
            schema = render_family_schema(chart.name, close_schema(family.values.tree[VALUES_KEY]), definitions)
            require_values(values, schema, family.title)
    except TookTooLong as error:
        hint = "simplify its patterns: one such as ^(a+)+$ may never end"
        raise SpecError(f"{family.place}: checking values against its schemas takes too long", hint=hint) from error
    return LocatedChart(spec, text, chart, family, values, schema, packs)


def render_chart_of_family(located: LocatedChart) -> RenderedChart:
    """Return all files of the chart, the lock included."""
    own = read_family(FAMILY)
    shared = {path: own[path].encode() for path in _SHARED}
    family = located.family
    chart = render_family_chart(family, located.chart, located.values.tree, located.schema, shared)
    return add_lock(chart, located.spec, located.text, Source(family.name, family.sha256), located.packs)
