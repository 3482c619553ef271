"""The command `trainchart verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json


def register(app: typer.Typer) -> None:
    """Add `trainchart verify` to `app`."""
    app.command("verify")(verify)


def verify(
    chart: Annotated[Path, typer.Argument(help="Chart folder or archive.", show_default=False)],
    spec: Annotated[
        Path | None, typer.Option("--spec", help="Its model spec. Default: what the lock names, or models/NAME.yaml.")
    ] = None,
    keyring: Annotated[
        Path | None, typer.Option("--keyring", help="Public keys, as gpg --export writes them. Default: your own.")
    ] = None,
    format_: FormatOption = Format.text,
) -> None:
    """Make a chart again from its spec, compare it byte by byte, and check the signature in the .prov file beside it.

    Example: trainchart verify charts/mnist
    """
    from trainchart.actions.verify import verify_chart

    found = verify_chart(chart, spec=spec, keyring=keyring)
    if format_ is Format.json:
        print_json(
            {
                "name": found.name,
                "version": found.version,
                "identity": found.identity,
                "spec": str(found.spec),
                "isSigned": found.is_signed,
            }
        )
        return
    print(f"{found.name} {found.version} is what {found.spec} gives")
    print(f"  identity  sha256:{found.identity}")
    print(f"  signature {'holds' if found.is_signed else 'none'}")
