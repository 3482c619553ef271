"""Building blocks of the spec and values models: closed sections, quantities, durations and pass-through pod fields.

The sections themselves are in settings.py and values.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

from trainchart.durations import DURATION_PATTERN, parse_duration
from trainchart.quantities import QUANTITY_PATTERN

ENV_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
RESERVED_ENV_PATTERN = r"^(TRAINCHART_.*|TF_CONFIG)$"
"""Refused by the plan and in _refusals.tpl; a schema could only say that a name is not allowed, and not why."""
QUEUE_KEY_PATTERN = (
    r"(?i)queue|(^|[./-])gang|pod-?group|task-?group|scheduling\.k8s\.io/group-name"
    r"|^(.*\.)?(kueue\.x-k8s\.io|volcano\.sh|yunikorn\.apache\.org|kai\.scheduler|quota\.scheduling\.koordinator\.sh)/"
    r"|^koordinator\.sh/quota|^applicationId$"
)
"""Labels and annotations by which queues and gang schedulers (Kueue, Volcano, YuniKorn, coscheduling, Koordinator, KAI)
let pods wait for each other or for their turn. The run controller, TensorBoard and `helm test` must not wait."""
LARGEST_INTEGER = 2**53 - 1
"""Helm carries numbers as 64-bit floats, which hold every integer up to here apart from its neighbours."""
OBJECT_NAME_PATTERN = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$"
LABEL_VALUE_PATTERN = r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$"
PLACEHOLDERS = ("$(TRAINCHART_RELEASE)", "$(TRAINCHART_NAMESPACE)")
"""What stands for the release's name and namespace in labels, annotations, extra manifests and fields that fill in."""
PLACEHOLDER_PATTERN = r"\$\(TRAINCHART_[A-Z_]*\)"
FILLED_LABEL_PATTERN = rf"{LABEL_VALUE_PATTERN}|^[A-Za-z0-9._-]*({PLACEHOLDER_PATTERN}[A-Za-z0-9._-]*)+$"
LABEL_KEY_PATTERN = r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"


class Section(BaseModel):
    """A closed mapping with camelCase keys: unknown keys and coerced types are refused."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )


def section_of(annotation: Any) -> type[Section] | None:
    """Return the closed section that an annotation names, itself or as the values of a mapping."""
    candidates = [annotation, *getattr(annotation, "__args__", ())]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, Section)), None)


@dataclass(frozen=True)
class JsonSchema:
    """Replaces the JSON Schema that pydantic would derive; title and description stay pydantic's."""

    schema: Mapping[str, Any]

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        del core_schema, handler
        return dict(self.schema)


@dataclass(frozen=True)
class PassThrough(JsonSchema):
    """Marks a field that a pod template takes as it is: a role's own value wins over the chart-wide one.

    `key` is the field's name in Kubernetes; `place` is where it goes: into the pod spec, into the training
    container, or appended to the list of that name which the chart writes itself. `merge` keeps the chart-wide
    keys that a role's mapping does not name. `fills` lets its texts name the release by PLACEHOLDERS.
    """

    key: str
    place: Literal["pod", "container", "append"]
    merge: bool = False
    fills: bool = False


LOCKED = "Locked by "
"""Begins the description of a value that packs lock, in the schema of a chart: errors about it give the reason."""
KUBERNETES_DEFINITION = "kubernetesDefinition"
"""Keyword that stands for a $ref, because pydantic resolves every $ref itself; render/schema.py replaces it."""


def kubernetes(definition: str, group: str = "core.v1") -> dict[str, Any]:
    """Reference a definition of the Kubernetes API, for example `Toleration`."""
    return {KUBERNETES_DEFINITION: f"io.k8s.api.{group}.{definition}"}


def list_of(definition: str) -> dict[str, Any]:
    return {"type": "array", "items": kubernetes(definition)}


_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


def _named(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, **properties}}


# Only what the templates read; the rest is for `trainchart check` and the API server, which know all of it.
OWN_CONTAINERS: dict[str, Any] = {
    "type": "array",
    "items": _named({"command": _TEXTS, "args": _TEXTS, "env": {"type": "array", "items": _named({})}}),
}
OWN_VOLUMES: dict[str, Any] = {"type": "array", "items": _named({"emptyDir": {"type": ["object", "null"]}})}

EXACT: dict[str, Any] = {"minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER}
"""Bounds of numbers that become texts."""
STRING_MAP: dict[str, Any] = {
    "type": "object",
    "additionalProperties": {"type": ["string", "integer", "boolean"], **EXACT},
}
LABEL_MAP: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": LABEL_KEY_PATTERN},
    # A number becomes a text, and "-5" is no label.
    "additionalProperties": {"type": ["string", "integer"], "pattern": FILLED_LABEL_PATTERN, **EXACT, "minimum": 0},
}
ANNOTATION_MAP: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": LABEL_KEY_PATTERN},
    "additionalProperties": {"type": ["string", "integer", "boolean"], **EXACT},
}
# A number that --set delivers as a string is still a quantity; an empty string means "not set".
_QUANTITY_SCHEMA: dict[str, Any] = {
    "type": ["string", "number"],
    "pattern": QUANTITY_PATTERN,
    **EXACT,
    "minimum": 0,
}
_OPTIONAL_QUANTITY_SCHEMA: dict[str, Any] = {
    "type": ["string", "number"],
    "pattern": f"^$|{QUANTITY_PATTERN}",
    **EXACT,
    "minimum": 0,
}
_DURATION_SCHEMA: dict[str, Any] = {"type": ["string", "integer"], "pattern": DURATION_PATTERN, "minimum": 0}
_ENV_SCHEMA: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": ENV_NAME_PATTERN},
    "additionalProperties": {
        "anyOf": [
            {"type": ["string", "number", "boolean"], **EXACT},
            {
                "type": "object",
                "properties": {"valueFrom": kubernetes("EnvVarSource")},
                "required": ["valueFrom"],
                "additionalProperties": False,
            },
        ]
    },
}

TEXT_MAPS = (STRING_MAP, LABEL_MAP, ANNOTATION_MAP, _ENV_SCHEMA)
"""Mappings whose values become texts, whatever YAML makes of them."""


def _one_line(text: str) -> str:
    """Return `text` with its white space collapsed; texts end up in comments and tables."""
    line = " ".join(text.split())
    if not line.isprintable():
        raise ValueError("the text holds control characters")
    return line


def _duration(value: str | int) -> str | int:
    parse_duration(value)
    return value


Line = Annotated[str, AfterValidator(_one_line)]
Quantity = Annotated[str | int | float, JsonSchema(_QUANTITY_SCHEMA)]
OptionalQuantity = Annotated[str | int | float, JsonSchema(_OPTIONAL_QUANTITY_SCHEMA)]
Duration = Annotated[str | int, AfterValidator(_duration), JsonSchema(_DURATION_SCHEMA)]
Text = Annotated[str | int, JsonSchema({"type": ["string", "integer"], **EXACT})]
Labels = Annotated[dict[str, str | int], JsonSchema(LABEL_MAP)]
Annotations = Annotated[dict[str, str | int | bool], JsonSchema(ANNOTATION_MAP)]
Resources = Annotated[dict[str, Any], JsonSchema(kubernetes("ResourceRequirements"))]
Env = Annotated[dict[str, Any], JsonSchema(_ENV_SCHEMA)]
ObjectName = Annotated[str, Field(pattern=OBJECT_NAME_PATTERN)]
"""Name of a Kubernetes object, or nothing."""
Count = Annotated[int, Field(ge=0)]
Port = Annotated[int, Field(ge=1, le=65535)]
