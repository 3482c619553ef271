"""The commands `trainchart pack init` and `check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note

group = typer.Typer(
    help="Set defaults for all models of a repository: start and check packs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def register(app: typer.Typer) -> None:
    """Add `trainchart pack` to `app`."""
    app.add_typer(group, name="pack")


@group.command("init")
def init(
    name: Annotated[str, typer.Argument(help="Name of the new pack.", show_default=False)],
    format_: FormatOption = Format.text,
) -> None:
    """Start a pack in packs/NAME, and a trainchart.yaml that names it where there is none.

    Example: trainchart pack init platform
    """
    from trainchart.actions.pack import init_pack

    made = init_pack(name)
    if format_ is Format.json:
        print_json({"name": made.name, "files": [str(file) for file in made.files]})
        return
    for file in made.files:
        print_line(str(file))
    print_note(f"next: {made.next}")


@group.command("check")
def check(
    packs: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of packs. Default: those of the project.", show_default=False),
    ] = None,
    format_: FormatOption = Format.text,
) -> None:
    """Check packs for every strategy, without a model that uses them.

    Example: trainchart pack check packs/platform
    """
    from trainchart.actions.pack import check_packs

    checked = check_packs(tuple(packs or ()))
    if format_ is Format.json:
        print_json([{"name": pack.name, "version": pack.version, "folder": pack.place} for pack in checked])
        return
    for pack in checked:
        print_line(f"{pack.place}  {pack.title}  valid")
