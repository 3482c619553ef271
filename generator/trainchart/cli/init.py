"""The command `trainchart init`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.errors import UsageError

_EXAMPLES = """
Examples:

  trainchart init first && trainchart run first

  trainchart init second --strategy parameter-server

  trainchart init third --from-script code/train.py --image registry.example.com/ml/third

  trainchart init team-a --family tenant
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart init` to `app`."""
    app.command("init", epilog=_EXAMPLES)(init)


def init(
    name: Annotated[str, typer.Argument(help="Name of the new model or chart.", show_default=False)],
    strategy: Annotated[
        str,
        typer.Option(
            "--strategy",
            help="Distribution strategy. Default: detected from the script, or else single.",
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
    family: Annotated[
        str,
        typer.Option(
            "--family",
            help="Start a chart of this family: console, model-server, monitoring, notebook, static-volumes, "
            "tenant, or one from a pack.",
            autocompletion=complete.families,
        ),
    ] = "",
    format_: FormatOption = Format.text,
) -> None:
    """Start a model: write its spec, and a training script that is ready to run. Never overwrites existing files."""
    from trainchart.actions.init import InitRequest, init_chart, init_model

    if family:
        _require_no_model_options(strategy, from_script, image)
        chart = init_chart(name, family)
        if format_ is Format.json:
            print_json({"name": chart.name, "family": chart.family, "files": [str(chart.file)]})
            return
        print_line(str(chart.file))
        print_note(f"next: set values in {chart.file}, then: trainchart generate {chart.name}")
        return
    made = init_model(InitRequest(name, strategy, image, from_script))
    for note in made.notes:
        print_note(f"note: {note}")
    if format_ is Format.json:
        print_json({"name": made.name, "strategy": made.strategy, "files": [str(file) for file in made.files]})
        return
    for file in made.files:
        print_line(str(file))
    print_note(f"next: {made.next}")


def _require_no_model_options(strategy: str, from_script: Path | None, image: str) -> None:
    given = {"--strategy": strategy, "--from-script": from_script, "--image": image}
    wrong = [option for option, value in given.items() if value]
    if wrong:
        raise UsageError(f"{wrong[0]} is for models, and cannot be used with --family", hint="use one of the two")
