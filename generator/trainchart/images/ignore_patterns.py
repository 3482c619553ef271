"""One pattern of .dockerignore, matched in a time that grows with its length and that of the path alone. Pure."""

from __future__ import annotations

import re

STAR, STARS, FOLDERS = "*", "**", "**/"
_KINDS = {STAR: "[^/]*", STARS: ".*", FOLDERS: "(?:.*/)?"}
_QUICK = 2
"""So many stars at most are left to Python's own search, which tries every way that they can share a path."""


def parse_tokens(pattern: str) -> tuple[str, ...]:
    """Return the parts of a pattern: stars, and regular expressions of one character. Raises ValueError."""
    found: list[str] = []
    index = 0
    while index < len(pattern):
        token, index = _next_token(pattern, index)
        # The same star twice says what it says once.
        if token not in _KINDS or found[-1:] != [token]:
            found.append(token)
    return tuple(found)


def _next_token(pattern: str, index: int) -> tuple[str, int]:
    """Return the part that begins at `index`, and where the next one does: `**` is any folders, `*` and `?` in one."""
    char = pattern[index]
    for star in (FOLDERS, STARS, STAR):
        if pattern.startswith(star, index):
            return star, index + len(star)
    if char == "?":
        return "[^/]", index + 1
    if char == "[":
        end = pattern.find("]", index + 2)
        if end < 0:
            raise ValueError("[ without ]")
        inside = pattern[index + 1 : end]
        body = ("^" if inside.startswith("^") else "") + re.escape(inside.removeprefix("^")).replace("\\-", "-")
        try:
            re.compile(f"[{body}]")
        except re.error as error:
            raise ValueError(str(error)) from error
        return f"[{body}]", end + 1
    if char == "\\" and index + 1 < len(pattern):
        return re.escape(pattern[index + 1]), index + 2
    return re.escape(char), index + 1


class Pattern:
    """Tells which paths the parts of a pattern match.

    Where there are many stars, all ways to share a path among them are followed at once: a bit of a number for each
    part that may be the next one.
    """

    def __init__(self, tokens: tuple[str, ...]) -> None:
        self._tokens = tokens
        is_quick = sum(token in _KINDS for token in tokens) <= _QUICK
        self._quick = re.compile("".join(_KINDS.get(token, token) for token in tokens)) if is_quick else None
        self._star, self._stars, self._folders = (self._places(kind) for kind in (STAR, STARS, FOLDERS))
        self._fitting: dict[str, int] = {}

    def matches(self, path: str) -> bool:
        """Tell whether the pattern matches the whole path."""
        if self._quick:
            return self._quick.fullmatch(path) is not None
        states = self._skip_stars(1)
        for char in path:
            staying = states & self._stars
            moving = states & self._fit(char)
            if char == "/":
                moving |= states & self._folders
            else:
                staying |= states & self._star
            # In the middle of a folder's name, what follows the folders cannot begin.
            states = self._skip_stars(moving << 1 | staying) | states & self._folders
            if not states:
                return False
        return bool(states >> len(self._tokens) & 1)

    def _places(self, kind: str) -> int:
        return sum(1 << place for place, token in enumerate(self._tokens) if token == kind)

    def _skip_stars(self, states: int) -> int:
        """Return the states with those that come after stars which match nothing."""
        added = states
        while added:
            added = (added & (self._star | self._stars | self._folders)) << 1 & ~states
            states |= added
        return states

    def _fit(self, char: str) -> int:
        """Return the places of the parts that match a character."""
        if char not in self._fitting:
            parts = enumerate(self._tokens)
            fitting = (place for place, token in parts if token not in _KINDS and re.fullmatch(token, char))
            self._fitting[char] = sum(1 << place for place in fitting)
        return self._fitting[char]
