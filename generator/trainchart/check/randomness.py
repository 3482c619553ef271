"""Which templates make something random, and which do so only where `lookup` finds nothing in the cluster.

Templates are read as parts: each document of a file, and each `define`. A part is guarded where it, what it includes,
or everything that includes it uses what `lookup` found: on a cluster such a template keeps what is there, under
`helm template` it makes something new every time.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trainchart.check.finding import CheckInput
from trainchart.check.sources import NOTES_FILE, VALUES_FILE, chart_templates, every_template, without_comments
from trainchart.helm.rendering import Manifest

_QUOTED = r"""'(?:\\.|[^'\\\n])'|"(?:\\.|[^"\\\n])*+"?|`[^`]*+`?"""
_ACTION = re.compile(rf"\{{\{{(?:{_QUOTED}|(?!\}}\}}).)*+(?:\}}\}}|\Z)", re.DOTALL)
"""One that has no end goes on to that of the text: the next one is not looked for in it."""
_TEXT = re.compile(_QUOTED)
_DEFINE = re.compile(r'\{\{-?\s*define\s+"([^"]+)"')
_INCLUDED = re.compile(r'(?<![\w.$])(?:include|template)\s+"([^"]+)"')
_DOCUMENT = re.compile(r"^---\s*$", re.MULTILINE)
_KIND = re.compile(r"^kind:\s*[\"']?(\w+)", re.MULTILINE)
_SET = re.compile(r"\{\{-?\s*(\$\w+)\s*:?=")
_VARIABLE = re.compile(r"\$\w+")
_LOOKUP = re.compile(r"(?<![\w.$])lookup(?!\w)")
_CLUSTER = re.compile(r"(?<![\w.$])lookup(?!\w)|\.Release\.Is(?:Upgrade|Install)(?!\w)")
_FUNCTION = re.compile(
    # Not after a dot, a dollar or a letter: .Values.now and $now are values.
    r"(?<![\w.$])(?:rand(?:AlphaNum|Alpha|Numeric|Ascii|Bytes|Int)|uuidv4|shuffle|now|ago|htpasswd|bcrypt|encryptAES"
    r"|genPrivateKey|genCA(?:WithKey)?|genSelfSignedCert(?:WithKey)?|genSignedCert(?:WithKey)?)(?!\w)"
)
_BUILD = re.compile(r"""\.Chart(?:\.Metadata)?\.Annotations(?!\.\w|\s+["`](?!trainchart/)[^"`]*["`])(?!\w)""")
"""Annotations of Chart.yaml that are read as a whole, or by the key of one that says how the chart was built."""


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
    kinds: frozenset[str]
    """Of the objects in it, as far as they are written out."""
    looks_up: bool
    """Whether it uses what `lookup` found."""
    included: frozenset[str]
    calls: tuple[tuple[str, int], ...]
    is_guarded: bool = False
    """Whether it, or everything that includes it, uses what `lookup` found."""
    reaches_calls: bool = False
    reaches_unguarded_calls: bool = False


_Edges = dict[str | _Part, Iterable[str | _Part]]
"""From parts to the names that they include, and from names to the parts that have them; or the other way round."""


def find_random_calls(given: CheckInput) -> Iterator[RandomCall]:
    """Yield every such call in the chart's templates, subcharts and notes left out."""
    for part in _parts(tuple(every_template(given))):
        if part.path.startswith("templates/"):
            for function, line in part.calls:
                yield RandomCall(function, part.path, line, part.is_guarded)


def makes_random(given: CheckInput) -> bool:
    """Tell whether a template, subcharts included, may give something else at every rendering."""
    return any(part.calls for part in _parts(tuple(every_template(given))))


def is_random_behind_lookup(given: CheckInput, manifest: Manifest) -> bool:
    """Tell whether an object may differ at every rendering because `lookup` finds nothing."""
    parts = _parts(tuple(every_template(given)))
    own = [part for part in parts if part.path == manifest.source and (not part.kinds or manifest.kind in part.kinds)]
    return any(part.reaches_calls for part in own) and not any(part.reaches_unguarded_calls for part in own)


