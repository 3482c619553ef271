"""Specs of charts that are no trainings: find their family, complete their values, and render their charts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from trainchart.actions.support.models import add_lock, read_api_definitions
from trainchart.archive.lock import Source
from trainchart.errors import Problem, SpecError
from trainchart.families.family import Family, parse_family
from trainchart.families.schemas import close_schema, find_default_problems, require_values, resolve_lock
from trainchart.families.values import FamilyValues, merge_values
from trainchart.host.clock import utc_today
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.host.time_limit import TookTooLong, time_limit
from trainchart.packs.locks import LockedPath, drop_waived, find_values, make_locked_defaults, require_allowed
from trainchart.packs.pack import Pack
from trainchart.packs.templates import PackTemplates
from trainchart.plan.typed import check_types, suggest_word
from trainchart.render.chart import FAMILY, RenderedChart
from trainchart.render.family_chart import render_family_chart
from trainchart.render.narrow import narrow_family_schema, narrow_files
from trainchart.render.schema import KUBERNETES_VERSION, Schema, render_family_schema
from trainchart.resources import list_families, read_family
from trainchart.spec.chart import VALUES_KEY, ChartSpec
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
    locks: tuple[LockedPath, ...]
    """What packs lock, without what they waive for the chart today."""
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
        PlanError: a value is not what a pack locks.
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
    layers, every = _read_layers(family, packs, list(families))
    locks = drop_waived(every, chart.name, utc_today())
    values = merge_values(family.values, layers, document)
    origins = {(VALUES_KEY, *path): origin for path, origin in values.origins.items()}
    require_allowed(chart.name, {VALUES_KEY: values.tree}, origins, locks)
    _require_there(values, locks)
    definitions = read_definitions(KUBERNETES_VERSION)
    try:
        with time_limit(_VALIDATION_SECONDS):
            problems = tuple(find_default_problems(family.values, definitions))
            if problems:
                raise SpecError(f"the values of family {family.title} are not valid", problems=problems)
            schema = render_family_schema(
                chart.name, close_schema(family.values.tree[VALUES_KEY]), read_api_definitions()
            )
            require_values(values, schema, family.title)
            schema = narrow_family_schema(schema, values.tree, locks)
    except TookTooLong as error:
        hint = "simplify its patterns: one such as ^(a+)+$ may never end"
        raise SpecError(f"{family.place}: checking values against its schemas takes too long", hint=hint) from error
    return LocatedChart(spec, text, chart, family, values, schema, locks, packs)


def _require_there(values: FamilyValues, locks: tuple[LockedPath, ...]) -> None:
    """Refuse a lock on a key that no layer sets: while it is absent, the lock bounds nothing. Raises SpecError."""
    problems = tuple(
        Problem(
            f"{locked.key} is locked, and no layer sets it", str(locked.origin), "set it in the pack's defaults.yaml"
        )
        for locked in locks
        if not any(found for found in find_values({VALUES_KEY: values.tree}, locked.path))
    )
    if problems:
        raise SpecError("the policy is not valid", problems=problems)


def _read_layers(family: Family, packs: tuple[Pack, ...], known: list[str]) -> tuple[list[Document], list[LockedPath]]:
    """Return what packs say of the values of a family, the weakest first, and what they lock.

    `known` are the names of all families.

    Raises:
        SpecError: a lock is on something that is no value of the family, or of a family that is not there.
    """
    layers: list[Document] = []
    held: list[LockedPath] = []
    problems: list[Problem] = []
    for pack in packs:
        problems += (
            Problem(f"unknown family {name}", str(locks[0].origin), suggest_word(name, known))
            for name, locks in pack.policy.family_locks.items()
            if locks and name not in known
        )
        found = [resolve_lock(family.values, locked) for locked in pack.policy.family_locks.get(family.name, ())]
        problems += (each for each in found if isinstance(each, Problem))
        own = tuple(each for each in found if isinstance(each, LockedPath))
        each_layer = (pack.family_defaults.get(family.name), make_locked_defaults(own, f"pack {pack.title}"))
        layers += (layer for layer in each_layer if layer is not None)
        held += own
    if problems:
        raise SpecError("the policy is not valid", problems=tuple(problems))
    return layers, held


def render_chart_of_family(located: LocatedChart) -> RenderedChart:
    """Return all files of the chart, the lock included."""
    own = read_family(FAMILY)
    shared = {path: own[path].encode() for path in _SHARED}
    family = located.family
    layers = family_layers(family.name, located.packs)
    chart = render_family_chart(family, located.chart, located.values.tree, located.schema, shared, layers)
    chart = replace(chart, files=narrow_files(chart.files, located.locks))
    return add_lock(chart, located.spec, located.text, Source(family.name, family.sha256), located.packs)


def family_layers(family: str, packs: tuple[Pack, ...]) -> tuple[PackTemplates, ...]:
    """Return the templates that packs add to charts of a family, or change, the weakest first."""
    return tuple(pack.family_templates[family] for pack in packs if family in pack.family_templates)
