"""Values that a chart's schema refuses, told as the messages about specs are: what, what is expected, what was meant.

Pure. Helm names the place and the rule; the given value comes from the user's own options, the nearest key and the
meaning of a key from the schema.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.durations import DURATION_EXAMPLES, DURATION_PATTERN
from trainchart.errors import Problem
from trainchart.helm.asked import Asked, Path, Schema
from trainchart.json_documents import resolve_reference
from trainchart.quantities import QUANTITY_PATTERN, suggest_quantity
from trainchart.spec.section import LOCKED
from trainchart.spec.settings import useful_choices

_REFUSAL = re.compile(r"^(?P<indent> *)- (?:at '(?P<pointer>[^']*)'|(?P<dotted>[^:\s]+)): (?P<message>.*)$")
_CHART = re.compile(r"^(?P<name>[a-z0-9][-a-z0-9.]*):$")
_UNKNOWN = re.compile(r"[Aa]dditional propert(?:y|ies) (?P<names>.+?) (?:is|are)? ?not allowed")
_TYPE = re.compile(r"got (?P<got>\w+), want (?P<want>[\w ]+)")
_OLD_TYPE = re.compile(r"Invalid type\. Expected: (?P<want>[\w/]+), given: (?P<got>\w+)")
_PATTERN = re.compile(r"'(?P<given>.*)' does not match pattern '(?P<pattern>.*)'")
_BOUND = re.compile(r"(?P<rule>\w+): got (?P<given>.+?), want (?P<bound>.+)")
"""Helm 4 divides the thousands of a whole number by commas."""
_CHOICE = re.compile(r"value must be (?:one of )?(?P<choices>'.*')")
_MISSING = re.compile(r"missing propert(?:y|ies) (?P<names>.+)")
_KEY = re.compile(r"invalid propertyName '(?P<name>.*)'")
_TYPES = {
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "object": "a mapping",
    "array": "a list",
}
_BOUNDS = {
    "minimum": "is less than the minimum",
    "exclusiveMinimum": "must be greater than",
    "maximum": "is greater than the maximum",
    "exclusiveMaximum": "must be less than",
}
_OPTIONAL = "^$|"
_FALLBACK = "the chart's values.yaml lists the keys that it accepts"
DAMAGED = "the chart's values.yaml seems to be damaged: restore it, or for a generated chart, run trainchart generate"
_LARGEST = "9.007199254740991×10¹⁵"
"""How Helm prints the largest integer that it represents exactly, by which only texts are bounded."""
_MANY, _SHOWN = 5, 3
"""More keys than a user deletes at once, and how many of them are named."""
_MOST_NAMED = 20
TOLD_LIMIT = 100
"""Refused values that are told: a suggestion for each takes time, and no one reads more."""
_HYPERPARAMETERS = "hyperparameters"
_GENERIC = ("name", "path", "host", "port", "create", "enabled", "image", "annotations", "id", "size", "digest", "tag")
"""Keys of many sections: with none, they say nothing of which is meant."""


@dataclass
class _Refusal:
    chart: str
    path: Path
    message: str
    parts: list[_Refusal] = field(default_factory=list)
    """What is wrong in detail: all of it, or the reasons against each member of anyOf and oneOf."""


def find_refusals(text: str, asked: Asked) -> tuple[Problem, ...]:
    """Return one problem per refused value in a schema message of Helm, sorted; none for other text."""
    every = (problem for refusal in _parse(text) for problem in _Teller(asked, refusal.chart).tell(refusal))
    problems = sorted(itertools.islice(every, TOLD_LIMIT), key=lambda problem: problem.message)
    more = [Problem(f"more values are refused: only {TOLD_LIMIT} are listed")] if next(every, None) else []
    return (*problems, *more)


def _parse(text: str) -> list[_Refusal]:
    """Read the refusals, which are indented below those that they explain."""
    found: list[_Refusal] = []
    above: list[tuple[int, _Refusal]] = []
    chart = ""
    for line in text.splitlines():
        match = _REFUSAL.match(line)
        if not match:
            named = _CHART.match(line)
            chart = named["name"] if named else chart
            continue
        path = _read_pointer(match["pointer"]) if match["dotted"] is None else _read_dotted(match["dotted"])
        refusal, indent = _Refusal(chart, path, match["message"]), len(match["indent"])
        above = [(outer, holder) for outer, holder in above if outer < indent]
        (above[-1][1].parts if above else found).append(refusal)
        above.append((indent, refusal))
    return found


def _read_pointer(pointer: str) -> Path:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def _read_dotted(dotted: str) -> Path:
    return () if dotted == "(root)" else tuple(dotted.split("."))


@dataclass(frozen=True)
class _Teller:
    asked: Asked
    chart: str
    """The chart that refuses."""

    def tell(self, refusal: _Refusal) -> Iterator[Problem]:
        """Yield the problems of one refusal; of alternatives, those that the value came closest to."""
        if named := _KEY.match(refusal.message):
            yield self._invalid_key(named["name"], refusal)
        elif not refusal.parts:
            yield from self._tell(refusal.path, refusal.message)
        elif refusal.message in ("'anyOf' failed", "'oneOf' failed", "'oneOf' failed, none matched"):
            deepest = max(len(part.path) for part in refusal.parts)
            near = [part for part in refusal.parts if len(part.path) == deepest]
            # Of a value that has the type of one member, the types of the others say nothing.
            near = [part for part in near if not _TYPE.match(part.message)] or near
            problems = list(itertools.islice((problem for part in near for problem in self.tell(part)), TOLD_LIMIT))
            hints = dict.fromkeys(problem.hint for problem in problems if problem.hint)
            yield Problem("; or ".join(problem.message for problem in problems), hint="; or ".join(hints))
        else:
            yield from (problem for part in refusal.parts for problem in self.tell(part))

    def _tell(self, path: Path, message: str) -> Iterator[Problem]:
        key, schema = self._called(path), self._schema(path)
        given = self._given(path)
        about = str(schema.get("description", "")).split("\n")[0]
        if about.startswith(LOCKED):
            yield Problem(f"{key}: {'the value' if given is None else repr(given)} is not allowed", hint=about)
        elif match := _UNKNOWN.match(message):
            for name in _names(match["names"]):
                yield Problem(f"unknown key {self._called((*path, name))}", hint=self._suggest(path, name))
        elif match := _TYPE.match(message) or _OLD_TYPE.match(message):
            wanted = [name for name in re.split(r" or |/", match["want"]) if name != "null"]
            if given is not None and isinstance(schema.get("enum"), list):
                hint = _closest(self._spelling(path), list(map(str, schema["enum"])))
                yield Problem(f"{key}: {self._spelling(path) or given} is not known", hint=hint)
                return
            expected = " or ".join(_TYPES.get(name, name) for name in wanted)
            hint = _rewrite(given, wanted, self._spelling(path))
            names = sorted(schema.get("properties", {}))
            if wanted == ["object"] and 0 < len(names) <= _MOST_NAMED:
                hint = f"set its keys, such as {key}.{names[0]}; known here: {', '.join(names)}"
            if path[:1] == (_HYPERPARAMETERS,) and match["got"] == "object":
                hint = f"give {key} the value itself: its type, default and bounds are in the model spec"
            yield Problem(f"{key}: {_show(given, match['got'])}, expected {expected}", hint=hint)
        elif match := _PATTERN.match(message):
            pattern = match["pattern"].replace("\\\\", "\\")
            hint = _explain_pattern(pattern.removeprefix(_OPTIONAL), path, match["given"])
            if not hint and "number" in str(schema.get("type")):
                yield Problem(f"{key}: {match['given']!r} is a string, expected a number")
                return
            hint = hint or f"expected a string that matches {pattern}"
            yield Problem(f"{key}: {match['given']!r} is not accepted", hint=hint)
        elif (match := _BOUND.match(message)) and match["rule"] in _BOUNDS:
            shown = self._spelling(path) or given or match["given"]
            is_text = "string" in schema.get("type", ()) or "anyOf" in schema
            hint = _as_text(given, str(shown)) if is_text and match["bound"] == _LARGEST else ""
            yield Problem(f"{key}: {shown} {_BOUNDS[match['rule']]} {match['bound']}", hint=hint)
        elif match := _CHOICE.match(message):
            choices = useful_choices(path[-1] if path else "", _names(match["choices"]))
            shown = repr(given) if given is not None else "the value"
            yield Problem(f"{key}: {shown} is not known", hint=_closest(str(given), choices))
        elif match := _MISSING.match(message):
            names = sorted(_names(match["names"]))
            if len(names) > _MANY:
                shown = ", ".join(self._called((*path, name)) for name in names[:_SHOWN])
                yield Problem(f"{shown} and {len(names) - _SHOWN} more are missing", hint=DAMAGED)
                return
            for name in names:
                about = str(self._schema((*path, name)).get("description", "")).split("\n")[0]
                missing = self._called((*path, name))
                hint = f"set it, for example by --set {missing}=VALUE{f': {about}' if about else ''}"
                is_null = self.asked.given.get((*self._prefix(), *path, name), "") in (None, "null")
                yield Problem(f"{missing}: null leaves it out" if is_null else f"{missing} is missing", hint=hint)
        elif message == "'not' failed" and given is not None:
            yield Problem(f"{key}: {given!r} is not accepted", hint=about)
        else:
            yield Problem(f"{key}: {message}", hint=about)

    def _invalid_key(self, name: str, refusal: _Refusal) -> Problem:
        """Tell of a name that may not be a key here; Helm says the wrong place, so the user's own value tells it."""
        places = [path for path in self.asked.given if name in path]
        shown = _dotted(places[0][: places[0].index(name) + 1]) if places else name
        patterns = [
            match["pattern"].replace("\\\\", "\\") for part in refusal.parts if (match := _PATTERN.match(part.message))
        ]
        hint = f"names match {patterns[0]}" if patterns else ""
        return Problem(f"{shown}: {name!r} is not a name that is accepted here", hint=hint)

    def _called(self, path: Path) -> str:
        return _dotted((*self._prefix(), *path)) or "values"

    def _prefix(self) -> Path:
        """Return the key under which the values of a subchart lie; a chart's own name is none."""
        return () if self.chart in ("", self.asked.chart) else (self.chart,)

    def _given(self, path: Path) -> Any:
        return self.asked.given.get((*self._prefix(), *path))

    def _spelling(self, path: Path) -> str:
        """Return how a values file writes a number, truth value or null."""
        return self.asked.spellings.get((*self._prefix(), *path), "")

    def _schema(self, path: Path) -> Schema:
        """Return the schema of the value at `path`, an empty one where there is none."""
        return find_schema(path, self.asked.schemas.get(self.chart, {}))

    def _suggest(self, path: Path, name: str) -> str:
        """Name the closest key beside an unknown one, for one at the top also below, else all that are known there."""
        known = list(self._schema(path).get("properties", {}))
        chart = self.chart or self.asked.chart or "the chart"
        if not path and "roles" in known and (instead := _explain_spec_key(name, chart)):
            return instead
        close = _near(name, known)
        if close:
            return f"did you mean {close}?"
        if path[-1:] == (_HYPERPARAMETERS,):
            return _explain_undeclared(name, known, chart)
        elsewhere = {key[-1]: key for key in reversed(list(self._keys((), 0))) if len(key) > 1}
        far = "" if path or name in _GENERIC else _near(name, list(elsewhere), _ELSEWHERE)
        if far:
            return f"did you mean {self._called(elsewhere[far])}?"
        hyperparameters = list(self._schema((_HYPERPARAMETERS,)).get("properties", {})) if not path else []
        for key in self.asked.given:
            if key[:-1] == (*self._prefix(), name) and key[-1] in hyperparameters:
                return f"did you mean {self._called((_HYPERPARAMETERS, key[-1]))}?"
        if len(known) > _MOST_NAMED >= len(hyperparameters) > 0:
            example = self._called((_HYPERPARAMETERS, hyperparameters[0]))
            names = ", ".join(hyperparameters)
            return f"hyperparameters ({names}) are set as {example}; {_FALLBACK}, as helm show values does"
        if len(known) > _MOST_NAMED:
            return f"{_FALLBACK}, as helm show values does"
        return f"known here: {', '.join(sorted(known))}" if known else _FALLBACK

    def _keys(self, path: Path, depth: int) -> Iterator[Path]:
        """Yield the keys of the schema, the upper ones first; those of Kubernetes' own objects are left out."""
        names = [(*path, name) for name in self._schema(path).get("properties", {})]
        yield from names
        for below in names if depth < 2 else ():
            yield from self._keys(below, depth + 1)


