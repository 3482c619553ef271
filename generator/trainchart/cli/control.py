"""The commands `trainchart suspend`, `resume`, `stop` and `rerun`: they change what a release's values ask for."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer

from trainchart.cli.output import Format, FormatOption, print_json
from trainchart.cli.place import ContextOption, NamespaceOption, ReleaseArgument

_HELP = {
    "suspend": """Suspend a run: its programs save and end, and everything they hold becomes free until it is resumed.

    Sets run.desiredState=suspended, by helm upgrade with the chart and the values that are installed.

    Example: trainchart suspend exp-7 -n team-a
    """,
    "resume": """Resume a suspended run from its last checkpoint.

    Example: trainchart resume exp-7 -n team-a
    """,
    "stop": """Stop a run for good: its programs save and end, and the record says Stopped.

    Example: trainchart stop exp-7 -n team-a
    """,
    "rerun": """Start a new run of a release whose run is over, from the last checkpoint where there is one.

    Example: trainchart rerun exp-7 -n team-a
    """,
}


def register(app: typer.Typer) -> None:
    """Add the four commands to `app`."""
    for verb, text in _HELP.items():
        app.command(verb, help=inspect.cleandoc(text))(_make_command(verb))


def _make_command(verb: str) -> Callable[..., None]:
    def command(
        release: ReleaseArgument,
        namespace: NamespaceOption = "",
        context: ContextOption = "",
        output: FormatOption = Format.text,
    ) -> None:
        _control(verb, release, namespace, context, output)

    return command


def _control(verb: str, release: str, namespace: str, context: str, output: Format) -> None:
    from trainchart.actions.cluster_access import Place
    from trainchart.actions.release_control import control_release
    from trainchart.cluster.control import Verb

    controlled = control_release(Place(context, namespace), release, Verb(verb))
    key, change = controlled.report.key, controlled.change
    if output is Format.json:
        body = {
            "namespace": key.namespace,
            "release": key.release,
            "phaseBefore": controlled.report.phase,
            "changed": bool(change.sets),
            "set": dict(change.sets),
            "message": change.done,
        }
        print_json(body)
    elif change.sets:
        said = ", ".join(f"{name}={value}" for name, value in change.sets.items())
        print(f"{key.release}: set {said}; see: trainchart status {key.release} -n {key.namespace}")
    else:
        print(f"{key.release}: {change.done}; nothing was changed")
