"""Findings as SARIF 2.1.0, which code hosts show beside the lines they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from trainchart.check.finding import Finding, Severity
from trainchart.check.rule import Rule
from trainchart.check.waivers import Waived

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {Severity.error: "error", Severity.warning: "warning", Severity.info: "note"}


def dump_sarif(
    charts: Iterable[tuple[str, Iterable[Finding], Iterable[Waived]]], rules: Iterable[Rule], version: str
) -> dict[str, Any]:
    """Return one SARIF log of one run; `charts` are (path of the chart, findings, waived findings)."""
    described = [_rule(rule) for rule in rules]
    index = {rule["id"]: number for number, rule in enumerate(described)}
    results = []
    for chart, findings, waived in charts:
        results += [_result(chart, finding, index) for finding in findings]
        results += [_result(chart, entry.finding, index) | _suppression(entry) for entry in waived]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "trainchart", "semanticVersion": version, "rules": described}},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    # A path of our own repository is no URI that a viewer could open.
    help_uri = {"helpUri": rule.source} if rule.source.startswith("https://") else {}
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.why},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        **help_uri,
    }


def _result(chart: str, finding: Finding, index: Mapping[str, int]) -> dict[str, Any]:
    text = finding.message + (f" (with {finding.values})" if finding.values else "")
    region = {"region": {"startLine": finding.line}} if finding.line else {}
    file = "/".join(
        part.strip("/") if number else part.rstrip("/") for number, part in enumerate((chart, finding.path)) if part
    )
    # Names of files are bytes; those that are no UTF-8 come as surrogates.
    uri = quote(file.encode("utf-8", "surrogateescape"))
    return {
        "ruleId": finding.rule,
        "ruleIndex": index[finding.rule],
        "level": _LEVELS[finding.severity],
        "message": {"text": text + (f". Hint: {finding.hint}" if finding.hint else "")},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, **region}}],
    }


def _suppression(entry: Waived) -> dict[str, Any]:
    return {"suppressions": [{"kind": "inSource", "justification": entry.waiver.reason}]}
