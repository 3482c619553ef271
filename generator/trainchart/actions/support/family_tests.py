"""Whether the charts that a family makes of its tests render, and pass every check."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from trainchart.actions.check import check_chart
from trainchart.actions.support.family_charts import complete_chart, find_families, render_chart_of_family
from trainchart.check.finding import Severity
from trainchart.errors import Problem, SpecError
from trainchart.families.family import TESTS, Family
from trainchart.families.values import VALUES_KEY
from trainchart.host.files import write_tree
from trainchart.packs.pack import Pack
from trainchart.plan.typed import suggest_word
from trainchart.spec.document import parse_document


def find_family_problems(chain: tuple[Pack, ...], engine: str) -> list[Problem]:
    """Return what is wrong with charts of the families that the last pack of `chain` brings, or has defaults for.

    Raises:
        SpecError: two families have the same name.
        ToolError: there is no such Helm `engine`.
    """
    pack, families = chain[-1], find_families(chain)
    found = [
        Problem(f"unknown family {name}", str(defaults.origins[VALUES_KEY,]), suggest_word(name, list(families)))
        for name, defaults in pack.family_defaults.items()
        if name not in families
    ]
    names = dict.fromkeys([*(family.name for family in pack.families), *pack.family_defaults])
    for name in names:
        found += _find_problems(families[name], chain, engine) if name in families else ()
    return found


def _find_problems(family: Family, chain: tuple[Pack, ...], engine: str) -> Iterator[Problem]:
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
            found = check_chart(folder, engine=engine, packs=chain).findings
        for finding in (finding for finding in found if finding.severity is Severity.error):
            case = f" with {finding.values}" if finding.values else ""
            where = f"{family.place}/{finding.path}" + (f":{finding.line}" if finding.line else "")
            yield Problem(f"{finding.rule}: {finding.message}{case}", where, finding.hint or f"found with {place}")
