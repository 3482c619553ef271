"""The commands `trainchart release` and `trainchart deprecate`."""

from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note, refuse_empty
from trainchart.cli.package import SignOption
from trainchart.cli.publish import (
    InsecureRegistryOption,
    OwnersOption,
    PlainHttpOption,
    SkipImageCheckOption,
    ToOption,
    choose_image_access,
    describe_image_check,
    describe_other_build,
    print_publication,
    print_warnings,
    warn_of_refusal,
)

if TYPE_CHECKING:
    from trainchart.actions.release import Released

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would be published.")]


class BumpChoice(enum.StrEnum):
    patch = "patch"
    minor = "minor"
    major = "major"


def register(app: typer.Typer) -> None:
    """Add `trainchart release` and `trainchart deprecate` to `app`."""
    app.command("release")(release)
    app.command("deprecate")(deprecate)


def release(
    model: Annotated[
        str,
        typer.Argument(
            help="Name of a model in models/, or a spec file.", show_default=False, autocompletion=complete.models
        ),
    ],
    to: ToOption,
    bump: Annotated[
        BumpChoice | None,
        typer.Option("--bump", help="Raise the version by at least this much, if anything has changed."),
    ] = None,
    pre_release: Annotated[
        str,
        typer.Option(
            "--pre-release",
            help="Publish a pre-release of the next version, such as dev.12+g1a2b3c.",
            callback=refuse_empty,
        ),
    ] = "",
    dry_run: DryRunOption = False,
    plain_http: PlainHttpOption = False,
    sign: SignOption = "",
    skip_image_check: SkipImageCheckOption = False,
    insecure_registry: InsecureRegistryOption = None,
    artifacthub_repo: OwnersOption = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    format_: FormatOption = Format.text,
) -> None:
    """Publish the next version of a model's chart, decided from what changed since the last one.

    If nothing has changed, nothing is published. The changes are listed in the chart's CHANGELOG.md; no local file is
    written. A chart whose images are not in their registries is refused.

    Example: trainchart release mnist --to oci://registry.example.com/charts
    """
    from trainchart.actions.release import ReleaseOptions, release_model
    from trainchart.actions.support.repository_access import Address
    from trainchart.compare.version import Bump

    address = Address(to, plain_http)
    options = ReleaseOptions(
        choose_image_access(address, skip_image_check, insecure_registry),
        at_least=Bump[bump.value] if bump else Bump.none,
        pre_release=pre_release,
        sign=sign,
        engine=engine,
        is_dry_run=dry_run,
        owners=artifacthub_repo,
        environment=os.environ,
    )
    released = release_model(model, address, options)
    _print(released, format_, describe_image_check(skip_image_check, released.archive is not None))


def deprecate(
    model: Annotated[
        str,
        typer.Argument(
            help="Name of a model, which is also its chart's name.", show_default=False, autocompletion=complete.models
        ),
    ],
    to: ToOption,
    reason: Annotated[
        str,
        typer.Option("--reason", help="Why, and what to use instead.", show_default=False, callback=refuse_empty),
    ],
    dry_run: DryRunOption = False,
    plain_http: PlainHttpOption = False,
    sign: SignOption = "",
    format_: FormatOption = Format.text,
) -> None:
    """Publish a version of a chart that marks it as deprecated; earlier versions stay unchanged.

    Example: trainchart deprecate mnist --to oci://registry.example.com/charts --reason "use digits instead"
    """
    from trainchart.actions.release import ReleaseOptions, deprecate_chart
    from trainchart.actions.support.repository_access import Address

    options = ReleaseOptions(None, sign=sign, is_dry_run=dry_run, environment=os.environ)
    released = deprecate_chart(model, reason, Address(to, plain_http), options)
    _print(released, format_, describe_image_check(True, False))


def _print(released: Released, format_: Format, image_check: str) -> None:
    publication = released.publication
    print_warnings(released.warnings)
    if publication is not None:
        warn_of_refusal(publication.refused)
    if format_ is Format.json:
        print_json(
            {
                "name": released.name,
                "lastVersion": released.last,
                "version": released.version,
                "effect": released.changes.effect_text if released.changes else "",
                "isNew": publication is not None and publication.is_new,
                "otherBuild": describe_other_build(publication.other_build if publication else {}),
                "identity": released.archive.identity if released.archive else "",
                "digest": publication.digest if publication else "",
                "reference": publication.reference if publication else "",
                "provenanceRefused": publication.refused if publication else "",
                "imageCheck": image_check,
                "changelog": released.entry,
            }
        )
    elif released.archive is None:
        print_note(f"{released.name}: nothing has changed since {released.last}")
    elif publication is None:
        print_line(f"{released.name} {released.version} would be published\n\n{released.entry}", end="")
    else:
        print_line(publication.reference)
        print_publication(publication.is_new, publication.other_build)
        print_line(f"  identity  sha256:{released.archive.identity}\n  digest    {publication.digest}")
        print_line(f"  images    {image_check}\n\n{released.entry}", end="")
