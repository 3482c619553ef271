"""Running the rules: one sorted list of findings, each told once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from trainchart.check.finding import Case, CheckInput, Finding, Severity
from trainchart.check.registry import RULES, describe_unknown_rule
from trainchart.check.rule import Rule, Scope
from trainchart.check.rules.waivers import WAIVERS_RULE
from trainchart.check.sources import is_readable
from trainchart.check.waivers import Waived, apply_waivers, parse_waivers, waiver_problem

_REASON_LIMIT = 200
_NAME_LIMIT = 253
"""No name that Kubernetes accepts is longer."""


@dataclass(frozen=True)
class CheckResult:
    """What the rules found, worst first, and what waivers accept."""

    findings: tuple[Finding, ...]
    waived: tuple[Waived, ...] = ()


def run_checks(given: CheckInput, rules: Iterable[Rule] = RULES) -> CheckResult:
    """Return what `rules` find, worst first; what shows in several cases is told once, for the plainest."""
    chosen = [rule for rule in rules if _applies(rule, given)]
    stand_ins = _name_stand_ins(given.cases)
    lengths = _lengths_by_start(stand_ins)
    unique: dict[Finding, Finding] = {}
    for rule in chosen:
        for finding in _ask(rule, given):
            found = replace(finding, rule=rule.id, severity=_severity(finding, rule, given))
            key = replace(found, values="", message=_without_names(found.message, stand_ins, lengths))
            if key not in unique or (unique[key].values and not found.values):
                unique[key] = found
    asked = {rule.id: rule for rule in chosen}
    known = {rule.id: rule for rule in RULES}
    # A waiver of a rule that was not asked is not useless.
    written = parse_waivers(given.files, given.objects())[0]
    waivers = tuple(waiver for waiver in written if waiver.rule in asked and asked[waiver.rule].is_waivable)
    left, waived, problems = apply_waivers(tuple(unique.values()), waivers, given.today)
    alone = tuple(finding for finding in left if finding.stands_alone)
    if alone:
        return CheckResult(tuple(sorted(alone, key=_rank)))
    problems += tuple(
        waiver_problem(waiver, describe_unknown_rule(waiver.rule)) for waiver in written if waiver.rule not in known
    )
    problems += tuple(
        waiver_problem(waiver, f"a chart cannot waive {waiver.rule}", "the owner of the pack can, in its policy.yaml")
        for waiver in written
        if waiver.rule in known and not known[waiver.rule].is_waivable
    )
    if WAIVERS_RULE in asked:
        left += tuple(_about_waivers(problems, asked[WAIVERS_RULE], given))
    return CheckResult(tuple(sorted(left, key=_rank)), tuple(sorted(waived, key=lambda entry: _rank(entry.finding))))


def _ask(rule: Rule, given: CheckInput) -> Iterator[Finding]:
    """Yield what `rule` finds; should it raise, that is one finding of its own, and other rules go on."""
    try:
        yield from rule.check(given)
    except Exception as error:
        # Third-party charts hold anything; one rule's fault must neither hide the others nor pass for a good chart.
        yield Finding(
            f"the rule {rule.id} failed with {type(error).__name__}: {str(error)[:_REASON_LIMIT]}",
            severity=Severity.error,
            hint="this is a bug in trainchart, not in the chart: please report it",
            is_own_fault=True,
        )


def _applies(rule: Rule, given: CheckInput) -> bool:
    in_scope = {Scope.manifests: True, Scope.charts: given.is_chart, Scope.trainings: given.is_training}[rule.scope]
    return in_scope and all(is_readable(given, file) for file in rule.needs)


def _severity(finding: Finding, rule: Rule, given: CheckInput) -> Severity:
    """Return the finding's own severity, but nothing worse than the rule allows itself."""
    if finding.is_own_fault:
        return finding.severity
    worst = rule.severity if given.is_generated else rule.others
    return max(finding.severity, rule.severity, worst, key=lambda severity: severity.rank)


def _about_waivers(problems: Iterable[Finding], rule: Rule, given: CheckInput) -> Iterator[Finding]:
    return (replace(found, rule=rule.id, severity=_severity(found, rule, given)) for found in problems)


def _name_stand_ins(cases: Iterable[Case]) -> Mapping[str, str]:
    """Return a stand-in for every object name that is the same under every release name.

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
    return {name: stand_in for name, stand_in in stand_ins.items() if 0 < len(name) <= _NAME_LIMIT}


def _lengths_by_start(names: Iterable[str]) -> Mapping[str, tuple[int, ...]]:
    """Return how long the names with each first character are, longest first."""
    found: dict[str, set[int]] = defaultdict(set)
    for name in names:
        found[name[0]].add(len(name))
    return {start: tuple(sorted(lengths, reverse=True)) for start, lengths in found.items()}


def _without_names(message: str, stand_ins: Mapping[str, str], lengths: Mapping[str, tuple[int, ...]]) -> str:
    """Return a message with the stand-ins of all names in it. Names are looked up: there may be very many."""
    parts: list[str] = []
    place = 0
    while place < len(message):
        names = (message[place : place + length] for length in lengths.get(message[place], ()))
        name = next((name for name in names if name in stand_ins), "")
        parts.append(stand_ins[name] if name else message[place])
        place += len(name) or 1
    return "".join(parts)


def _rank(finding: Finding) -> tuple[int, str, int, str, str]:
    return finding.severity.rank, finding.path, finding.line, finding.rule, finding.message
