"""The published JSON Schema of model specs."""

from __future__ import annotations

from typing import Any

from trainchart.actions.support.models import read_api_definitions
from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.render.schema import render_spec_schema
from trainchart.resources import read_builtin_defaults
from trainchart.spec.document import parse_document


def read_spec_schema() -> dict[str, Any]:
    """Return the schema of what an author writes: only what no default supplies is required."""
    name, text = read_builtin_defaults()
    defaults = parse_document(text, file=name, layer=BUILTIN_LAYER).tree
    return render_spec_schema(defaults, read_api_definitions())
