"""The commands `trainchart checkpoints list`, `show`, `verify`, `export` and `prune`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import _click as click
from typer.core import TyperGroup

from trainchart.cli import complete
from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, RunsOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.cli.signals import end_in_order
from trainchart.errors import ChecksFailed, Problem, UsageError

if TYPE_CHECKING:
    from trainchart.actions.checkpoints import Checkpoints
    from trainchart.checkpoints.results import Pruning

_LIST = "list"


class _ListsByDefault(TyperGroup):
    """Takes a folder or run where a command is expected: `checkpoints RUN` lists, `checkpoints RUN verify` verifies."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        first = args[0] if args else ""
        if first not in self.commands and first not in ctx.help_option_names:
            has_command = len(args) > 1 and args[1] in self.commands
            args = [args[1], first, *args[2:]] if has_command else [_LIST, *args]
        return super().parse_args(ctx, args)


group = typer.Typer(
    cls=_ListsByDefault,
    help="List, verify, copy and remove the checkpoints of a folder, a local run or a release, without TensorFlow.",
    rich_markup_mode=None,
)
_METAVAR = "FOLDER|RUN|RELEASE"
_TARGET = (
    "A folder of checkpoints (./NAME for one in the current folder), or the name of a local run or of a release on a "
    "cluster; with --namespace or --context, always a release."
)
TargetArgument = Annotated[
    str, typer.Argument(metavar=_METAVAR, help=_TARGET, show_default=False, autocompletion=complete.runs)
]
ClaimOption = Annotated[
    str,
    typer.Option(
        "--claim",
        metavar="CLAIM[/FOLDER]",
        help="Claim of the checkpoints. Default: the release's claim, even if only the claim is left after an "
        "uninstall.",
        show_default=False,
    ),
]
ImageOption = Annotated[
    str,
    typer.Option(
        "--image",
        help="Image with Python 3.8 or newer for the pod that reads the claim. Default: the release's runtime image, "
        "or else its training image.",
        show_default=False,
    ),
]
TimeoutOption = Annotated[
    int,
    typer.Option(
        "--timeout", metavar="SECONDS", help="Time limit for that pod, in seconds, including its start.", min=1
    ),
]
_TIMEOUT = 3600
StepArgument = Annotated[int, typer.Argument(help="Step of the checkpoint.", show_default=False, min=0)]


def register(app: typer.Typer) -> None:
    """Add `trainchart checkpoints` to `app`."""
    app.add_typer(group, name="checkpoints")


def _open(target: str, runs_folder: Path, place: tuple[str, str], helper: tuple[str, str, int]) -> Checkpoints:
    """Return the checkpoints that are meant; what is started on a cluster for them ends in order."""
    from trainchart.actions.checkpoints import open_checkpoints
    from trainchart.actions.support.checkpoint_release import HelperOptions
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.run_lookup import RunAddress

    end_in_order()
    return open_checkpoints(RunAddress(target, Place(*place), runs_folder), HelperOptions(*helper), print_note)


@group.command(_LIST)
def list_(
    target: Annotated[
        str,
        typer.Argument(
            metavar=_METAVAR,
            help=f"{_TARGET} Default: the local run that was started last.",
            show_default=False,
            autocompletion=complete.runs,
        ),
    ] = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    claim: ClaimOption = "",
    image: ImageOption = "",
    timeout: TimeoutOption = _TIMEOUT,
    format_: FormatOption = Format.text,
) -> None:
    """List the checkpoints, newest first, and which run they belong to.

    This is the default command: `checkpoints exp-7` also lists. It reads only names, sizes and markers; verify reads
    every byte.

    Example: trainchart checkpoints list exp-7
    """
    from trainchart.cli.checkpoint_display import describe_list, list_lines, place_lines

    source = _open(target, runs_folder, (context, namespace), (claim, image, timeout))
    found = source.read_list()
    if format_ is Format.json:
        print_json({**source.place, **describe_list(found)})
        return
    for line in (*place_lines(source.place), *list_lines(found)):
        print_line(line)


@group.command("show")
def show(
    target: TargetArgument,
    step: StepArgument,
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    claim: ClaimOption = "",
    image: ImageOption = "",
    timeout: TimeoutOption = _TIMEOUT,
    format_: FormatOption = Format.text,
) -> None:
    """Show one checkpoint: its variables with their shapes, and its files.

    Example: trainchart checkpoints show exp-7 200
    """
    from trainchart.cli.checkpoint_display import describe_whole, place_lines, show_lines

    source = _open(target, runs_folder, (context, namespace), (claim, image, timeout))
    checkpoint = source.read_checkpoint(step)
    if format_ is Format.json:
        print_json({**source.place, **describe_whole(checkpoint)})
        return
    for line in (*place_lines(source.place), *show_lines(checkpoint)):
        print_line(line)


