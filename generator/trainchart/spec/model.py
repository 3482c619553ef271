"""The model spec itself: identity, code, strategy and hyperparameters, plus the sections shared with the values.

The text form is read by document.py; what a spec leaves out comes from the layers of defaults (plan/layers.py).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from trainchart.spec.section import EXACT, LARGEST_INTEGER, Annotations, Line, Section
from trainchart.spec.values import SharedValues

NAME_PATTERN = r"^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$"
HYPERPARAMETER_PATTERN = r"^[a-z][A-Za-z0-9]*$"

StrategyName = Literal[
    "single",
    "mirrored",
    "multi-worker-mirrored",
    "parameter-server",
    "between-graph-async",
    "between-graph-sync",
    "in-graph",
]


class Maintainer(Section):
    name: str
    email: str = ""
    url: str = ""


class Framework(Section):
    """The TensorFlow that the training image holds."""

    tensorflow: Annotated[str, Field(pattern=r"^[0-9]+\.[0-9]+(\.[0-9]+)?$")]
    """Version of TensorFlow."""
    flavour: Literal["cpu", "gpu"]
    """cpu, or gpu for an image with the CUDA libraries."""


class Code(Section):
    """The training code."""

    path: Annotated[str, Field(min_length=1)]
    """Folder with the training code, relative to the folder that holds models/; becomes /app in the image."""
    command: Annotated[list[str], Field(min_length=1)]
    """Program and arguments, run in that folder."""


FiniteNumber = Annotated[float, Field(allow_inf_nan=False)] | int


_WHOLE: dict[str, Any] = {
    "if": {"properties": {"type": {"const": "integer"}}},
    "then": {
        "properties": dict.fromkeys(("default", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"), EXACT)
    },
}
"""Other numbers may be larger: a schema cannot tell 1e300 from an integer."""


class Hyperparameter(Section):
    """One typed hyperparameter with its default and bounds."""

    model_config = ConfigDict(json_schema_extra=_WHOLE)

    type: Literal["number", "integer", "string", "boolean"]
    """JSON type of the value."""
    default: FiniteNumber | str | bool | None = None
    """Value used unless an experiment sets another one; without it, the program decides."""
    description: Line = ""
    """What it does; becomes the comment in values.yaml."""
    minimum: FiniteNumber | None = None
    """Smallest value."""
    exclusive_minimum: FiniteNumber | None = None
    """The value must be greater than this."""
    maximum: FiniteNumber | None = None
    """Largest value."""
    exclusive_maximum: FiniteNumber | None = None
    """The value must be less than this."""
    enum: Annotated[list[str], Field(min_length=1)] | None = None
    """The only strings allowed."""

    @model_validator(mode="after")
    def _agrees(self) -> Hyperparameter:
        problems = list(_disagreements(self))
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _disagreements(parameter: Hyperparameter) -> list[str]:
    """Return how the default and the bounds contradict the type or each other."""
    fits: dict[str, tuple[type, ...]] = {
        "number": (int, float),
        "integer": (int,),
        "string": (str,),
        "boolean": (bool,),
    }
    default = parameter.default
    found = []
    is_of_type = isinstance(default, fits[parameter.type]) and not (
        isinstance(default, bool) and parameter.type != "boolean"
    )
    if default is not None and not is_of_type:
        found.append(_describe_other_type(default, parameter.type))
    bounds: dict[str, Any] = {
        "minimum": parameter.minimum,
        "exclusiveMinimum": parameter.exclusive_minimum,
        "maximum": parameter.maximum,
        "exclusiveMaximum": parameter.exclusive_maximum,
    }
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    too_large = [
        value for value in (default, *given.values()) if isinstance(value, int) and abs(value) > LARGEST_INTEGER
    ]
    if too_large:
        found.append(f"{too_large[0]} exceeds the integers that Helm represents exactly, ±(2^53 - 1)")
    if given and parameter.type not in ("number", "integer"):
        found.append(f"{', '.join(given)} need type number or integer")
    elif not found:
        found += [
            f"default {default} breaks {name} {bound}"
            for name, bound in given.items()
            if default is not None and not isinstance(default, str) and not _holds(name, default, bound)
        ]
    if parameter.enum is not None and parameter.type != "string":
        found.append("enum is for strings only: use type string, or minimum and maximum")
    elif parameter.enum is not None and default is not None and default not in parameter.enum:
        found.append(f"default {default!r} is not one of {', '.join(parameter.enum)}")
    return found


_EXPECTED = {"number": "a number", "integer": "a whole number", "string": "a string", "boolean": "true or false"}
_UNQUOTED = {"number": r"-?\d+(\.\d+)?([eE][-+]?\d+)?", "integer": r"-?\d+", "boolean": "true|false"}


def _describe_other_type(default: float | str | bool, wanted: str) -> str:
    """Return what a default is instead of what it has to be, and how to write it where that can be told."""
    if isinstance(default, str):
        is_quoted = wanted in _UNQUOTED and re.fullmatch(_UNQUOTED[wanted], default)
        kind, better = "a string", default if is_quoted else ""
    elif isinstance(default, bool):
        kind, better = "a truth value", '"true"' if default else '"false"'
    else:
        is_whole = wanted == "integer" and float(default).is_integer()
        kind, better = "a number", f"{default:.0f}" if is_whole else f'"{default}"'
    shown = str(default).lower() if isinstance(default, bool) else repr(default)
    if not isinstance(default, str) and wanted != "string" and better.startswith('"'):
        better = ""
    return f"default: {shown} is {kind}, expected {_EXPECTED[wanted]}" + (f"; write {better}" if better else "")


def _holds(name: str, value: float | int, bound: float | int) -> bool:
    return {
        "minimum": value >= bound,
        "exclusiveMinimum": value > bound,
        "maximum": value <= bound,
        "exclusiveMaximum": value < bound,
    }[name]


class ModelSpec(SharedValues):
    """A complete model spec: what the author wrote, with every gap filled by defaults."""

    api_version: Literal["trainchart/v1"]
    """Version of this format."""
    kind: Literal["Model"]
    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    """Name of the model and of its chart: lower-case letters, digits and dashes, at most 40 characters."""
    version: str
    """Version of the chart (SemVer)."""
    description: Annotated[Line, Field(min_length=1)]
    """One sentence on what is trained."""
    home: str
    """Home page."""
    icon: str
    """Address of an icon."""
    license: str
    """SPDX identifier of the chart's licence."""
    sources: list[str]
    """Addresses of the source code."""
    keywords: list[str]
    maintainers: list[Maintainer]
    annotations: Annotations
    """Further annotations of Chart.yaml."""
    framework: Framework
    code: Code
    strategy: StrategyName
    """How the training is distributed."""
    hyperparameters: dict[Annotated[str, Field(pattern=HYPERPARAMETER_PATTERN)], Hyperparameter]
    """Typed hyperparameters, each settable at install."""

    @property
    def leader(self) -> str:
        """Role whose pod 0 decides about the end of the training, and writes the checkpoints."""
        return "chief" if "chief" in self.roles else "worker"

    @property
    def log_volume(self) -> str:
        """Volume that holds TensorBoard's summaries, empty where there is none."""
        return next((name for name in ("logs", "checkpoints") if name in self.volumes), "")
