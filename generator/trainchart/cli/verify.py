"""The command `trainchart verify`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json, print_line
from trainchart.cli.publish import InsecureRegistryOption, PlainHttpOption


def register(app: typer.Typer) -> None:
    """Add `trainchart verify` to `app`."""
    app.command("verify")(verify)


def verify(
    chart: Annotated[
        str,
        typer.Argument(
            help="Chart folder or archive, or oci://HOST/PATH/NAME:VERSION or …@sha256:DIGEST.", show_default=False
        ),
    ],
    spec: Annotated[
        Path | None,
        typer.Option(
            "--spec",
            help="Its model spec. Default: the one that the chart's lock names, or models/NAME.yaml, in the project of "
            "the current folder.",
        ),
    ] = None,
    keyring: Annotated[
        Path | None,
        typer.Option(
            "--keyring", help="Public keys, as written by gpg --export. One of them must have signed the chart."
        ),
    ] = None,
    images: Annotated[
        bool, typer.Option("--images", help="Ask the registries whether the images exist, by tag and digest.")
    ] = False,
    plain_http: PlainHttpOption = False,
    insecure_registry: InsecureRegistryOption = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine for --images: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    format_: FormatOption = Format.text,
) -> None:
    """Generate a chart again from its spec, compare every byte, and check the signature in the .prov file beside it.

    For a chart in a registry, the attached provenance is also compared with the chart, and the reference by digest is
    printed. Install by that reference: a tag can be moved at any time. Exits with 6 if anything is wrong, and with 8 if
    nothing is wrong, but a registry does not respond.

    Example: trainchart verify charts/mnist
    """
    from trainchart.actions.support.repository_access import ImageAccess
    from trainchart.actions.verify import VerifyOptions, verify_chart

    access = ImageAccess(os.environ, tuple(insecure_registry or ())) if images else None
    found = verify_chart(chart, VerifyOptions(spec, keyring, access, engine, plain_http, os.environ))
    if format_ is Format.json:
        print_json(
            {
                "name": found.name,
                "version": found.version,
                "identity": found.identity,
                "spec": str(found.spec),
                "isSigned": found.is_signed,
                "hasProvenance": found.has_provenance,
                "reference": found.pinned,
                "images": [{"image": image.image, "digest": image.digest} for image in found.images],
            }
        )
        return
    print_line(f"{found.name} {found.version} is what {found.spec} gives")
    print_line(f"  identity  sha256:{found.identity}")
    print_line(f"  signature {'valid' if found.is_signed else 'none'}")
    if chart.startswith("oci://"):
        print_line(f"  origin    {'valid' if found.has_provenance else 'none'}")
        print_line(f"  install   {found.pinned}")
    for image in found.images:
        print_line(f"  image     {image.image} is there: {image.digest}")
