"""What every command that writes a new model spec does: a name that charts can have, no file in the way, the schema."""

from __future__ import annotations

import json
from pathlib import Path

from trainchart.actions.schema import read_spec_schema
from trainchart.actions.support.models import render_plan, resolve_with_schema
from trainchart.errors import ToolError
from trainchart.packs.pack import Pack
from trainchart.scaffold.spec_text import SCHEMA_FILE
from trainchart.spec.document import Document

NAME_RULE = "at most 40 lower-case letters, digits and dashes, starting with a letter"


def require_new(name: str, models: Path) -> None:
    """Refuse a name whose spec is there with the other suffix. Raises ToolError."""
    other = models / f"{name}.yml"
    if other.exists():
        raise ToolError(f"{other} already exists", hint="choose another name, or move it away")


def require_chart(spec: Document, packs: tuple[Pack, ...] = ()) -> None:
    """Refuse here what generate would refuse later.

    Raises:
        SpecError, PlanError: no chart can be made of the spec; every problem with its line.
    """
    plan, schema, locks = resolve_with_schema(spec, packs)
    render_plan(plan, schema, packs, locks)


def render_schema_file(models: Path) -> tuple[Path, str]:
    """Return the file with the schema of specs that editors read, and what it has to say."""
    text = json.dumps(read_spec_schema(), indent=2, ensure_ascii=False) + "\n"
    return models / SCHEMA_FILE, text
