"""Which files of a code folder go into an image: .dockerignore with Docker's own meaning. Pure.

Docker's rules are neither git's nor Helm's: a pattern starts at the folder's root, the last one that matches decides,
and what matches a folder matches all below it. Source: github.com/moby/patternmatcher.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from trainchart.errors import Problem, ToolError
from trainchart.images.ignore_patterns import Pattern, parse_tokens

IGNORE_FILE = ".dockerignore"
_BUILTIN = (
    *("**/.git", "**/__pycache__", "**/*.pyc", "**/.venv", "**/.ipynb_checkpoints"),
    *("**/.pytest_cache", "**/.mypy_cache", "**/.ruff_cache"),
    *("**/.trainchart-schema.json", "**/.trainchart", IGNORE_FILE),
)
"""What no image needs; a line with `!` in .dockerignore that names it, and not just a folder above, brings it back."""


@dataclass(frozen=True)
class _Rule:
    pattern: Pattern
    is_exception: bool
    names_one_path: bool
    """It has no wildcards."""
    is_builtin: bool


@dataclass(frozen=True)
class IgnoreRules:
    """The rules of one folder. Paths are relative to it, with slashes."""

    rules: tuple[_Rule, ...]

    def ignores(self, path: str) -> bool:
        """Tell whether a file stays out of the image."""
        # From the path itself to the folder at the top.
        places = [path, *(str(parent) for parent in PurePosixPath(path).parents if str(parent) != ".")]
        rule = next((rule for rule in reversed(self.rules) if _matches(rule, places)), None)
        if rule is None or not rule.is_exception:
            return rule is not None
        return any(self._stays_out(places[: index + 1]) for index in range(len(places)))

    def demands(self, path: str) -> bool:
        """Tell whether a line with `!` names this very file, so that it is in the image on purpose."""
        exceptions = (rule for rule in self.rules if rule.is_exception and rule.names_one_path)
        return any(rule.pattern.matches(path) for rule in exceptions)

    def prunes(self, folder: str) -> bool:
        """Tell whether nothing below a folder can be wanted, so that it need not be looked at."""
        return self.ignores(folder) and not any(rule.is_exception for rule in self.rules)

    def _stays_out(self, places: list[str]) -> bool:
        """Tell whether the last of `places` is built in, and no line with `!` names it or what is below."""
        is_builtin = any(rule.is_builtin and _matches(rule, places[-1:]) for rule in self.rules)
        return is_builtin and not any(rule.is_exception and _matches(rule, places) for rule in self.rules)


def _matches(rule: _Rule, places: list[str]) -> bool:
    return any(rule.pattern.matches(place) for place in places)


def parse_ignore_rules(text: str) -> IgnoreRules:
    """Return the rules of a .dockerignore. Raises ToolError, naming the line, for what Docker refuses."""
    lines = [(0, line) for line in _BUILTIN] + list(enumerate(text.removeprefix("\ufeff").split("\n"), start=1))
    return IgnoreRules(tuple(_parse(lines)))


def _parse(lines: list[tuple[int, str]]) -> Iterator[_Rule]:
    for number, line in lines:
        if line.startswith("#") or not line.strip():
            continue
        body = line.strip()
        is_exception = body.startswith("!")
        body = body.removeprefix("!").strip()
        # As Go's filepath.Clean does; what leads out of the folder with .. matches nothing.
        pattern = posixpath.normpath(body).lstrip("/")
        if not body:
            raise _refused(number, line, "nothing is excepted")
        try:
            yield _Rule(Pattern(parse_tokens(pattern)), is_exception, not set(pattern) & set("*?["), not number)
        except ValueError as error:
            raise _refused(number, line, str(error)) from error


def _refused(number: int, line: str, why: str) -> ToolError:
    problem = Problem(f"{line!r} is not a pattern: {why}", f"{IGNORE_FILE}:{number}")
    return ToolError(
        f"{IGNORE_FILE} cannot be read", hint="see docs.docker.com/build/concepts/context", problems=(problem,)
    )
