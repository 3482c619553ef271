"""The command `trainchart versions`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_line
from trainchart.cli.publish import PlainHttpOption

FromOption = Annotated[
    str, typer.Option("--from", help="Repository, in the form that publish takes.", show_default=False, metavar="URL")
]


def register(app: typer.Typer) -> None:
    """Add `trainchart versions` to `app`."""
    app.command("versions")(versions)


def versions(
    model: Annotated[
        str,
        typer.Argument(
            help="Name of a model, which is also its chart's name.", show_default=False, autocompletion=complete.models
        ),
    ],
    from_: FromOption,
    plain_http: PlainHttpOption = False,
    format_: FormatOption = Format.text,
) -> None:
    """List the published versions of a model's chart, the newest first, with digests, dates and deprecations.

    Example: trainchart versions mnist --from oci://registry.example.com/charts
    """
    from trainchart.actions.support.repository_access import Address
    from trainchart.actions.versions import list_published
    from trainchart_runtime.log_text import clean

    found = list_published(model, Address(from_, plain_http), os.environ)
    if format_ is Format.json:
        print_json(
            [
                {
                    "version": version.version,
                    "digest": version.digest,
                    "identity": version.identity,
                    "created": version.created,
                    "isDeprecated": version.is_deprecated,
                }
                for version in found
            ]
        )
        return
    width = max(len(version.version) for version in found)
    for version in found:
        note = "  deprecated" if version.is_deprecated else ""
        line = f"{version.version:{width}}  {version.created[:10] or '?':10}  {version.digest or '?'}{note}"
        print_line(clean(line))  # an index may hold any text
