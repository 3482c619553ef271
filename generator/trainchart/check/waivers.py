"""Waivers: findings that users accept, always with a reason.

In a file, `# trainchart: ignore[rule-id] reason` speaks for its line and the one below, and for the whole file where it
stands on the first lines or, as `{{- /* trainchart: ignore[rule-id] reason */}}`, in a template, whose findings have
no line. In plain manifests, whose findings have the line of their object, it speaks for the object that it stands in.
For a chart or a folder, .trainchart-check.yaml lists rule, reason, and perhaps path and until.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
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
_MARK = re.compile(r"(?:#|/\*)\s*trainchart:\s*ignore\[")
_GLOB = re.compile(r"[*?\[]")
_PROSE_FILES = (".tpl", ".txt", ".md")
_TEXT_FILES = (".yaml", ".yml", *_PROSE_FILES)
_Problems = tuple[Finding, ...]
_Reach = tuple[str, str, int]
"""Rule, path, and the line that a waiver speaks for; 0 for the whole file."""


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

    @property
    def reaches(self) -> tuple[_Reach, ...]:
        return tuple((self.rule, self.path, line) for line in self.lines or (0,))


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
            try:
                waivers += _parse_marks(path, content.decode(errors="replace"), starts.get(path, ()))
            except YamlError as error:
                what = f"waivers in its comments cannot be read: {error.message}"
                problems.append(Finding(what, path=path, line=error.line, hint=f"list the waivers in {WAIVER_FILE}"))
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
    first: dict[_Reach, int] = {}
    """Place of the first waiver that reaches there, of those that have not expired."""
    patterns: dict[str, dict[str, None]] = defaultdict(dict)
    for place, waiver in enumerate(waivers):
        if not _has_expired(waiver, today):
            for reach in waiver.reaches:
                first.setdefault(reach, place)
            if _GLOB.search(waiver.path):
                patterns[waiver.rule][waiver.path] = None
    matching: dict[tuple[str, str], list[str]] = {}
    useful: set[_Reach] = set()
    left: list[Finding] = []
    waived: list[Waived] = []
    for finding in findings:
        rule, path = finding.rule, finding.path
        if (rule, path) not in matching:
            globs = [pattern for pattern in patterns.get(rule, ()) if fnmatchcase(path, pattern)]
            matching[rule, path] = ["", path, *globs]
        paths = matching[rule, path] if not finding.is_own_fault else ()
        covering = {(rule, known, line) for known in paths for line in (0, finding.line)} & first.keys()
        useful |= covering
        if covering:
            waived.append(Waived(finding, waivers[min(first[reach] for reach in covering)]))
        else:
            left.append(finding)
    problems = [
        waiver_problem(waiver, f"the waiver of {waiver.rule} expired on {waiver.until}")
        if _has_expired(waiver, today)
        else waiver_problem(waiver, f"the waiver of {waiver.rule} matches no finding", "remove it")
        for waiver in waivers
        if _has_expired(waiver, today) or useful.isdisjoint(waiver.reaches)
    ]
    return tuple(left), tuple(waived), tuple(problems)


def _has_expired(waiver: Waiver, today: date) -> bool:
    return waiver.until is not None and waiver.until < today


def _parse_marks(path: str, text: str, starts: Iterable[int]) -> Iterator[Waiver]:
    """Yield the waivers in a text; in a template, also those in text that it prints. Raises YamlError."""
    # Imported where it is needed: generate names this module's file, and the library behind takes a twentieth second.
    from trainchart.check.yaml_style import find_comment_lines

    lines = text.splitlines()
    if not any(map(_find_mark, lines)):
        return
    is_template = path.startswith("templates/")
    starts = sorted(starts)
    separator = 0
    # A text that looks like a comment is none; what a template's comment is, only Helm can tell.
    comments = None if is_template or path.endswith(_PROSE_FILES) else find_comment_lines(text)
    for number, line in enumerate(lines, start=1):
        separator = number if line.startswith("---") else separator
        mark = _find_mark(line)
        if mark and (comments is None or number in comments):
            whole = is_template or number <= _FIRST_LINES
            spoken_for = () if whole else (number, number + 1, *_object_around(number, starts, separator))
            for rule in mark[0].split(","):
                yield Waiver(rule.strip(), mark[1], path, number, path, spoken_for)


def _find_mark(line: str) -> tuple[str, str] | None:
    """Return the rules and the reason of the mark in a line, which may be as long as others like to write it."""
    start = _MARK.search(line)
    rules, end, reason = line[start.end() :].partition("]") if start else ("", "", "")
    return (rules, reason.partition("*/")[0].strip().rstrip("-} ")) if end else None


def _object_around(number: int, starts: list[int], separator: int) -> Iterator[int]:
    """Yield the first line of the object that line `number` is part of; none where the next line starts another.

    `separator` is the last line up to `number` that separates objects.
    """
    place = bisect_right(starts, number)
    before = starts[place - 1] if place else 0
    if before and separator <= before and number + 1 not in starts[place : place + 1]:
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