@group.command("verify")
def verify(
    target: TargetArgument,
    step: Annotated[
        int | None, typer.Argument(help="Step of the checkpoint. Default: all of them.", show_default=False, min=0)
    ] = None,
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    claim: ClaimOption = "",
    image: ImageOption = "",
    timeout: TimeoutOption = _TIMEOUT,
    format_: FormatOption = Format.text,
) -> None:
    """Read every byte of the checkpoints, and name files that have changed. Exit code 6: a checkpoint is damaged.

    Also shows which checkpoint a training run that starts now would restore.

    Example: trainchart checkpoints verify exp-7
    """
    from trainchart.cli.checkpoint_display import describe_verified, verified_lines

    source = _open(target, runs_folder, (context, namespace), (claim, image, timeout))
    found = source.verify(step)
    if format_ is Format.json:
        print_json({**source.place, **describe_verified(found)})
    else:
        for line in verified_lines(found):
            print_line(line)
    damaged = {number: problem for number, problem in found.problems.items() if problem}
    if step is not None:
        damaged = {number: problem for number, problem in damaged.items() if number == step}
    if damaged:
        raise ChecksFailed(
            f"{len(damaged)} of {len(found.problems)} checkpoints in {found.folder} cannot be restored",
            hint="a training run warns about them and restores the newest one that can be read",
            problems=tuple(Problem(f"step {number}: {problem}") for number, problem in damaged.items()),
        )


@group.command("export")
def export(
    target: TargetArgument,
    step: StepArgument,
    destination: Annotated[Path, typer.Argument(help="New or empty folder to copy to.", show_default=False)],
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    claim: ClaimOption = "",
    image: ImageOption = "",
    timeout: TimeoutOption = _TIMEOUT,
    format_: FormatOption = Format.text,
) -> None:
    """Copy one checkpoint to a new folder, from which another run can start. A damaged one is refused.

    Example: trainchart checkpoints export exp-7 200 start
    """
    from trainchart.reports.text import describe_bytes

    source = _open(target, runs_folder, (context, namespace), (claim, image, timeout))
    copied = source.export(step, destination)
    if format_ is Format.json:
        print_json({**source.place, "step": step, "bytes": copied.size, "folder": str(destination)})
        return
    print_line(f"copied step {step} ({describe_bytes(copied.size)}) to {destination}")


@group.command("prune")
def prune(
    target: TargetArgument,
    keep: Annotated[int, typer.Option("--keep", help="How many of the newest complete checkpoints to keep.", min=1)],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be removed, without removing it.")
    ] = False,
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    claim: ClaimOption = "",
    image: ImageOption = "",
    timeout: TimeoutOption = _TIMEOUT,
    format_: FormatOption = Format.text,
) -> None:
    """Keep the newest complete checkpoints, and remove all older ones. Refused while a run uses the folder.

    First reads every byte of those that it keeps, so that damaged ones do not count.

    Example: trainchart checkpoints prune exp-7 --keep 3 --dry-run
    """
    source = _open(target, runs_folder, (context, namespace), (claim, image, timeout))
    pruning = source.plan_pruning(keep)
    if pruning.removed and not dry_run:
        _confirm(pruning, is_agreed=yes)
        source.prune(pruning)
    if format_ is Format.json:
        print_json(
            {
                **source.place,
                "folder": pruning.folder,
                "kept": list(pruning.kept),
                "removed": list(pruning.removed),
                "bytes": pruning.size,
                "isDryRun": dry_run,
            }
        )
        return
    print_line(_describe(pruning, "would remove" if dry_run else "removed"))


def _describe(pruning: Pruning, verb: str) -> str:
    from trainchart.cli.checkpoint_display import describe_steps
    from trainchart.reports.text import describe_bytes

    if not pruning.removed:
        return f"nothing to remove: {len(pruning.kept)} complete checkpoints in {pruning.folder}"
    return f"{verb} {describe_steps(pruning.removed)} in {pruning.folder} ({describe_bytes(pruning.size)})"


def _confirm(pruning: Pruning, *, is_agreed: bool) -> None:
    """Ask on the terminal; raises UsageError without one, and Abort for a no."""
    if is_agreed:
        return
    if not sys.stdin.isatty():
        raise UsageError(_describe(pruning, "this removes"), hint="--yes removes them, --dry-run does not")
    typer.confirm(f"{_describe(pruning, 'remove')}?", abort=True, err=True)
