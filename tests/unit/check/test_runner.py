"""A rule that fails is one finding that says so; everything else is checked all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trainchart.check.finding import Case, CheckInput, Finding, Severity
from trainchart.check.registry import find_rules
from trainchart.check.rule import Rule
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering

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


def make_case(values: str, release: str, names: list[str]) -> Case:
    manifests = tuple(Manifest("templates/a.yaml", {"kind": "Job", "metadata": {"name": name}}) for name in names)
    return Case(values, Rendering(release, "default", manifests, {}))


def complain(messages: list[tuple[str, str]]) -> Rule:
    def check(given: CheckInput) -> Iterator[Finding]:
        return (Finding(message, values=values) for values, message in messages)

    return Rule("complains", "It complains.", check, SOURCE, severity=Severity.info, others=Severity.info)


def test_a_fault_under_two_names_is_told_once() -> None:
    cases = (make_case("", "a", ["a-b", "a-bc"]), make_case("long", "xy", ["xy-b", "xy-bc"]))
    messages = [("", "'a-b' a-z"), ("long", "'xy-b' xy-z"), ("", "'a-bc' a-z"), ("long", "'xy-bc' xy-z")]
    result = run_checks(CheckInput({}, cases=cases), (complain(messages),))
    assert [found.message for found in result.findings] == ["'a-b' a-z", "'a-bc' a-z"]


@pytest.mark.timeout(20)
def test_very_many_names_and_findings_are_compared_fast() -> None:
    names = [f"object-{number}" for number in range(60_000)]
    rule = complain([("", f"'{name}' is odd ({number})") for number, name in enumerate(names)])
    assert len(run_checks(CheckInput({}, cases=(make_case("", "release", names),)), (rule,)).findings) == len(names)
