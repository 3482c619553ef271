"""The commands `trainchart suspend`, `resume`, `stop` and `rerun`: they change what a release's values ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, NamespaceOption, ReleaseArgument, RunsOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note

_FIELDS_SHOWN = 4

_HELP = {
    "suspend": """Suspend a run: its programs get SIGTERM, and everything they hold is freed until the run is resumed.

    Programs that use the training library save first; others lose the steps since the last checkpoint, unless they
    handle SIGTERM.

    Sets run.desiredState=suspended by helm upgrade, with the installed chart and values.

    Example: trainchart suspend exp-7 -n team-a
    """,
    "resume": """Resume a suspended run from its last checkpoint.

    Example: trainchart resume exp-7 -n team-a
    """,
    "stop": """Stop a run, here or on a cluster: its programs get SIGTERM, and the record says Stopped.

    Programs that use the training library save first; others lose the steps since the last checkpoint, unless they
    handle SIGTERM.

    A local run takes precedence; --namespace or --context always means a release on the cluster.

    Example: trainchart stop exp-7 -n team-a
    """,
    "rerun": """Start a new run of a release whose run is over, from the last checkpoint if there is one.

    With --resume 200, it goes back to that step, and with --resume never, it starts over: checkpoints that it does not
    continue from are moved to the folder `earlier`, beside the new ones. A program that does not use the training
    library decides by itself how to continue.

    Example: trainchart rerun exp-7 -n team-a --resume 200
    """,
}


def register(app: typer.Typer) -> None:
    """Add the four commands to `app`."""
    for verb, text in _HELP.items():
        command = _rerun if verb == "rerun" else _make_command(verb)
        app.command(verb, help=inspect.cleandoc(text))(command)


def _make_command(verb: str) -> Callable[..., None]:
    def command(
        release: ReleaseArgument,
        namespace: NamespaceOption = "",
        context: ContextOption = "",
        runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
        output: FormatOption = Format.text,
    ) -> None:
        _control(verb, release, namespace, context, runs_folder, output)

    return command


def _rerun(
    release: ReleaseArgument,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    resume: Annotated[
        str, typer.Option("--resume", metavar="HOW", help="never, latest, or the step to go back to.")
    ] = "latest",
    output: FormatOption = Format.text,
) -> None:
    _control("rerun", release, namespace, context, runs_folder, output, resume)


def _control(
    verb: str, release: str, namespace: str, context: str, runs_folder: Path, output: Format, resume: str = "latest"
) -> None:
    from trainchart.actions.control import control_run
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.run_lookup import RunAddress
    from trainchart.cluster.control import Verb

    controlled = control_run(RunAddress(release, Place(context, namespace), runs_folder), Verb(verb), resume)
    report, change = controlled.report, controlled.change
    if output is Format.json:
        body = {
            "origin": report.origin,
            "namespace": report.key.namespace or None,
            "release": report.key.release,
            "phaseBefore": report.phase,
            "changed": controlled.is_changed,
            "set": dict(change.sets),
            "message": change.done,
            "kept": list(controlled.kept),
            "note": controlled.note,
        }
        print_json(body)
    elif change.sets:
        said = ", ".join(f"{name}={value}" for name, value in change.sets.items())
        print_line(f"{report.key.release}: set {said}; see: trainchart status {report.address}")
        if "run.id" in change.sets:
            print_note(
                "also pass these values to later upgrades, or use --reuse-values: other values belong to another run"
            )
        if controlled.kept:
            print_note(f"kept changes made outside the chart: {_shorten(controlled.kept)}")
        if controlled.note:
            print_note(f"note: {controlled.note}")
    elif controlled.is_changed:
        print_line(f"{report.key.release}: {change.done}; see: trainchart status {report.address}")
    else:
        print_line(f"{report.key.release}: {change.done}; nothing was changed")


def _shorten(fields: tuple[str, ...]) -> str:
    more = f" and {len(fields) - _FIELDS_SHOWN} more" if len(fields) > _FIELDS_SHOWN else ""
    return f"{', '.join(fields[:_FIELDS_SHOWN])}{more}"
