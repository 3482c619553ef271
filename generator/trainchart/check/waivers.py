"""Waivers: findings that users accept, always with a reason.

In a file, `# trainchart: ignore[rule-id] reason` speaks for its line and the one below, and for the whole file where it
stands on the first lines or, as `{{- /* trainchart: ignore[rule-id] reason */}}`, in a template, whose findings have
no line. In plain manifests, whose findings have the line of their object, it speaks for the object that it stands in.
For a chart or a folder, .trainchart-check.yaml lists rule, reason, and perhaps path and until.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from trainchart.archive.lock import WAIVER_FILE
from trainchart.check.finding import Finding, Severity
from trainchart.helm.rendering import Manifest
from trainchart.kubernetes_yaml import YamlError, find_duplicate_keys, parse_mapping

_TEXT_FIELDS = ("rule", "path", "reason")
_FIELDS = {*_TEXT_FIELDS, "until"}
_FIRST_LINES = 5
_MARK = re.compile(r"(?:#|/\*)\s*trainchart:\s*ignore\[(?P<rules>[^\]]*)\]\s*(?P<reason>.*?)\s*(?:\*/.*)?$")
_PROSE_FILES = (".tpl", ".txt", ".md")
_TEXT_FILES = (".yaml", ".yml", *_PROSE_FILES)
_Problems = tuple[Finding, ...]


@dataclass(frozen=True)
class Waiver:
    """One rule that a user accepts findings of, and where that is written."""

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
            and not finding.is_own_fault
            and (not self.path or finding.path == self.path or fnmatchcase(finding.path, self.path))
            and (not self.lines or finding.line in self.lines)
        )


@dataclass(frozen=True)
class Waived:
    """A finding, and the waiver that silences it."""

    finding: Finding
    waiver: Waiver


def is_waiver_file(path: str) -> bool:
    """Tell whether `path` is the list of waivers, or lies in a folder that has its name."""
    return path == WAIVER_FILE or path.startswith(f"{WAIVER_FILE}/")


def parse_waivers(files: Mapping[str, bytes], objects: Iterable[Manifest] = ()) -> tuple[tuple[Waiver, ...], _Problems]:
    """Return all waivers in `files`, and a finding for each that cannot be read or has no reason.

    `objects` are those that have a line in one of the files: plain manifests.
    """
    waivers: list[Waiver] = []
    problems: list[Finding] = []
    starts: dict[str, list[int]] = {}
    for manifest in objects:
        if manifest.line:
            starts.setdefault(manifest.source, []).append(manifest.line)
    for path, content in files.items():
        # The only file of plain manifests has no path: it is what the user named.
        if b"trainchart:" in content and (path.endswith(_TEXT_FILES) or not path) and path != WAIVER_FILE:
            waivers += _parse_marks(path, content.decode(errors="replace"), starts.get(path, ()))
    if WAIVER_FILE in files:
        found, wrong = _parse_file(files[WAIVER_FILE].decode(errors="replace"))
        waivers += found
        problems += wrong
    elif any(map(is_waiver_file, files)):
        problems.append(Finding("is a folder, expected a file with the list `waivers`", path=WAIVER_FILE))
    for waiver in waivers:
        if not waiver.reason:
            problems.append(waiver_problem(waiver, f"the waiver of {waiver.rule} gives no reason"))
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
        waiver_problem(waiver, f"the waiver of {waiver.rule} expired on {waiver.until}")
        if waiver not in valid
        else waiver_problem(waiver, f"the waiver of {waiver.rule} matches no finding", "remove it")
        for waiver in waivers
        if waiver not in useful
    ]
    return tuple(left), tuple(waived), tuple(problems)


def _parse_marks(path: str, text: str, starts: Collection[int]) -> Iterator[Waiver]:
    # Imported where it is needed: generate names this module's file, and the library behind takes a twentieth second.
    from trainchart.check.yaml_style import find_comment_lines

    is_template = path.startswith("templates/")
    lines = text.splitlines()
    # A text that looks like a comment is none; what a template's comment is, only Helm can tell.
    comments = None if is_template or path.endswith(_PROSE_FILES) else find_comment_lines(text)
    for number, line in enumerate(lines, start=1):
        match = _MARK.search(line)
        if match and (comments is None or number in comments):
            whole = is_template or number <= _FIRST_LINES
            spoken_for = () if whole else (number, number + 1, *_object_around(number, starts, lines))
            for rule in match["rules"].split(","):
                yield Waiver(rule.strip(), match["reason"].rstrip("-} "), path, number, path, spoken_for)


def _object_around(number: int, starts: Collection[int], lines: list[str]) -> Iterator[int]:
    """Yield the first line of the object that line `number` is part of; none where the next line starts another."""
    before = max((start for start in starts if start <= number), default=0)
    if before and number + 1 not in starts and not any(line.startswith("---") for line in lines[before:number]):
        yield before


def _parse_file(text: str) -> tuple[list[Waiver], list[Finding]]:
    try:
        document = parse_mapping(text)
    except YamlError as error:
        return [], [Finding(f"cannot be read: {error}", path=WAIVER_FILE, line=error.line)]
    repeated = find_duplicate_keys(text)
    if repeated:
        return [], [
            Finding(f"holds the key {found.key!r} twice", path=WAIVER_FILE, line=found.line) for found in repeated
        ]
    entries = document.get("waivers")
    if not isinstance(entries, list) or document.keys() - {"waivers"}:
        return [], [Finding("must hold the list `waivers` and nothing else", path=WAIVER_FILE)]
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
    if not isinstance(entry, dict) or entry.get("rule") in (None, ""):
        return "names no rule"
    if entry.keys() - _FIELDS:
        return f"unknown key {', '.join(sorted(map(str, entry.keys() - _FIELDS)))}"
    for field in _TEXT_FIELDS:
        if entry.get(field) is not None and not isinstance(entry[field], str):
            return f"{field}: {entry[field]!r} is not a string"
    until = None
    if entry.get("until") is not None:
        try:
            until = date.fromisoformat(str(entry["until"]))
        except ValueError:
            return f"until: {entry['until']!r} is not a date such as 2027-01-31"
    return Waiver(
        entry["rule"], (entry.get("reason") or "").strip(), WAIVER_FILE, 0, entry.get("path") or "", until=until
    )


def waiver_problem(waiver: Waiver, message: str, hint: str = "") -> Finding:
    """Return a finding about a waiver that can be read but is no good."""
    return Finding(message, path=waiver.written_path, line=waiver.written_line, severity=Severity.warning, hint=hint)
