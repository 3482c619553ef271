"""The command `trainchart schema`."""

from __future__ import annotations

import typer

from trainchart.cli.output import print_json


def register(app: typer.Typer) -> None:
    """Add `trainchart schema` to `app`."""
    app.command("schema")(schema)


def schema() -> None:
    """Print the JSON Schema of model specs, for editors and for checks without trainchart.

    Example: trainchart schema > model.schema.json, then start a spec with
    `# yaml-language-server: $schema=model.schema.json`.
    """
    from trainchart.actions.schema import read_spec_schema

    print_json(read_spec_schema())
