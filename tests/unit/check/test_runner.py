"""A rule that fails is one finding that says so; everything else is checked all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.registry import find_rules
from trainchart.check.rule import Rule
from trainchart.check.runner import run_checks

SOURCE = "https://example.com/"
WAIVER = "waivers: [{rule: falls-over, reason: never mind}]\n"


def fall_over(given: CheckInput) -> Iterator[Finding]:
    yield Finding("found before the fall", path="a.yaml")
    raise KeyError("replicas")


FALLS_OVER = Rule("falls-over", "It falls over.", fall_over, SOURCE, severity=Severity.info, others=Severity.info)


@pytest.mark.parametrize("files", [{}, {".trainchart-check.yaml": WAIVER.encode()}], ids=["plain", "waived"])
def test_a_rule_that_falls_over_is_an_error_and_the_others_go_on(files: dict[str, bytes]) -> None:
    given = CheckInput(files={"a.yaml": b"a: 1\na: 2\n", **files})
    result = run_checks(given, (FALLS_OVER, *find_rules(("keys-unique",))))
    told = [(found.rule, found.severity, found.message) for found in result.findings]
    assert ("falls-over", Severity.error, "the rule falls-over failed with KeyError: 'replicas'") in told
    assert ("keys-unique", Severity.error, "the key 'a' occurs twice in one mapping") in told
    [own] = [found for found in result.findings if found.is_own_fault]
    assert "a bug in trainchart" in own.hint
    everything = result.findings + tuple(entry.finding for entry in result.waived)
    assert any(found.message == "found before the fall" for found in everything)
