"""Values that do not fit their own chart's schema, told with the line of the spec that set them.

The models check what trainchart defines; what it passes through to Kubernetes only the schema knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

from trainchart.errors import Problem, SpecError
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.typed import find_origin, suggest_word
from trainchart.schema_validation import make_validator


def require_fit(plan: ChartPlan, schema: Mapping[str, Any]) -> None:
    """Check the plan's values against their chart's schema.

    Raises:
        SpecError: names every value that `schema` refuses, in the order of the spec.
    """
    misfits = _find_misfits(plan, schema)
    if misfits:
        raise SpecError("the model spec is not valid", problems=misfits)


def _find_misfits(plan: ChartPlan, schema: Mapping[str, Any]) -> tuple[Problem, ...]:
    # Defaults of the models fit by construction, and are most of the values: what is left out is not missing.
    values = plan.values.model_dump(by_alias=True, exclude_defaults=True)
    errors = [
        jsonschema.exceptions.best_match([error])
        for error in make_validator(schema).iter_errors(values)
        if error.validator != "required"
    ]
    return tuple(problem for error in errors for problem in _tell(plan, error))


def _tell(plan: ChartPlan, error: jsonschema.ValidationError) -> Iterator[Problem]:
    path = tuple(error.absolute_path)
    known = list(error.schema.get("properties", ())) if isinstance(error.schema, dict) else []
    if error.validator == "additionalProperties" and known and isinstance(error.instance, dict):
        for name in error.instance:
            if name not in known:
                key, where = ".".join(map(str, (*path, name))), find_origin(plan.origins, (*path, name))
                yield Problem(f"unknown key {key}", str(where), suggest_word(str(name), known))
        return
    key, where = ".".join(map(str, path)), find_origin(plan.origins, path)
    yield Problem(f"{key}: {_one_line(error.message)}", str(where), _hint(plan, error))


def _hint(plan: ChartPlan, error: jsonschema.ValidationError) -> str:
    origin = plan.origins.get(tuple(error.absolute_path))
    if origin and origin.spelling and error.validator == "type" and "string" in str(error.validator_value):
        return f'quote it: "{origin.spelling}"'
    return "see the Kubernetes API reference for this field" if "io.k8s" in str(error.schema_path) else ""


def _one_line(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "..."
