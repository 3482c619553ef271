"""values.schema.json of a chart: the values model, narrowed to this chart's roles, volumes and hyperparameters.

Closed everywhere except free-form maps. A number accepts the text that `--set` makes of 0.01, with a pattern.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.layers import APPEND_MARK
from trainchart.plan.strategies import STRATEGIES
from trainchart.spec.model import Hyperparameter, ModelSpec
from trainchart.spec.section import EXACT, KUBERNETES_DEFINITION, Section
from trainchart.spec.settings import EVERY_POD_SETTINGS, POD_SETTINGS
from trainchart.spec.values import Values
from trainchart_runtime.cluster import WORKER

DRAFT = "https://json-schema.org/draft/2020-12/schema"
KUBERNETES_VERSION = "1.37"
"""Whose definitions describe pass-through fields; fixed, so that charts do not depend on what is newest."""
NUMBER_PATTERN = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
TEXT_PATTERN = r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$"
"""A text that YAML can hold as it is: no control characters but tab and newline."""
SUBCHART_KEYS: Mapping[str, Any] = {
    "global": {"type": "object", "description": "Values of a parent chart, ignored here."},
    "enabled": {"type": "boolean", "description": "For a parent chart's dependency condition, ignored here."},
}
SCHEMAS_BY_NAME = ("properties", "patternProperties", "dependentSchemas")
"""Keywords behind which there is a schema for each name."""
_REF = "#/$defs/"
_KUBERNETES = "io.k8s."

Schema = dict[str, Any]
_dump_line = json.JSONEncoder(ensure_ascii=False).encode


class ApiDefinitions:
    """Schemas of the Kubernetes API by name (io.k8s.api.core.v1.Toleration ...), as charts take them over.

    Each is made once, however many charts need it. Shared, so no caller may change it.
    """

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._made: dict[str, tuple[Schema, frozenset[str]]] = {}

    def find(self, name: str) -> tuple[Schema, frozenset[str]]:
        """Return a schema, and the names of those that it refers to. Raises KeyError."""
        if name not in self._made:
            schema = _tidy(self._definitions[name], drop=("description",))
            self._made[name] = schema, frozenset(_references(schema))
        return self._made[name]


def render_values_schema(plan: ChartPlan, api: ApiDefinitions) -> Schema:
    """Return the JSON Schema of the plan's values, with what they refer to of Kubernetes."""
    model = _model_schema(Values)
    properties = dict(model["properties"])
    definitions = {**model["$defs"], "VolumeSettings": _volume(plan, model["$defs"]["VolumeSettings"])}
    properties["volumes"] = _closed(
        properties["volumes"], {name: {"$ref": f"{_REF}VolumeSettings"} for name in plan.spec.volumes}
    )
    properties["hyperparameters"] = _closed(
        properties["hyperparameters"],
        {name: render_hyperparameter_schema(parameter) for name, parameter in plan.spec.hyperparameters.items()},
        optional={name for name, parameter in plan.spec.hyperparameters.items() if parameter.default is None},
    )
    properties["roles"] = _closed(properties["roles"], {role: _role(plan, role) for role in plan.roles})
    properties.update(SUBCHART_KEYS)
    schema = {key: value for key, value in model.items() if key != "$defs"} | {"properties": properties}
    used = _reachable(schema, definitions, api)
    return {"$schema": DRAFT, "title": f"Values of the chart {plan.name}", **schema, "$defs": used}


def render_family_schema(chart: str, values: Schema, api: ApiDefinitions) -> Schema:
    """Return the JSON Schema of a chart of a family; `values` is the family's, closed.

    Raises:
        KeyError: it names a definition that Kubernetes does not have.
    """
    schema: Schema = _tidy({**values, "properties": {**values["properties"], **SUBCHART_KEYS}})
    used = _reachable(schema, {}, api)
    definitions = {"$defs": used} if used else {}
    return {"$schema": DRAFT, "title": f"Values of the chart {chart}", **schema, **definitions}


@functools.cache
def _model_schema(model: type[Section]) -> Schema:
    """Return the schema that all charts start from. Shared, so no caller may change it."""
    schema: Schema = _tidy(model.model_json_schema(by_alias=True))
    # values.yaml has every key at the top level, so a missing one was deleted with `--set key=null`.
    schema["required"] = list(schema["properties"])
    for definition in schema["$defs"].values():
        properties = definition.get("properties", {})
        if properties.keys() > EVERY_POD_SETTINGS:
            properties.update({key: {"$ref": f"#/properties/{key}"} for key in properties.keys() & POD_SETTINGS})
    return schema


def render_hyperparameter_schema(parameter: Hyperparameter) -> Schema:
    """Return the schema of one hyperparameter as Helm delivers it."""
    bounds = parameter.model_dump(
        by_alias=True, exclude_none=True, include={"minimum", "exclusive_minimum", "maximum", "exclusive_maximum"}
    )
    shapes: dict[str, Schema] = {
        "number": {"type": ["number", "string"], "pattern": NUMBER_PATTERN},
        "integer": {"type": "integer", **EXACT},
        "string": {"type": ["string", "integer"], "pattern": TEXT_PATTERN, **EXACT},
        "boolean": {"type": "boolean"},
    }
    description = {"description": parameter.description} if parameter.description else {}
    # What looks like an integer arrives as one from `--set`.
    options = {"enum": [*parameter.enum, *map(int, filter(str.isdecimal, parameter.enum))]} if parameter.enum else {}
    return {**description, **shapes[parameter.type], **bounds, **options}