def _explain_undeclared(name: str, known: list[str], chart: str) -> str:
    """Return what to do instead of setting a hyperparameter that the model spec does not declare."""
    where = f"add {name} below `hyperparameters` in its model spec (models/{chart}.yaml)"
    if not known:
        return f"{chart} declares no hyperparameters: {where}, and read it in the program"
    others = "this also holds for those that the training library knows"
    return f"{chart} declares {', '.join(sorted(known))} only: {where}; {others}"


def _explain_spec_key(name: str, chart: str) -> str:
    """Return what to do instead of setting a key that only model specs have; "" for all others."""
    # Imported where it is needed: it imports all of the spec's model, which takes 40 ms.
    from trainchart.spec.model import ModelSpec

    if name == "strategy":
        return "a chart has one strategy: try another with trainchart run MODEL --strategy, or change the model spec"
    if name not in {field.alias for field in ModelSpec.model_fields.values()}:
        return ""
    command = ", or set command, for one release" if name == "code" else ""
    return f"{name} is a key of the model spec, not a value: change models/{chart}.yaml{command}"


def find_schema(path: Path, root: Schema) -> Schema:
    """Return the schema of the value at `path`, an empty one where there is none."""
    node = _resolve(root, root)
    for part in path:
        below = node.get("properties", {}).get(part)
        if below is None:
            below = node.get("items") if part.isdecimal() else node.get("additionalProperties")
        node = _resolve(below, root) if isinstance(below, Mapping) else {}
    return node


