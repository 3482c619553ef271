"""Which files of a chart folder belong to the chart: .helmignore with Helm's own meaning.

Helm's rules are not git's: there is no `**`, the first matching rule decides, and a negated rule drops every
file that it does not match. Source: pkg/ignore/rules.go and pkg/chart/v2/loader/directory.go of Helm 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from trainchart.errors import ToolError

IGNORE_FILE = ".helmignore"
_ALWAYS = "templates/.?*"
"""Helm's built-in rule: no dot files among the templates."""
_RULES_LIMIT = 500
"""Patterns: each is tried on each path."""
_COUNTS_BYTES = re.compile(r"[*].*[?\[]")

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go takes for space; Python has four characters more."""


@dataclass(frozen=True)
class _Rule:
    pattern: re.Pattern[str]
    whole_path: bool
    """Compare the path from the chart folder, not the last part alone."""
    folders_only: bool
    negated: bool
    counts_bytes: bool
    """Go skips bytes behind a star, half a character too, which a ? or a class behind it then meets."""

    def drops(self, path: str, is_folder: bool) -> bool:
        subject = path if self.whole_path else path.rpartition("/")[2]
        matches = self.pattern.fullmatch(subject) is not None
        if self.negated:
            return (self.folders_only and not is_folder) or not matches
        return matches and (is_folder or not self.folders_only)


def drop_ignored(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files that Helm would load, sorted by path; ToolError for a .helmignore that is refused."""
    try:
        rules = _parse_rules(files.get(IGNORE_FILE, b"").decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ToolError(f"{IGNORE_FILE} is not UTF-8 text", hint="save it as UTF-8") from error
    if any(rule.counts_bytes for rule in rules):
        for path in files:
            if not path.isascii():
                raise ToolError(
                    f"{IGNORE_FILE}: Helm applies a pattern with ? or [ behind a * to half characters of {path}",
                    hint="name the files without ? and [, or give them names of ASCII letters",
                )
    dropped: dict[str, bool] = {}

    def is_dropped(path: str, is_folder: bool) -> bool:
        if path not in dropped:
            dropped[path] = any(rule.drops(path, is_folder) for rule in rules)
        return dropped[path]

    kept: dict[str, bytes] = {}
    for path, content in sorted(files.items()):
        folders = [str(folder) for folder in PurePosixPath(path).parents if str(folder) != "."]
        if not any(is_dropped(folder, True) for folder in folders) and not is_dropped(path, False):
            kept[path] = content
    return kept


def _parse_rules(text: str) -> tuple[_Rule, ...]:
    rules: list[_Rule] = []
    for number, line in enumerate([*text.split("\n"), _ALWAYS], start=1):
        line = line.strip(_SPACE)
        if not line or line.startswith("#"):
            continue
        if "**" in line:
            raise ToolError(
                f"{IGNORE_FILE}:{number}: Helm does not support ** in {line!r}", hint="name the folder, like `docs/`"
            )
        if "//" in line:
            raise ToolError(f"{IGNORE_FILE}:{number}: no path matches the // in {line!r}", hint="write one slash")
        negated = line.startswith("!")
        body = line.removeprefix("!")
        folders_only = body.endswith("/")
        body = body.removesuffix("/")
        try:
            pattern = re.compile(_translate(body.removeprefix("/")))
        except (ValueError, re.error) as error:
            raise ToolError(f"{IGNORE_FILE}:{number}: {line!r} is not a pattern: {error}") from error
        if len(rules) > _RULES_LIMIT:
            raise ToolError(
                f"{IGNORE_FILE} has more than {_RULES_LIMIT} patterns", hint="name folders instead of the files in them"
            )
        rules.append(_Rule(pattern, "/" in body, folders_only, negated, bool(_COUNTS_BYTES.search(body))))
    return tuple(rules)


def _translate(glob: str) -> str:
    """Return the regular expression for a pattern of Go's filepath.Match.

    What stands between two stars is looked for once, from the left: a later place would leave less for the rest. So a
    pattern of many stars takes no longer than one of few.
    """
    chunks, position = [""], 0
    while position < len(glob):
        char = glob[position]
        if char == "*":
            chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "[":
            found, position = _translate_class(glob, position)
            chunks[-1] += found
        elif char == "\\":
            position += 1
            if position == len(glob):
                raise ValueError("it ends in a backslash")
            chunks[-1] += re.escape(glob[position])
        else:
            chunks[-1] += re.escape(char)
        position += 1
    first, *rest = chunks
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in rest[:-1] if chunk)
    return f"(?s:{first}{middle}{'[^/]*' + rest[-1] if rest else ''})"


def _translate_class(glob: str, start: int) -> tuple[str, int]:
    """Return the regular expression of the class that begins at `start`, and where its ] is."""
    position = start + 1
    is_negated = glob.startswith("^", position)
    position += is_negated
    ranges: list[str] = []
    count = 0
    while not count or not glob.startswith("]", position):
        low, position = _class_char(glob, position)
        high = low
        if glob.startswith("-", position):
            high, position = _class_char(glob, position + 1)
        count += 1
        if low <= high:
            ranges.append(f"{re.escape(low)}-{re.escape(high)}")
    if not ranges:  # none but such as z-a, in which nothing is
        return ("." if is_negated else "(?!)"), position
    return f"[{'^' if is_negated else ''}{''.join(ranges)}]", position


def _class_char(glob: str, position: int) -> tuple[str, int]:
    """Return the character of a class at `position`, and what comes after it. Raises ValueError as Go refuses."""
    if glob[position : position + 1] in ("-", "]"):
        raise ValueError(f"a class cannot have {glob[position]} here, write \\{glob[position]}")
    position += glob.startswith("\\", position)
    if position + 1 >= len(glob):
        raise ValueError("a [ is not closed")
    return glob[position], position + 1
