"""Waivers: findings that somebody accepts, always with a reason.

In a file, `# trainchart: ignore[rule-id] reason` speaks for its line and the one below, and for the whole file where it
stands on the first lines or, as `{{- /* trainchart: ignore[rule-id] reason */}}`, in a template, whose findings have
no line. For a chart, .trainchart-check.yaml lists rule, reason, and perhaps path and until.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from trainchart.check.finding import Finding
from trainchart.kubernetes_yaml import YamlError, parse_mapping

WAIVER_FILE = ".trainchart-check.yaml"
_FIELDS = {"rule", "path", "reason", "until"}
_FIRST_LINES = 5
_MARK = re.compile(r"(?:#|/\*)\s*trainchart:\s*ignore\[(?P<rules>[^\]]*)\]\s*(?P<reason>.*?)\s*(?:\*/.*)?$")
_TEXT_FILES = (".yaml", ".yml", ".tpl", ".txt", ".md")


@dataclass(frozen=True)
class Waiver:
    """One rule that somebody accepts findings of, and where that is written."""

    rule: str
    reason: str
    written_path: str
    written_line: int
    path: str = ""
    """A pattern of paths; empty for the whole chart."""
    lines: tuple[int, ...] = ()
    """The lines it speaks for; empty for the whole file."""
    until: date | None = None

    def covers(self, finding: Finding) -> bool:
        return (
            finding.rule == self.rule
            and (not self.path or fnmatchcase(finding.path, self.path))
            and (not self.lines or finding.line in self.lines)
        )


@dataclass(frozen=True)
class Waived:
    """A finding, and the waiver that silences it."""

    finding: Finding
    waiver: Waiver


def parse_waivers(files: Mapping[str, bytes]) -> tuple[tuple[Waiver, ...], tuple[Finding, ...]]:
    """Return all waivers in `files`, and a finding for each that cannot be read or has no reason."""
    waivers: list[Waiver] = []
    problems: list[Finding] = []
    for path, content in files.items():
        if b"trainchart:" in content and path.endswith(_TEXT_FILES) and path != WAIVER_FILE:
            waivers += _parse_marks(path, content.decode(errors="replace"))
    if WAIVER_FILE in files:
        found, wrong = _parse_file(files[WAIVER_FILE].decode(errors="replace"))
        waivers += found
        problems += wrong
    for waiver in waivers:
        if not waiver.reason:
            problems.append(_problem(waiver, f"the waiver of {waiver.rule} gives no reason"))
    return tuple(waiver for waiver in waivers if waiver.reason), tuple(problems)


def apply_waivers(
    findings: tuple[Finding, ...], waivers: tuple[Waiver, ...], today: date
) -> tuple[tuple[Finding, ...], tuple[Waived, ...], tuple[Finding, ...]]:
    """Return the findings left, those waived, and what is wrong with waivers: run out, or good for nothing."""
    valid = [waiver for waiver in waivers if waiver.until is None or today <= waiver.until]
    left: list[Finding] = []
    waived: list[Waived] = []
    for finding in findings:
        covering = next((waiver for waiver in valid if waiver.covers(finding)), None)
        if covering is None:
            left.append(finding)
        else:
            waived.append(Waived(finding, covering))
    useful = {waiver for waiver in valid if any(waiver.covers(finding) for finding in findings)}
    problems = [
        _problem(waiver, f"the waiver of {waiver.rule} ran out on {waiver.until}")
        if waiver not in valid
        else _problem(waiver, f"the waiver of {waiver.rule} silences nothing", "remove it")
        for waiver in waivers
        if waiver not in useful
    ]
    return tuple(left), tuple(waived), tuple(problems)


def _parse_marks(path: str, text: str) -> Iterator[Waiver]:
    is_template = path.startswith("templates/")
    for number, line in enumerate(text.splitlines(), start=1):
        match = _MARK.search(line)
        if match:
            whole = is_template or number <= _FIRST_LINES
            for rule in match["rules"].split(","):
                lines = () if whole else (number, number + 1)
                yield Waiver(rule.strip(), match["reason"].rstrip("-} "), path, number, path, lines)


def _parse_file(text: str) -> tuple[list[Waiver], list[Finding]]:
    try:
        document = parse_mapping(text)
    except YamlError as error:
        return [], [Finding(f"cannot be read: {error}", path=WAIVER_FILE, line=error.line)]
    entries = document.get("waivers")
    if not isinstance(entries, list) or document.keys() - {"waivers"}:
        return [], [Finding("holds no list `waivers` alone", path=WAIVER_FILE)]
    waivers: list[Waiver] = []
    problems: list[Finding] = []
    for number, entry in enumerate(entries, start=1):
        parsed = _parse_entry(entry)
        if isinstance(parsed, str):
            problems.append(Finding(f"waiver {number}: {parsed}", path=WAIVER_FILE))
        else:
            waivers.append(parsed)
    return waivers, problems


def _parse_entry(entry: Any) -> Waiver | str:
    """Return the waiver, or what is wrong with it."""
    if not isinstance(entry, dict) or not entry.get("rule"):
        return "names no rule"
    if entry.keys() - _FIELDS:
        return f"unknown key {', '.join(sorted(map(str, entry.keys() - _FIELDS)))}"
    until = None
    if entry.get("until") is not None:
        try:
            until = date.fromisoformat(str(entry["until"]))
        except ValueError:
            return f"until: {entry['until']!r} is not a date like 2027-01-31"
    reason = str(entry.get("reason") or "").strip()
    return Waiver(str(entry["rule"]), reason, WAIVER_FILE, 0, str(entry.get("path") or ""), until=until)


def _problem(waiver: Waiver, message: str, hint: str = "") -> Finding:
    return Finding(message, path=waiver.written_path, line=waiver.written_line, hint=hint)
