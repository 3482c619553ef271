"""Whether the charts that a family makes of its tests render, and pass every check."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from trainchart.actions.check import check_chart
from trainchart.actions.support.family_charts import complete_chart, find_families, render_chart_of_family
from trainchart.actions.support.rendered_version import render_version, values_sets
from trainchart.check.finding import Severity
from trainchart.errors import PlanError, Problem, SpecError
from trainchart.families.family import TESTS, Family
from trainchart.helm.io.choose import find_engines
from trainchart.helm.rendering import Rendering
from trainchart.host.files import write_tree
from trainchart.packs.pack import Pack
from trainchart.packs.templates import TEMPLATES
from trainchart.plan.typed import suggest_word
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import Origin, parse_document


class FamilyTest(NamedTuple):
    """The chart that a family makes of one of its tests."""

    family: Family
    place: str
    """The file of its spec."""
    name: str
    files: Mapping[str, bytes]


def render_tests(chain: tuple[Pack, ...]) -> tuple[list[FamilyTest], list[Problem]]:
    """Return the tests of the families that the last pack of `chain` brings, or says something of, and what is wrong.

    Raises:
        SpecError: two families have the same name.
    """
    pack, families = chain[-1], find_families(chain)
    named = {name: defaults.origins[VALUES_KEY,] for name, defaults in pack.family_defaults.items()}
    named |= {name: Origin(pack.title, templates.place, 1) for name, templates in pack.family_templates.items()}
    named |= {name: locks[0].origin for name, locks in pack.policy.family_locks.items() if locks}
    problems = [
        Problem(f"unknown family {name}", str(origin), suggest_word(name, list(families)))
        for name, origin in named.items()
        if name not in families
    ]
    tests = []
    names = dict.fromkeys([*(family.name for family in pack.families), *named])
    for family in (families[name] for name in names if name in families):
        if not family.tests:
            hint = f"add {TESTS}/NAME.yaml, the spec of a chart: pack check renders and checks it"
            problems.append(Problem(f"the family {family.name} has no tests", family.place, hint))
        for place, text in family.tests.items():
            try:
                tests.append(_render_test(family, place, text, chain))
            except (SpecError, PlanError) as error:
                problems += error.problems or (Problem(error.message, place, error.hint),)
    return tests, problems


def _render_test(family: Family, place: str, text: str, chain: tuple[Pack, ...]) -> FamilyTest:
    spec = parse_document(text, file=place, layer="test")
    if spec.tree.get("family") != family.name:
        raise SpecError(f"{place} is not a chart of this family", hint=f"write family: {family.name}")
    located = complete_chart(Path(place), text, spec, chain)
    return FamilyTest(family, place, located.name, render_chart_of_family(located).files)


def find_family_problems(chain: tuple[Pack, ...], engines: tuple[str, ...]) -> list[Problem]:
    """Return what is wrong with charts of the families that the last pack of `chain` brings, or says something of.

    Raises:
        SpecError: two families have the same name.
        ToolError: there is no such Helm engine as one of `engines`.
    """
    tests, found = render_tests(chain)
    for test in tests:
        found += _find_problems(test, chain, engines[0])
        found += _find_differences(test, engines)
    return found


def _find_problems(test: FamilyTest, chain: tuple[Pack, ...], engine: str) -> Iterator[Problem]:
    with tempfile.TemporaryDirectory(prefix="trainchart-") as scratch:
        folder = Path(scratch, test.name)
        write_tree(folder, test.files, is_ours=lambda path: False)
        found = check_chart(folder, engine=engine, packs=chain).findings
    for finding in (finding for finding in found if finding.severity is Severity.error):
        case = f" with {finding.values}" if finding.values else ""
        where = f"{test.family.place}/{finding.path}" + (f":{finding.line}" if finding.line else "")
        yield Problem(f"{finding.rule}: {finding.message}{case}", where, finding.hint or f"found with {test.place}")


def _find_differences(test: FamilyTest, engines: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the objects that two Helms render differently."""
    first, *others = find_engines(engines)
    sets = values_sets(test.files)
    known = render_version(first, test.files, sets).renderings if others else {}
    for other in others:
        for values, rendering in render_version(other, test.files, sets).renderings.items():
            case = f" with {values}" if values else ""
            for source, what in _compare(known[values], rendering):
                message = f"{what}{case} differs between {first.name} and {other.name}"
                yield Problem(message, f"{test.family.place}/{source}", f"found with {test.place}")


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
