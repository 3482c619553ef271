"""Whether Helm reads the charts that templates of packs give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from trainchart.actions.support.models import render_plan, resolve_with_schema
from trainchart.actions.support.rendered_version import render_version, values_sets
from trainchart.errors import PlanError, Problem, SpecError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.protocol import HelmEngine
from trainchart.packs.pack import Pack
from trainchart.packs.templates import TEMPLATES, PackTemplates
from trainchart.spec.document import Document


def find_template_problems(probes: Iterable[Document], chain: tuple[Pack, ...], engine: str) -> list[Problem]:
    """Return what Helm, or trainchart itself, does not read of charts of `probes` because of the last of `chain`."""
    templates = chain[-1].templates
    if templates is None:
        return []
    helm = find_engine(engine)
    below = (*chain[:-1], replace(chain[-1], templates=None))
    for probe in probes:
        try:
            plan, schema, locks = resolve_with_schema(probe, chain)
        except (SpecError, PlanError):
            continue  # not of templates
        try:
            files = render_plan(plan, schema, chain, locks).files
        except SpecError as error:
            return list(error.problems)
        with_pack = _render(helm, files, values_sets(files))
        files = render_plan(plan, schema, below, locks).files if with_pack else {}
        sets = {values: text for values, text in values_sets(files).items() if values in with_pack}
        without = _render(helm, files, sets) if with_pack else {}
        found = [
            _explain(message, templates, str(probe.tree["strategy"]), values)
            for values, message in with_pack.items()
            if values not in without
        ]
        if found:
            return found[:1]  # what one strategy shows, others show, too
    return []


def _render(helm: HelmEngine, files: Mapping[str, bytes], sets: Mapping[str, str]) -> dict[str, str]:
    """Return what Helm says of a chart with each set of values that it does not render with."""
    renderings = render_version(helm, files, sets).renderings
    return {values: found for values, found in renderings.items() if isinstance(found, str)}


def _explain(message: str, templates: PackTemplates, strategy: str, values: str) -> Problem:
    files = [path for path, _ in templates.files if path in message]
    case = f"strategy {strategy}" + (f" and {values}" if values else "")
    where = f"{templates.place}/{files[0] if files else TEMPLATES}"
    return Problem(message, where, f"line numbers refer to the generated chart; found with {case}")
