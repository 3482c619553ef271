"""The form of a chart's values, made of its values.yaml and values.schema.json, and what is typed there. Pure.

The chart may come from anywhere, so what it says is bounded, and its patterns are left to helm: Python may never end
with one. Keys that are no plain words, lists and mappings have no field: they are for the YAML text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainchart.console.installing import NOWHERE, YAML, Typed
from trainchart.helm.rendering import merge_maps
from trainchart.json_documents import resolve_reference
from trainchart.kubernetes_yaml import YamlError, find_duplicate_keys, parse_documents

FIELDS_SHOWN = 160
_CHOICES_SHOWN = 60
_HELP_LENGTH = 400
_NODE_LIMIT = 20_000
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
_LARGEST = 2**53 - 1
"""The bound of every integer of a generated chart says nothing to a user."""
_WHOLE = re.compile(r"[+-]?[0-9]{1,16}", re.ASCII)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?", re.ASCII)
_HYPERPARAMETERS, _ROLES, _RUN, _IMAGE = "hyperparameters", "roles", "run", "image"
_ROLE_KEYS = {"replicas": "Pods", "gpus": "GPUs", "cpu": "CPU", "memory": "Memory"}
_RUN_KEYS = ("maxSteps", "activeDeadline", "startDeadline", "maxRestarts", "noProgressTimeout", "resume", "queue")
_IMAGE_KEYS = ("repository", "tag", "digest")


@dataclass(frozen=True)
class Field:
    """One value that has a field of its own."""

    key: str
    label: str
    help: str
    rule: str
    """What may be typed, in words."""
    default: str
    """The chart's own value, as it is typed."""
    choices: tuple[str, ...]
    """All that may be chosen; empty where it is typed."""
    is_number: bool
    types: frozenset[str]
    options: tuple[Any, ...]
    """The values of the choices."""

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(self.key.split("."))


@dataclass(frozen=True)
class Section:
    """Fields that belong together."""

    title: str
    about: str
    fields: Sequence[Field]
    is_compact: bool = False
    """Whether its fields stand in one row."""


def make_form(values: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Section]:
    """Return what a user changes first."""
    maker = _Maker(values, schema)
    sections = [
        Section("Hyperparameters", "", list(maker.list_fields((_HYPERPARAMETERS,)))),
        *maker.list_roles(),
        Section("Run", "", list(maker.list_fields((_RUN,), _RUN_KEYS))),
        Section("Image", "", list(maker.list_fields((_IMAGE,), _IMAGE_KEYS))),
    ]
    found = [section for section in sections if section.fields]
    return found or [section for section in [Section("Values", "", list(maker.list_fields(())))] if section.fields]


def list_fields(sections: Iterable[Section]) -> list[Field]:
    """Return the fields of a form."""
    return [field for section in sections for field in section.fields]


@dataclass
class _Maker:
    values: Mapping[str, Any]
    schema: Mapping[str, Any]
    made: int = 0

    def list_roles(self) -> Iterator[Section]:
        roles = self.values.get(_ROLES)
        for name in roles if isinstance(roles, Mapping) else ():
            if _KEY.fullmatch(str(name)):
                fields = [
                    replace(field, label=_ROLE_KEYS[field.path[-1]])
                    for field in self.list_fields((_ROLES, str(name)), tuple(_ROLE_KEYS))
                ]
                yield Section(f"Role {name}", "", fields, is_compact=True)

    def list_fields(self, path: tuple[str, ...], names: Sequence[str] = ()) -> Iterator[Field]:
        """Yield the fields of the values below `path`, or of some of them."""
        values, schema = _find_value(self.values, path), self._find_schema(path)
        properties = schema.get("properties")
        for name in names or values:
            if self.made >= FIELDS_SHOWN:
                return
            value = values.get(name)
            if name not in values or not _KEY.fullmatch(str(name)) or isinstance(value, (Mapping, list)):
                continue
            below = properties.get(name) if isinstance(properties, Mapping) else None
            made = _make_field((*path, str(name)), value, _as_schema(below, self.schema))
            if made is not None:
                self.made += 1
                yield made

    def _find_schema(self, path: tuple[str, ...]) -> Mapping[str, Any]:
        node = _as_schema(self.schema, self.schema)
        for name in path:
            properties = node.get("properties")
            node = _as_schema(properties.get(name) if isinstance(properties, Mapping) else None, self.schema)
        return node


def _find_value(values: Mapping[str, Any], path: Iterable[str]) -> Mapping[str, Any]:
    for name in path:
        below = values.get(name)
        values = below if isinstance(below, Mapping) else {}
    return values


