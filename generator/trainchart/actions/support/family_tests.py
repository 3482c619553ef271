"""Whether the charts that a family makes of its tests render, and pass every check."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainchart.actions.check import check_chart
from trainchart.actions.support.family_charts import complete_chart, find_families, render_chart_of_family
from trainchart.actions.support.rendered_version import render_version, values_sets
from trainchart.check.finding import Severity
from trainchart.errors import Problem, SpecError
from trainchart.families.family import TESTS, Family
from trainchart.families.values import VALUES_KEY
from trainchart.helm.io.choose import find_engines
from trainchart.helm.rendering import Rendering
from trainchart.host.files import write_tree
from trainchart.packs.pack import Pack
from trainchart.packs.templates import TEMPLATES
from trainchart.plan.typed import suggest_word
from trainchart.spec.document import parse_document


def find_family_problems(chain: tuple[Pack, ...], engines: tuple[str, ...]) -> list[Problem]:
    """Return what is wrong with charts of the families that the last pack of `chain` brings, or has defaults for.

    Raises:
        SpecError: two families have the same name.
        ToolError: there is no such Helm engine as one of `engines`.
    """
    pack, families = chain[-1], find_families(chain)
    found = [
        Problem(f"unknown family {name}", str(defaults.origins[VALUES_KEY,]), suggest_word(name, list(families)))
        for name, defaults in pack.family_defaults.items()
        if name not in families
    ]
    names = dict.fromkeys([*(family.name for family in pack.families), *pack.family_defaults])
    for name in names:
        found += _find_problems(families[name], chain, engines) if name in families else ()
    return found


def _find_problems(family: Family, chain: tuple[Pack, ...], engines: tuple[str, ...]) -> Iterator[Problem]:
    if not family.tests:
        hint = f"add {TESTS}/NAME.yaml, the spec of a chart: pack check renders and checks it"
        yield Problem(f"the family {family.name} has no tests", family.place, hint)
    for place, text in family.tests.items():
        try:
            spec = parse_document(text, file=place, layer="test")
            if spec.tree.get("family") != family.name:
                yield Problem("is not a chart of this family", place, f"write family: {family.name}")
                continue
            located = complete_chart(Path(place), text, spec, chain)
            files = render_chart_of_family(located).files
        except SpecError as error:
            yield from error.problems or (Problem(error.message, place, error.hint),)
            continue
        with tempfile.TemporaryDirectory(prefix="trainchart-") as scratch:
            folder = Path(scratch, located.name)
            write_tree(folder, files, is_ours=lambda path: False)
            found = check_chart(folder, engine=engines[0], packs=chain).findings
        for finding in (finding for finding in found if finding.severity is Severity.error):
            case = f" with {finding.values}" if finding.values else ""
            where = f"{family.place}/{finding.path}" + (f":{finding.line}" if finding.line else "")
            yield Problem(f"{finding.rule}: {finding.message}{case}", where, finding.hint or f"found with {place}")
        yield from _find_differences(files, family, place, engines)


def _find_differences(
    files: Mapping[str, bytes], family: Family, place: str, engines: tuple[str, ...]
) -> Iterator[Problem]:
    """Yield the objects that two Helms render differently."""
    first, *others = find_engines(engines)
    sets = values_sets(files)
    known = render_version(first, files, sets).renderings if others else {}
    for other in others:
        for values, rendering in render_version(other, files, sets).renderings.items():
            case = f" with {values}" if values else ""
            for source, what in _compare(known[values], rendering):
                message = f"{what}{case} differs between {first.name} and {other.name}"
                yield Problem(message, f"{family.place}/{source}", f"found with {place}")


def _compare(one: Rendering | str, other: Rendering | str) -> Iterator[tuple[str, str]]:
    """Yield template and name of what only one of two renderings has."""
    if isinstance(one, str) or isinstance(other, str):
        errors = [each for each in (one, other) if isinstance(each, str)]
        if len(errors) == 1:
            yield TEMPLATES, f"whether the chart renders ({errors[0]})"
        return
    changed = [each for each in one.manifests if each not in other.manifests]
    changed += [each for each in other.manifests if each not in one.manifests]
    yield from dict.fromkeys((each.source, f"{each.kind} {each.name}") for each in changed)
