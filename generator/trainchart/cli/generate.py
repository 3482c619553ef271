"""The command `trainchart generate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import find_charts
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note

ModelsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="Names of models, or spec files; all of models/ if none is given.",
        show_default=False,
        autocompletion=complete.models,
    ),
]
ChartsOption = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        help="Folder that holds the charts; the default is in the project.",
        callback=find_charts,
    ),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Discard what was edited or added by hand in the chart folders.")
]


def register(app: typer.Typer) -> None:
    """Add `trainchart generate` to `app`."""
    app.command("generate")(generate)


def generate(
    models: ModelsArgument = None,
    output: ChartsOption = Path("charts"),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail (6) if a chart is not up to date.")
    ] = False,
    overwrite: OverwriteOption = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Also regenerate charts that have not changed since the last time.")
    ] = False,
    format_: FormatOption = Format.text,
) -> None:
    """Generate charts from model specs. A chart that is up to date is left untouched.

    Refuses (exit code 6) to overwrite a chart that contains files edited or added by hand, and names each of them.

    Example: trainchart generate mnist && trainchart check charts/mnist
    """
    from trainchart.actions.generate import generate_charts
    from trainchart.actions.support.project import locate_specs

    specs = locate_specs(tuple(models or ()))
    if check:
        from trainchart.actions.support.chart_folder import require_up_to_date

        require_up_to_date(specs, output)
        print_note(f"{len(specs)} chart{'s' * (len(specs) != 1)} up to date")
        return
    charts = generate_charts(specs, output, overwrite=overwrite, use_cache=not no_cache)
    for note in (note for chart in charts for note in chart.notes):
        print_note(f"note: {note}")
    exposed = [chart.name for chart in charts if chart.gives_image_the_token]
    if exposed:
        print_note(
            "note: the run controller, the only pod that may use the Kubernetes API, runs from the training image in "
            f"{', '.join(exposed)}. trainchart image push --runtime REPOSITORY builds the runtime image; set "
            "run.controller.image to what it prints"
        )
    if format_ is Format.json:
        print_json(
            [{"name": c.name, "version": c.version, "path": str(c.chart), "changed": list(c.changed)} for c in charts]
        )
        return
    for chart in charts:
        files = f"{len(chart.changed)} file{'s' * (len(chart.changed) != 1)}"
        change = f"new, {files}" if chart.is_new else f"{files} changed" if chart.changed else "up to date"
        print_line(f"{chart.chart}  {chart.version}  {change}")
