"""The command `trainchart upgrade`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.generate import ChartsOption, ModelsArgument, OverwriteOption
from trainchart.cli.options import ContextOption, NamespaceOption
from trainchart.cli.output import Format, FormatOption, print_json, print_lines, print_note
from trainchart.cli.upgrade_display import describe_upgrade, upgrade_lines
from trainchart.errors import ChecksFailed, UsageError

_MANY = 20
"""Charts whose comparison takes long enough to report progress."""


def register(app: typer.Typer) -> None:
    """Add `trainchart upgrade` to `app`."""
    app.command("upgrade")(upgrade)


def upgrade(
    models: ModelsArgument = None,
    output: ChartsOption = Path("charts"),
    check: Annotated[
        bool, typer.Option("--check", help="Show what would change, write nothing, and fail (6) if anything would.")
    ] = False,
    overwrite: OverwriteOption = False,
    bump: Annotated[
        bool, typer.Option("--bump", help="Also write the next version of each changed chart into its model spec.")
    ] = False,
    live: Annotated[
        bool,
        typer.Option("--live", help="Also list the releases on the cluster, and what an upgrade of each would do now."),
    ] = False,
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="With --live: the releases in every namespace.")
    ] = False,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    format_: FormatOption = Format.text,
) -> None:
    """Generate all charts again after trainchart or a pack has changed, and show each kind of change once.

    Also shows what an upgrade does to releases that were installed from the charts on disk. Like generate, it refuses
    (6) charts that were edited by hand. No option changes a release: --live only reads the cluster and prints the helm
    commands.

    Example: trainchart upgrade --check
    """
    from trainchart.actions.support.project import locate_specs
    from trainchart.actions.upgrade import UpgradeOptions, plan_upgrade, write_upgrade

    if not live and (everywhere or namespace or context):
        raise UsageError("--all-namespaces, --namespace and --context need --live", hint="add --live")
    specs = locate_specs(tuple(models or ()))
    found = plan_upgrade(specs, output, UpgradeOptions(engine, overwrite, bump), _report)
    releases = None
    if live:
        from trainchart.actions.live import Where, predict_upgrades
        from trainchart.actions.support.cluster_access import Place

        where = Where(Place(context, namespace), everywhere)
        releases = predict_upgrades(found.charts, output, where, engine=engine)
    if format_ is Format.json:
        print_json(describe_upgrade(found, releases))
    else:
        print_lines(upgrade_lines(found, releases))
    if found.is_needed and check:
        raise ChecksFailed("charts are not up to date", hint="run: trainchart upgrade")
    if found.is_needed:
        write_upgrade(found, output)
        written = len(found.changes) + len(found.new)
        print_note(f"{written} chart{'s' * (written != 1)} written")


def _report(done: int, total: int) -> None:
    if total >= _MANY and done % (total // 10) == 0:
        print_note(f"compared {done} of {total} charts")
