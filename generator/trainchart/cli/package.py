"""The command `trainchart package`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json, print_line, refuse_empty

SignOption = Annotated[
    str,
    typer.Option(
        "--sign",
        help="Sign with this gpg key, and write the .prov file that helm verify reads. Needs gpg.",
        metavar="KEY",
        callback=refuse_empty,  # a version that is published without its signature never gets one
    ),
]


def register(app: typer.Typer) -> None:
    """Add `trainchart package` to `app`."""
    app.command("package")(package)


def package(
    chart: Annotated[Path, typer.Argument(help="Chart folder, or an archive to package again.", show_default=False)],
    destination: Annotated[
        Path, typer.Option("--destination", "-d", help="Folder for the archive; created if it does not exist.")
    ] = Path(),
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    allow_drift: Annotated[
        bool, typer.Option("--allow-drift", help="Package even if files differ from trainchart.lock.yaml.")
    ] = False,
    sign: SignOption = "",
    format_: FormatOption = Format.text,
) -> None:
    """Package a chart as a .tgz that helm can install: the same content gives the same bytes and identity.

    Example: trainchart package charts/mnist -d dist && helm install exp-7 dist/mnist-0.1.0.tgz
    """
    from trainchart.actions.package import package_chart

    packaged = package_chart(
        chart, destination, engine=engine, allow_drift=allow_drift, sign=sign, environment=os.environ
    )
    archive = packaged.archive
    if format_ is Format.json:
        print_json(
            {
                "path": str(packaged.path),
                "name": archive.name,
                "version": archive.version,
                "identity": archive.identity,
                "bytes": len(archive.data),
                "signature": str(packaged.signature or ""),
            }
        )
        return
    print_line(str(packaged.path))
    print_line(f"  identity  sha256:{archive.identity}")
    print_line(f"  size      {len(archive.data)} bytes, {len(archive.paths)} files")
    if packaged.signature:
        print_line(f"  signed    {packaged.signature}")