def _resolve(node: Schema, root: Schema, seen: set[int] | None = None) -> Schema:
    """Follow a $ref inside of the schema. Members of anyOf are taken together, each once: they may hold themselves.

    The chart may have been written by anyone: what is not a schema there counts as empty.
    """
    seen = set() if seen is None else seen
    found = resolve_reference(node, root)
    resolved = dict(found) if isinstance(found, Mapping) else {}
    if not isinstance(resolved.get("properties"), Mapping):
        resolved.pop("properties", None)
    choices = resolved.get("anyOf")
    properties: dict[str, Any] = {}
    for member in choices if isinstance(choices, list) else ():
        if isinstance(member, Mapping) and id(member) not in seen:
            seen.add(id(member))
            properties.update(_resolve(member, root, seen).get("properties", {}))
    return {**resolved, "properties": properties} if properties else resolved


def _show(given: Any, got: str) -> str:
    """Say what the given value is; what an option gives is a text here, whatever Helm makes of it."""
    kind = _TYPES.get(got, got)
    if got == "null":
        return "it has no value"
    if given is None or got == "boolean":
        return f"{kind} is given" if given is None else str(given)
    if got == "string" and re.fullmatch(r"[+-]?[0-9]*\.[0-9]+", str(given)):  # what --set makes of 1.5 is a string
        kind = _TYPES["number"]
        return f"{given} is {kind}"
    return f"{repr(given) if got == 'string' else given} is {kind}"


