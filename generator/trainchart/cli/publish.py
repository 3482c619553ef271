"""The command `trainchart publish`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json
from trainchart.cli.package import SignOption

ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        help="Repository: oci://HOST/PATH, https://HOST/PATH (WebDAV), chartmuseum+https://HOST, or a folder.",
        show_default=False,
    ),
]
PlainHttpOption = Annotated[
    bool, typer.Option("--plain-http", help="Speak HTTP without encryption to oci:// and http:// addresses.")
]


def register(app: typer.Typer) -> None:
    """Add `trainchart publish` to `app`."""
    app.command("publish")(publish)


def publish(
    chart: Annotated[Path, typer.Argument(help="Chart folder or archive.", show_default=False)],
    to: ToOption,
    plain_http: PlainHttpOption = False,
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    allow_drift: Annotated[
        bool, typer.Option("--allow-drift", help="Publish even if files differ from trainchart.lock.yaml.")
    ] = False,
    sign: SignOption = "",
    format_: FormatOption = Format.text,
) -> None:
    """Publish a chart. The same content again is success, other content under that version is refused.

    A folder is packed as `trainchart package` does; an archive goes as it is, with the .prov file beside it.
    Logs in as helm and docker do, or with TRAINCHART_USERNAME and TRAINCHART_PASSWORD.

    Example: trainchart publish charts/mnist --to oci://registry.example.com/charts
    """
    from trainchart.actions.publish import publish_chart
    from trainchart.actions.repository_access import Address

    done = publish_chart(
        chart, Address(to, plain_http), engine=engine, allow_drift=allow_drift, sign=sign, environment=os.environ
    )
    publication = done.publication
    if format_ is Format.json:
        print_json(
            {
                "name": done.name,
                "version": done.version,
                "identity": done.identity,
                "digest": publication.digest,
                "reference": publication.reference,
                "isNew": publication.is_new,
                "isSigned": publication.is_signed,
            }
        )
        return
    print(publication.reference)
    print(f"  {'published' if publication.is_new else 'was published before, with the same content'}")
    print(f"  identity  sha256:{done.identity}")
    print(f"  digest    {publication.digest}")
    print(f"  signature {'there' if publication.is_signed else 'none'}")
