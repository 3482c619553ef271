"""Which templates make something random, and which do so only where `lookup` finds nothing in the cluster.

Templates are read as parts: each `define`, and what a file holds outside of one. A part is guarded where it, what it
includes, or everything that includes it calls `lookup`: on a cluster such a template keeps what is there, under
`helm template` it makes something new every time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainchart.check.finding import CheckInput
from trainchart.check.sources import NOTES_FILE, every_template, without_comments

_ACTION = re.compile(r'\{\{(?:"(?:\\.|[^"\\\n])*"|`[^`]*`|(?!\}\}).)*\}\}', re.DOTALL)
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
_DEFINE = re.compile(r'\{\{-?\s*define\s+"([^"]+)"')
_INCLUDED = re.compile(r'(?<![\w.$])(?:include|template)\s+"([^"]+)"')
_LOOKUP = re.compile(r"(?<![\w.$])lookup(?!\w)")
_FUNCTION = re.compile(
    # Not after a dot, a dollar or a letter: .Values.now and $now are values.
    r"(?<![\w.$])(?:rand(?:AlphaNum|Alpha|Numeric|Ascii|Bytes|Int)|uuidv4|shuffle|now|ago|htpasswd|bcrypt|encryptAES"
    r"|genPrivateKey|genCA(?:WithKey)?|genSelfSignedCert(?:WithKey)?|genSignedCert(?:WithKey)?)(?!\w)"
)


@dataclass(frozen=True)
class RandomCall:
    """A call of a function that gives something else at every rendering."""

    function: str
    path: str
    line: int
    is_guarded: bool


@dataclass(frozen=True)
class _Part:
    name: str
    """Of the define; the file's path for what is outside of any."""
    path: str
    looks_up: bool
    included: frozenset[str]
    calls: tuple[tuple[str, int], ...]


def find_random_calls(given: CheckInput) -> Iterator[RandomCall]:
    """Yield every such call in the chart's templates, subcharts and notes left out."""
    parts = _parts(tuple(every_template(given)))
    for part in parts:
        if part.path.startswith("templates/"):
            for function, line in part.calls:
                yield RandomCall(function, part.path, line, _is_guarded(part, parts))


def is_random_behind_lookup(given: CheckInput, source: str) -> bool:
    """Tell whether objects of the template `source` differ at every rendering because `lookup` finds nothing."""
    parts = _parts(tuple(every_template(given)))
    reached = [found for part in parts if part.path == source for found in _reached(part, parts)]
    random = [part for part in reached if part.calls]
    return bool(random) and all(_is_guarded(part, parts) for part in random)


@functools.lru_cache(maxsize=4)
def _parts(templates: tuple[tuple[str, str], ...]) -> tuple[_Part, ...]:
    return tuple(part for path, text in templates if path != NOTES_FILE for part in _split(path, text))


def _split(path: str, text: str) -> Iterator[_Part]:
    plain = without_comments(text)
    starts = [(path, 0), *((found[1], found.start()) for found in _DEFINE.finditer(plain))]
    for (name, start), end in zip(starts, [*(start for _, start in starts[1:]), len(plain)], strict=True):
        actions = list(_ACTION.finditer(plain, start, end))
        bare = [_TEXT.sub(lambda quoted: " " * len(quoted[0]), action[0]) for action in actions]
        yield _Part(
            name,
            path,
            any(_LOOKUP.search(action) for action in bare),
            frozenset(found[1] for action in actions for found in _INCLUDED.finditer(action[0])),
            tuple(
                (found[0], plain.count("\n", 0, action.start() + found.start()) + 1)
                for action, code in zip(actions, bare, strict=True)
                for found in _FUNCTION.finditer(code)
            ),
        )


def _reached(part: _Part, parts: tuple[_Part, ...]) -> list[_Part]:
    """Return `part` and everything that it includes, directly or through others."""
    found = [part]
    for known in found:
        found += [other for other in parts if other.name in known.included and other not in found]
    return found


def _is_guarded(part: _Part, parts: tuple[_Part, ...], open_: frozenset[str] = frozenset()) -> bool:
    if any(found.looks_up for found in _reached(part, parts)):
        return True
    includers = [other for other in parts if part.name in other.included and other.name not in open_]
    return bool(includers) and all(_is_guarded(other, parts, open_ | {part.name}) for other in includers)
