"""The commands `trainchart pack init`, `check`, `accept`, `admission`, `publish`, `update` and `vendor`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli.options import ContextOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.cli.publish import PlainHttpOption, ToOption, print_publication
from trainchart.cli.signals import end_in_order

if TYPE_CHECKING:
    from trainchart.actions.pack import FetchedPack

group = typer.Typer(
    help="Set defaults and rules for all models of a repository: start, check, publish and download packs.",
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
    """Start a pack in packs/NAME. If there is no trainchart.yaml, write one that names it.

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
    engines: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            help="Helm engine: auto, sdk, binary or the path of a helm program; repeat it to compare engines. Default: "
            "the package helm-python-sdk and the helm on PATH, if installed.",
            show_default=False,
        ),
    ] = None,
    install: Annotated[
        bool,
        typer.Option(
            "--install",
            help="Also install each test of the families on a cluster, in its own new namespace; upgrade it to each "
            "set of values in ci/, run helm test, and remove it with its namespace.",
        ),
    ] = False,
    context: ContextOption = "",
    format_: FormatOption = Format.text,
) -> None:
    """Check packs with every strategy; no model is needed. If a pack has templates, Helm renders charts with them.

    The tests of a pack's families are rendered as well, and must pass all checks. All Helm engines must render the same
    objects. With --install, the tests must also work on the cluster: use a test cluster.

    Example: trainchart pack check packs/platform
    """
    from trainchart.actions.pack import check_packs, install_packs

    folders = tuple(packs or ())
    checked = check_packs(folders, engines=tuple(engines or ("auto",)))
    if install:
        end_in_order()
        install_packs(folders, context, print_note)
    if format_ is Format.json:
        print_json([{"name": pack.name, "version": pack.version, "path": pack.path} for pack in checked])
        return
    for pack in checked:
        print_line(f"{pack.path}  {pack.title}  valid")


@group.command("accept")
def accept(
    pack: Annotated[Path, typer.Argument(help="Folder of the pack.", show_default=False)],
    format_: FormatOption = Format.text,
) -> None:
    """Accept the current text of the blocks that a pack's templates override.

    Writes the blocks into the pack's bases/ folder. When a block changes, generate and pack check fail and show the
    change.

    Example: trainchart pack accept packs/platform
    """
    from trainchart.actions.pack import accept_blocks

    accepted = accept_blocks(pack)
    if format_ is Format.json:
        print_json(
            [{"template": str(one.template), "block": one.block, "isChanged": one.is_changed} for one in accepted]
        )
        return
    for one in accepted:
        print_line(f"{one.template}  {one.block}  {'accepted' if one.is_changed else 'unchanged'}")
    if not accepted:
        print_note("the pack overrides no blocks")


@group.command("admission")
def admission(
    packs: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of packs. Default: those of the project.", show_default=False),
    ] = None,
    namespaces: Annotated[
        str,
        typer.Option("--namespaces", metavar="LABEL=VALUE", help="Label of the namespaces in which the rules apply."),
    ] = "trainchart=bounded",
    format_: FormatOption = Format.text,
) -> None:
    """Print the rules of packs as ValidatingAdmissionPolicies, so that the API server enforces them.

    An expired waiver ends on the cluster only when you apply the output again: do so every day.

    Example: trainchart pack admission > admission.yaml
    """
    from trainchart.actions.pack import make_admission
    from trainchart.kubernetes_yaml import dump_mapping

    documents = make_admission(tuple(packs or ()), namespaces)
    if format_ is Format.json:
        print_json({"apiVersion": "v1", "kind": "List", "items": documents})
    elif documents:
        print_line("---\n".join(map(dump_mapping, documents)), end="")
    else:
        print_note("the packs define no rules over objects")


@group.command("publish")
def publish(
    pack: Annotated[Path, typer.Argument(help="Folder of the pack.", show_default=False)],
    to: ToOption,
    plain_http: PlainHttpOption = False,
    format_: FormatOption = Format.text,
) -> None:
    """Publish a pack in a chart repository or registry, as a library chart. A published version is immutable.

    Logs in as `trainchart publish` does.

    Example: trainchart pack publish packs/platform --to oci://registry.example.com/packs
    """
    from trainchart.actions.pack import publish_pack
    from trainchart.actions.support.repository_access import Address

    done = publish_pack(pack, Address(to, plain_http), os.environ)
    if format_ is Format.json:
        print_json({"reference": done.reference, "digest": done.digest, "isNew": done.is_new})
        return
    print_line(done.reference)
    print_publication(done.is_new, done.other_build)
    print_line(f"  digest    {done.digest}")


@group.command("update")
def update(
    locked: Annotated[
        bool, typer.Option("--locked", help="Download exactly what packs.lock.yaml names; fail (7) if it has changed.")
    ] = False,
    plain_http: PlainHttpOption = False,
    format_: FormatOption = Format.text,
) -> None:
    """Download the packs from the repositories that trainchart.yaml names, and lock their content in packs.lock.yaml.

    No other command downloads packs. In CI, use --locked.

    Example: trainchart pack update && trainchart generate
    """
    from trainchart.actions.pack import update_packs

    _print_fetched(update_packs(is_locked=locked, plain_http=plain_http, environment=os.environ), format_)


@group.command("vendor")
def vendor(plain_http: PlainHttpOption = False, format_: FormatOption = Format.text) -> None:
    """Copy the packs that packs.lock.yaml names into vendor/packs, to commit them and use them without a network.

    Example: trainchart pack vendor
    """
    from trainchart.actions.pack import vendor_packs

    _print_fetched(vendor_packs(plain_http=plain_http, environment=os.environ), format_)


def _print_fetched(packs: tuple[FetchedPack, ...], format_: Format) -> None:
    if format_ is Format.json:
        print_json(
            [{**pack.locked.model_dump(), "path": str(pack.path), "isChanged": pack.is_changed} for pack in packs]
        )
        return
    for pack in packs:
        print_line(f"{pack.locked.source}  {'locked' if pack.is_changed else 'unchanged'}  {pack.path}")
    if not packs:
        print_note("trainchart.yaml names no pack from a repository")
