"""The command `trainchart plan`."""

from __future__ import annotations

from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note


def register(app: typer.Typer) -> None:
    """Add `trainchart plan` to `app`."""
    app.command("plan")(plan)


def plan(
    model: Annotated[
        str,
        typer.Argument(help="Name of a model, or its spec file.", show_default=False, autocompletion=complete.models),
    ],
    format_: FormatOption = Format.text,
) -> None:
    """Print the plan of a chart: the spec with every default filled in, exactly what is rendered.

    Example: trainchart plan mnist --format json
    """
    from trainchart.actions.plan import read_plan
    from trainchart.kubernetes_yaml import dump_mapping

    resolved, notes = read_plan(model)
    for note in notes:
        print_note(f"note: {note}")
    if format_ is Format.json:
        print_json(resolved)
    else:
        print_line(dump_mapping(resolved), end="")
