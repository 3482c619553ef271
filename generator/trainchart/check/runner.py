"""Running the rules: one sorted list of findings, each told once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from trainchart.check.finding import Case, CheckInput, Finding, Severity
from trainchart.check.registry import RULES, Rule

_ORDER = {severity: number for number, severity in enumerate(Severity)}


def run_checks(given: CheckInput, rules: Iterable[Rule] = RULES) -> tuple[Finding, ...]:
    """Return what `rules` find, worst first; what shows in several cases is told once, for the plainest."""
    stand_ins = _name_stand_ins(given.cases)
    told: dict[Finding, Finding] = {}
    for rule in rules:
        for finding in rule.check(given):
            found = replace(finding, rule=rule.id)
            key = replace(found, values="", message=_without_names(found.message, stand_ins))
            if key not in told or (told[key].values and not found.values):
                told[key] = found
    return tuple(sorted(told.values(), key=_rank))


def _name_stand_ins(cases: Iterable[Case]) -> Mapping[str, str]:
    """Return a stand-in for every object name that is the same under every release name, longest name first.

    A template's fault shows in each case under another name; the object's place among its template's
    objects tells that it is the same one.
    """
    stand_ins: dict[str, str] = {}
    for case in cases:
        if case.rendering is None:
            continue
        places: Counter[tuple[str, str]] = Counter()
        for manifest in case.rendering.manifests:
            place = (manifest.source, manifest.kind)
            stand_ins.setdefault(manifest.name, f"<{manifest.source} {manifest.kind} {places[place]}>")
            places[place] += 1
        stand_ins.setdefault(case.rendering.release, "<release>")
    return {name: stand_ins[name] for name in sorted(stand_ins, key=len, reverse=True) if name}


def _without_names(message: str, stand_ins: Mapping[str, str]) -> str:
    for name, stand_in in stand_ins.items():
        message = message.replace(name, stand_in)
    return message


def _rank(finding: Finding) -> tuple[int, str, int, str, str]:
    return _ORDER[finding.severity], finding.path, finding.line, finding.rule, finding.message
