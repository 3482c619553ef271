"""The command `trainchart init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note

_EXAMPLES = """
Examples:

  trainchart init first && trainchart run first

  trainchart init second --strategy parameter-server

  trainchart init third --from-script code/train.py --image registry.example.com/ml/third
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart init` to `app`."""
    app.command("init", epilog=_EXAMPLES)(init)


def init(
    name: Annotated[str, typer.Argument(help="Name of the new model.", show_default=False)],
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="How it is distributed. Default: what the script shows, else single.",
            autocompletion=complete.strategies,
        ),
    ] = "",
    from_script: Annotated[
        Path | None,
        typer.Option("--from-script", help="Your training script: its flags become hyperparameters. It is not run."),
    ] = None,
    image: Annotated[
        str, typer.Option("--image", help="Repository of the image. Default: registry.example.com/NAME.")
    ] = "",
    format_: FormatOption = Format.text,
) -> None:
    """Start a model: write its spec, and a script that is ready to train. Existing files are never overwritten."""
    from trainchart.actions.init import InitRequest, init_model

    made = init_model(InitRequest(name, strategy, image, from_script))
    for note in made.notes:
        print_note(f"note: {note}")
    if format_ is Format.json:
        print_json({"name": made.name, "strategy": made.strategy, "files": [str(file) for file in made.files]})
        return
    for file in made.files:
        print_line(str(file))
    print_note(f"next: {made.next}")