def _explain_pattern(pattern: str, path: Path, given: str) -> str:
    """Return how a text that has to match a well-known pattern is written; "" for other patterns."""
    if pattern == QUANTITY_PATTERN:
        return suggest_quantity(path[-1] if path else "", given)
    if pattern == DURATION_PATTERN:
        return f"for example {DURATION_EXAMPLES}"
    return "expected sha256: and 64 hexadecimal digits" if "sha256:[a-f0-9]{64})?$" in pattern else ""


def _as_text(given: Any, spelling: str) -> str:
    """Return how to give a text that would be read as something else; what an option gives is a text here."""
    return "give it as text: --set-string" if isinstance(given, str) else f'quote it: "{spelling}"'


def _rewrite(given: Any, wanted: list[str], spelling: str) -> str:
    """Return how to write a value that has the wrong type, where that is plain."""
    want = wanted[0] if len(wanted) == 1 else ""
    if not isinstance(given, str):
        return _as_text(given, spelling or str(given)) if want == "string" and isinstance(given, (int, float)) else ""
    if (
        want == "integer"
        and re.fullmatch(r"[+-]?[0-9]+(\.0*)?([eE]\+?[0-9]{1,2})?", given)
        and abs(float(given)) < 2**53
        and float(given).is_integer()
    ):
        whole = str(int(float(given)))
        return f"write {whole}" if given != whole else "give it as a number: --set, or without quotes"
    if want == "boolean" and given.lower() in ("yes", "on", "no", "off", "y", "n", "true", "false"):
        return f"write {str(given.lower() in ('yes', 'on', 'y', 'true')).lower()}"
    if want == "string" and not given.startswith("{"):
        return _as_text(given, given)
    if want == "array" and given:
        return f"write {{{given}}}"
    return ""


def _closest(word: str, choices: list[str]) -> str:
    close = _near(word, choices)
    return f"{f'did you mean {close}? ' if close else ''}known here: {', '.join(choices)}"


_BESIDE, _ELSEWHERE = 0.75, 0.85
"""How alike two words have to be, of 1, for one to be a slip of the other."""


def _near(word: str, known: list[str], cutoff: float = _BESIDE) -> str:
    lowered = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=cutoff)
    return lowered[close[0]] if close else ""


def _names(quoted: str) -> list[str]:
    return re.findall(r"'((?:[^'\\]|\\.)*)'", quoted) or [name.strip() for name in quoted.split(",")]


def _dotted(path: Path) -> str:
    return ".".join(path)
