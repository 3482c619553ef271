"""Running the rules: one sorted list of findings, each told once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.registry import RULES, Rule

_ORDER = {severity: number for number, severity in enumerate(Severity)}


def run_checks(given: CheckInput, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """Return what `rules` find, worst first; what shows in several cases is told once, for the plainest."""
    releases = {case.rendering.release for case in given.cases if case.rendering is not None}
    told: dict[Finding, Finding] = {}
    for rule in rules:
        for finding in rule.check(given):
            found = replace(finding, rule=rule.id)
            key = replace(found, values="", message=_without_releases(found.message, releases))
            if key not in told or (told[key].values and not found.values):
                told[key] = found
    return tuple(sorted(told.values(), key=_rank))


def _without_releases(message: str, releases: Iterable[str]) -> str:
    """Blank the release names, since one fault of a template shows under every release."""
    for release in sorted(releases, key=len, reverse=True):
        message = message.replace(release, "*")
    return message


def _rank(finding: Finding) -> tuple[int, str, int, str, str]:
    return _ORDER[finding.severity], finding.path, finding.line, finding.rule, finding.message
