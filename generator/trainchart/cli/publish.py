"""The command `trainchart publish`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.cli.package import SignOption

if TYPE_CHECKING:
    from trainchart.actions.support.repository_access import Address, ImageAccess

OtherBuild = Mapping[str, tuple[str, str]]
"""Build annotations that differ: as published, and as they are here."""
ToOption = Annotated[
    str,
    typer.Option(
        "--to",
        help="Repository: oci://HOST/PATH, https://HOST/PATH (WebDAV), chartmuseum+https://HOST, or a folder.",
        show_default=False,
    ),
]
PlainHttpOption = Annotated[
    bool, typer.Option("--plain-http", help="Use HTTP without encryption for oci:// and http:// addresses.")
]
SkipImageCheckOption = Annotated[
    bool,
    typer.Option(
        "--skip-image-check", help="Publish without checking that the chart's images are in their registries."
    ),
]
InsecureRegistryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--insecure-registry",
        help="Image registry to reach without encryption, such as registry.lan:5000; repeatable.",
        metavar="HOST",
    ),
]

OwnersOption = Annotated[
    Path | None,
    typer.Option(
        "--artifacthub-repo",
        help="Also publish this file for Artifact Hub, as artifacthub-repo.yml next to index.yaml or in a registry.",
        metavar="FILE",
    ),
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
    skip_image_check: SkipImageCheckOption = False,
    insecure_registry: InsecureRegistryOption = None,
    artifacthub_repo: OwnersOption = None,
    format_: FormatOption = Format.text,
) -> None:
    """Publish a chart. Publishing the same content again succeeds; other content under the same version is refused.

    A chart whose images are not in their registries is also refused. A folder is packaged as by `trainchart package`;
    an archive is published unchanged, with the .prov file beside it. Logs in as helm and docker do, or with
    TRAINCHART_USERNAME and TRAINCHART_PASSWORD.

    Example: trainchart publish charts/mnist --to oci://registry.example.com/charts
    """
    from trainchart.actions.publish import PublishOptions, publish_chart
    from trainchart.actions.support.repository_access import Address

    address = Address(to, plain_http)
    images = choose_image_access(address, skip_image_check, insecure_registry)
    options = PublishOptions(images, engine, allow_drift, sign, artifacthub_repo, os.environ)
    done = publish_chart(chart, address, options)
    publication = done.publication
    warn_of_refusal(publication.refused)
    print_warnings(done.warnings)
    if format_ is Format.json:
        print_json(
            {
                "name": done.name,
                "version": done.version,
                "identity": done.identity,
                "digest": publication.digest,
                "reference": publication.reference,
                "isNew": publication.is_new,
                "otherBuild": describe_other_build(publication.other_build),
                "isSigned": publication.is_signed,
                "provenanceRefused": publication.refused,
                "imageCheck": describe_image_check(skip_image_check, publication.is_new),
            }
        )
        return
    print_line(publication.reference)
    print_publication(publication.is_new, publication.other_build)
    print_line(f"  identity  sha256:{done.identity}")
    print_line(f"  digest    {publication.digest}")
    print_line(f"  signature {'there' if publication.is_signed else 'none'}")
    print_line(f"  images    {describe_image_check(skip_image_check, publication.is_new)}")


def choose_image_access(to: Address, is_skipped: bool, insecure_registries: list[str] | None) -> ImageAccess | None:
    """Return how images are to be looked for; None, with a warning, where the user says that they are not."""
    from trainchart.actions.support.repository_access import ImageAccess

    if is_skipped:
        print_note("warning: did not check whether the chart's images are in their registries (--skip-image-check)")
        return None
    return ImageAccess(os.environ, tuple(insecure_registries or ()), beside=to)


def warn_of_refusal(refused: str) -> None:
    """Say where a registry has taken the chart, but not what says where it comes from."""
    if refused:
        print_note(f"warning: the chart is published without its provenance: {refused}")


def print_warnings(warnings: tuple[str, ...]) -> None:
    """Say what users of a published version should know."""
    for warning in warnings:
        print_note(f"warning: {warning}")


def print_publication(is_new: bool, other_build: OtherBuild) -> None:
    """Say whether a version is new, and what another build says that was published before."""
    print_line(f"  {'published' if is_new else 'was already published with the same content'}")
    for key, (there, here) in other_build.items():
        print_line(
            f"    built differently: {key} is {there or 'missing'} in the published chart, {here or 'missing'} here"
        )


def describe_other_build(other_build: OtherBuild) -> dict[str, dict[str, str]]:
    """Return the build annotations that differ, as in the JSON result."""
    return {key: {"published": there, "here": here} for key, (there, here) in other_build.items()}


def describe_image_check(is_skipped: bool, is_needed: bool) -> str:
    """Return what became of the check of images, as results say it."""
    if is_skipped:
        return "skipped"
    return "found" if is_needed else "not needed"