def find_cluster_questions(files: Mapping[str, bytes]) -> Iterator[tuple[str, int]]:
    """Yield path and line of the first place in each template, or in values, that asks what is in the cluster.

    Texts count, too: `tpl` makes a template of them.
    """
    for path, content in files.items():
        if "templates/" not in path and not path.endswith(VALUES_FILE):
            continue
        text = without_comments(content.decode(errors="replace"))
        for action in _ACTION.finditer(text):
            if found := _CLUSTER.search(action[0]):
                yield path, text.count("\n", 0, action.start() + found.start()) + 1
                break


def find_build_readers(given: CheckInput) -> Iterator[tuple[str, int]]:
    """Yield path and line of the first place in each of the chart's templates that reads how the chart was built."""
    for path, text in chart_templates(given):
        plain = without_comments(text)
        for action in _ACTION.finditer(plain):
            if found := _BUILD.search(action[0]):
                yield path, plain.count("\n", 0, action.start() + found.start()) + 1
                break


@functools.lru_cache(maxsize=4)
def _parts(templates: tuple[tuple[str, str], ...]) -> tuple[_Part, ...]:
    parts = tuple(part for path, text in templates if path != NOTES_FILE for part in _split(path, text))
    includers = _group((name, part) for part in parts for name in part.included)
    upwards = includers | {part: [part.name] for part in parts}
    looking = _follow((part for part in parts if part.looks_up), upwards)
    others = [part for part in parts if part not in looking]
    unguarded = _follow((part for part in others if part.name not in includers), _find_included(others))
    guarded = looking | (_follow(looking, _find_included(parts)) - unguarded)
    calling = _follow((part for part in parts if part.calls), upwards)
    calling_unguarded = _follow((part for part in parts if part.calls and part not in guarded), upwards)
    return tuple(
        replace(
            part,
            is_guarded=part in guarded,
            reaches_calls=part in calling,
            reaches_unguarded_calls=part in calling_unguarded,
        )
        for part in parts
    )


def _find_included(parts: Sequence[_Part]) -> _Edges:
    """Return the names that each part includes, and the parts of each name."""
    return _group((part.name, part) for part in parts) | {part: part.included for part in parts}


def _group(pairs: Iterable[tuple[str, _Part]]) -> _Edges:
    grouped = defaultdict[str | _Part, list[str | _Part]](list)
    for name, part in pairs:
        grouped[name].append(part)
    return dict(grouped)


def _follow(nodes: Iterable[str | _Part], edges: _Edges) -> set[str | _Part]:
    """Return `nodes` and all that edges lead to, directly or through others."""
    found = set(nodes)
    waiting = list(found)
    while waiting:
        new = set(edges.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def _split(path: str, text: str) -> Iterator[_Part]:
    plain = without_comments(text)
    line_ends = [found.start() for found in re.finditer("\n", plain)]
    defines = [(found[1], found.start()) for found in _DEFINE.finditer(plain)]
    starts = [("", 0), *defines, *(("", found.start()) for found in _DOCUMENT.finditer(plain))]
    starts.sort(key=lambda start: start[1])
    name, found_there = path, set[str]()
    for (begun, start), end in zip(starts, [*(start for _, start in starts[1:]), len(plain)], strict=True):
        # Variables of one document are known in the next ones, but not in a define.
        name, found_there = (begun, set()) if begun else (name, found_there)
        actions = list(_ACTION.finditer(plain, start, end))
        bare = [_TEXT.sub(lambda quoted: " " * len(quoted[0]), action[0]) for action in actions]
        yield _Part(
            name,
            path,
            frozenset(_KIND.findall(plain, start, end)),
            _uses_lookup(bare, found_there),
            frozenset(found[1] for action in actions for found in _INCLUDED.finditer(action[0])),
            tuple(
                (found[0], bisect_left(line_ends, action.start() + found.start()) + 1)
                for action, code in zip(actions, bare, strict=True)
                for found in _FUNCTION.finditer(code)
            ),
        )


def _uses_lookup(actions: list[str], known: set[str]) -> bool:
    """Tell whether one of the actions uses what `lookup` found; variables that hold it are added to `known`."""
    is_used = False
    for action in actions:
        used = set(_VARIABLE.findall(action))
        assigned = _SET.match(action)
        holds = _LOOKUP.search(action) is not None or bool(used - {assigned and assigned[1]} & known)
        if assigned and holds:
            known.add(assigned[1])
        # To keep what was found, or to choose between it and something new, is to use it; to only hold it is not.
        is_used |= holds and (assigned is None or _FUNCTION.search(action) is not None)
    return is_used
