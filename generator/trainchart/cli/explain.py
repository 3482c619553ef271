"""The command `trainchart explain`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_lines


def register(app: typer.Typer) -> None:
    """Add `trainchart explain` to `app`."""
    app.command("explain")(explain)


def explain(
    model: Annotated[
        str,
        typer.Argument(help="Name of a model, or its spec file.", show_default=False, autocompletion=complete.models),
    ],
    key: Annotated[
        str,
        typer.Argument(
            help="Dotted key, such as roles.worker.cpu; all keys if left out.", autocompletion=complete.spec_keys
        ),
    ] = "",
    format_: FormatOption = Format.text,
) -> None:
    """Show which layer, file and line set a value of a model, and which values of earlier layers it overrides.

    Example: trainchart explain mnist roles.worker
    """
    from trainchart.actions.plan import explain_key

    found = explain_key(model, key)
    if format_ is Format.json:
        print_json([asdict(explanation) for explanation in found])
        return
    for explanation in found:
        where = f"{explanation.origin} ({explanation.origin.layer})" if explanation.origin else "empty by default"
        print_lines([f"{explanation.key} = {_dump(explanation.value)}  # {where}"])
        for setting in explanation.overridden:
            verb = "adds to" if setting.extended else "overrides"
            print_lines([f"  {verb} {_dump(setting.value)}  # {setting.origin} ({setting.origin.layer})"])


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