def _role(plan: ChartPlan, role: str) -> Schema:
    """Return the schema of one role: what all have, and how many pods there may be.

    Not by allOf, behind which Helm's messages lose the key.
    """
    replicas = STRATEGIES[plan.spec.strategy].roles[role]
    bounded: Schema = {"minimum": replicas.minimum, "maximum": replicas.maximum}
    if role == WORKER and STRATEGIES[plan.spec.strategy].has_one_worker:
        bounded["description"] = (
            f"Number of pods: {plan.spec.strategy} has one worker. multi-worker-mirrored and parameter-server share "
            "the work among several; trainchart run --strategy tries one."
        )
    return {"$ref": f"{_REF}RoleSettings", "properties": {"replicas": bounded}}


def _volume(plan: ChartPlan, settings: Schema) -> Schema:
    """Return the schema of a volume, which only roles of this chart can mount."""
    roles = {**settings["properties"]["roles"], "items": {"enum": list(plan.roles)}}
    return {**settings, "properties": {**settings["properties"], "roles": roles}}


def _closed(section: Schema, properties: Mapping[str, Schema], optional: Collection[str] = ()) -> Schema:
    """Return an object schema that knows exactly `properties`, and needs all but the `optional` ones."""
    return {
        "description": section.get("description", ""),
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _reachable(schema: Schema, definitions: Mapping[str, Any], api: ApiDefinitions) -> Schema:
    """Return the definitions that `schema` needs, directly or through others, sorted by name."""
    found: Schema = {}
    waiting = sorted(set(_references(schema)))
    while waiting:
        name = waiting.pop()
        if name not in found:
            if name.startswith(_KUBERNETES):
                found[name], references = api.find(name)
            else:
                found[name], references = definitions[name], frozenset(_references(definitions[name]))
            waiting += references
    return {name: found[name] for name in sorted(found)}


def dump_schema(schema: Schema) -> str:
    """Return a schema as JSON with one line per property, and per definition of Kubernetes."""
    return _dump(schema, "") + "\n"


def _dump(schema: Schema, indent: str) -> str:
    return _dump_lines(
        {
            key: _dump_named(value, f"{indent} ") if key in ("properties", "$defs") else _dump_line(value)
            for key, value in schema.items()
        },
        indent,
    )


def _dump_named(schemas: Schema, indent: str) -> str:
    return _dump_lines(
        {
            name: _dump(schema, f"{indent} ")
            if "properties" in schema and not name.startswith(_KUBERNETES)
            else _dump_line(schema)
            for name, schema in schemas.items()
        },
        indent,
    )


def _dump_lines(members: Mapping[str, str], indent: str) -> str:
    return "{\n" + ",\n".join(f"{indent} {_dump_line(key)}: {text}" for key, text in members.items()) + f"\n{indent}}}"


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_REF):
            yield reference.removeprefix(_REF)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _tidy(node: Any, drop: tuple[str, ...] = ()) -> Any:
    """Return a copy without the keywords that only bloat a schema: titles, defaults, vendor extensions.

    Properties that happen to be called `title` or `default` are kept: only texts and defaults of schemas go.
    """
    if isinstance(node, list):
        return [_tidy(value, drop) for value in node]
    if not isinstance(node, dict):
        return node
    if KUBERNETES_DEFINITION in node:
        node = {**node, "$ref": _REF + node[KUBERNETES_DEFINITION]}
    return {
        key: {name: _tidy(value, drop) for name, value in child.items()}
        if key in SCHEMAS_BY_NAME
        else _tidy(child, drop)
        for key, child in node.items()
        if key not in ("title", "default", KUBERNETES_DEFINITION, *drop) and not key.startswith("x-kubernetes-")
    }


def render_spec_schema(defaults: Mapping[str, Any], api: ApiDefinitions) -> Schema:
    """Return the JSON Schema of model specs as authors write them, below the built-in `defaults`.

    A key is required only where no default supplies it; a section with `enabled` may be given as a boolean.
    """
    schema: Schema = _tidy(ModelSpec.model_json_schema(by_alias=True))
    definitions = schema.pop("$defs")
    schema["required"] = [key for key in schema["required"] if key not in defaults or key in _PARTLY_DEFAULTED]
    for name, definition in definitions.items():
        if name not in _REQUIRED_AS_WRITTEN:
            definition.pop("required", None)
    definitions["Image"]["required"] = ["repository", "tag"]
    for node in [schema, *definitions.values()]:
        for key, value in node.get("properties", {}).items():
            target = definitions.get(str(value.get("$ref", "")).removeprefix(_REF), {})
            if "enabled" in target.get("properties", {}):
                node["properties"][key] = {"anyOf": [value, {"type": "boolean"}]}
    for section in ("roles", "volumes"):
        entry = schema["properties"][section]["additionalProperties"]
        schema["properties"][section]["additionalProperties"] = {"anyOf": [entry, {"type": "null"}]}
    for node in [schema, *(node for name, node in definitions.items() if name not in _REQUIRED_AS_WRITTEN)]:
        node.setdefault("properties", {}).update(_list_appends(node.get("properties", {})))
    used = _reachable(schema, definitions, api)
    return {"$schema": DRAFT, "title": "trainchart model spec", **schema, "$defs": used}


def _list_appends(properties: Mapping[str, Schema]) -> Schema:
    """Return the keys by which a spec adds to the lists of the layers below."""
    return {
        f"{key}{APPEND_MARK}": {**schema, "description": f"Adds to {key} of the packs and built-in defaults."}
        for key, schema in properties.items()
        if schema.get("type") == "array"
    }


_PARTLY_DEFAULTED = ("image",)
"""Sections with some defaults, but not for what only the author can know."""
_REQUIRED_AS_WRITTEN = ("Code", "Hyperparameter", "Maintainer")
"""Sections that have no defaults of their own: what their models require, an author must write."""