def _as_schema(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    found = resolve_reference(node, root)
    return found if isinstance(found, Mapping) else {}


def _make_field(path: tuple[str, ...], value: Any, schema: Mapping[str, Any]) -> Field | None:
    types = _find_types(value, schema)
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    if low is not None and low == high:
        return None  # nothing to choose
    options = _find_options(value, schema, types)
    about = schema.get("description")
    return Field(
        key=".".join(path),
        label=_make_label(path[-1]),
        help=_cut(about) if isinstance(about, str) else "",
        rule="" if options else _describe_rule(schema, types, low, high),
        default=spell(value),
        choices=tuple(map(spell, options)),
        is_number=bool(types) and types <= {"integer", "number"},
        types=types,
        options=options,
    )


def _find_types(value: Any, schema: Mapping[str, Any]) -> frozenset[str]:
    given = schema.get("type")
    names = [given] if isinstance(given, str) else given if isinstance(given, list) else ()
    found = frozenset(name for name in names if isinstance(name, str))
    if found:
        return found
    if isinstance(value, bool):
        return frozenset({"boolean"})
    return frozenset({"number"} if isinstance(value, (int, float)) else {"string"})


def _find_options(value: Any, schema: Mapping[str, Any], types: frozenset[str]) -> tuple[Any, ...]:
    if types == {"boolean"}:
        return (True, False)
    choices = schema.get("enum")
    if not isinstance(choices, list) or not 1 < len(choices) <= _CHOICES_SHOWN:
        return ()
    if any(isinstance(choice, (Mapping, list)) for choice in choices):
        return ()
    return tuple(choices) if spell(value) in map(spell, choices) else (value, *choices)


def _bound(schema: Mapping[str, Any], name: str) -> float | None:
    value = schema.get(name)
    # Compared before it is used: an integer may be too large for anything else.
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST
    return float(value) if is_number else None  # type: ignore[arg-type]


def _describe_rule(schema: Mapping[str, Any], types: frozenset[str], low: float | None, high: float | None) -> str:
    if not types & {"integer", "number"} or ("string" in types and "number" not in types):
        return ""  # words such as 30m and never, which the help names
    kind = "a whole number" if "number" not in types else "a number" if "string" not in types else ""
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    bounds = [
        f"at least {low:g}" if low is not None and kind else "",
        f"more than {above:g}" if above is not None else "",
        f"at most {high:g}" if high is not None else "",
        f"less than {below:g}" if below is not None else "",
    ]
    if low is not None and high is not None and kind:
        bounds = [f"{low:g} to {high:g}"]
    return ", ".join(filter(None, [kind, *bounds]))


def _make_label(name: str) -> str:
    """Return the words of a key: batchSize → Batch size."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ").split()
    lowered = [word if word.isupper() and len(word) > 1 else word.lower() for word in words]
    text = " ".join(lowered)
    return text[:1].upper() + text[1:]


def _cut(text: str) -> str:
    joined = " ".join(text[: 4 * _HELP_LENGTH].split())
    return joined if len(joined) <= _HELP_LENGTH else f"{joined[: _HELP_LENGTH - 1]}…"


def spell(value: Any) -> str:
    """Return a value as a user types it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class ReadValues:
    """What was typed, as values."""

    changed: Mapping[str, Any]
    """Those that differ from the chart's."""
    problems: Mapping[str, list[str]]


def read_values(sections: Sequence[Section], defaults: Mapping[str, Any], typed: Typed) -> ReadValues:
    """Return the values that were typed, those of the YAML text over those of the fields."""
    given: Mapping[str, Any] = {}
    for field in list_fields(sections):
        text = typed.fields.get(field.key, field.default).strip()
        # An empty field means the chart's own value, since no other value of a number is empty.
        if text and text != field.default:
            given = merge_maps(given, _nest(field.path, _read(field, text)))
    try:
        more = _read_yaml(typed.yaml)
    except YamlError as error:
        where = f"line {error.line}: " if error.line else ""
        return ReadValues(_drop_equal(given, defaults), {YAML: [f"{where}{error.message}"]})
    return ReadValues(_drop_equal(merge_maps(given, more), defaults), {})


def _read_yaml(text: str) -> Mapping[str, Any]:
    documents = parse_documents(text, node_limit=_NODE_LIMIT)
    if not documents:
        return {}
    for twice in find_duplicate_keys(text):
        raise YamlError(f"the key {twice.key} appears twice", twice.line)
    if len(documents) > 1 or not isinstance(documents[0], dict):
        raise YamlError("expected keys with their values, such as image: {pullPolicy: Always}")
    return documents[0]


def _read(field: Field, text: str) -> Any:
    """Return what a text means; what it cannot mean stays a text, which helm refuses in its own words."""
    if text in field.choices:
        return field.options[field.choices.index(text)]
    if field.types & {"integer", "number"} and _WHOLE.fullmatch(text):
        return int(text)
    if "number" in field.types and len(text) < 40 and _NUMBER.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


def _nest(path: Sequence[str], value: Any) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    return dict(value)


def _drop_equal(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return what differs from the defaults."""
    changed: dict[str, Any] = {}
    for name, value in given.items():
        default = defaults.get(name)
        if isinstance(value, Mapping) and value and isinstance(default, Mapping):
            below = _drop_equal(value, default)
            if below:
                changed[name] = below
        elif name not in defaults or not _is_same(value, default):
            changed[name] = value
    return changed


def _is_same(value: Any, default: Any) -> bool:
    # 1 == True, and 1 == 1.0, which are different values to helm.
    return type(value) is type(default) and json.dumps(value, sort_keys=True) == json.dumps(default, sort_keys=True)


def place_problem(message: str, sections: Sequence[Section], typed: Typed) -> tuple[str, str]:
    """Return the field that a problem about `KEY: what is wrong` belongs to, and what to say there."""
    key, sign, text = message.partition(": ")
    fields = [field.key for field in list_fields(sections)]
    # What the YAML text says counts, so it is there that it is corrected.
    if sign and key in fields and not _is_set(typed.yaml, key):
        return key, text[:1].upper() + text[1:]
    return (YAML if typed.yaml.strip() else NOWHERE), message


def _is_set(yaml: str, key: str) -> bool:
    try:
        node: Any = _read_yaml(yaml)
    except YamlError:
        return False
    for name in key.split("."):
        if not isinstance(node, Mapping) or name not in node:
            return False
        node = node[name]
    return True
