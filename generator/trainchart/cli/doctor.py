"""The command `trainchart doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ContextOption, RunsOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.cli.signals import end_in_order
from trainchart.errors import ChecksFailed, UsageError

if TYPE_CHECKING:
    from trainchart.doctor.result import Result

_EXAMPLES = """
Examples:

  trainchart doctor

  trainchart doctor mnist -n team-a

  trainchart doctor charts/mnist --set roles.worker.replicas=8 --no-probe
"""

_LEAST_SECONDS = 10
_LOUD = ("failed", "warning")


def register(app: typer.Typer) -> None:
    """Add `trainchart doctor` to `app`."""
    app.command("doctor", epilog=_EXAMPLES)(_doctor)


def _doctor(
    target: Annotated[
        str,
        typer.Argument(
            help="The model, chart folder or archive to install. Without one, doctor examines this machine.",
            show_default=False,
            autocompletion=complete.models,
        ),
    ] = "",
    release: Annotated[str, typer.Option(help="Name of the future release. Default: the chart's name.")] = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace to install into. Default: the context's.")
    ] = "",
    context: ContextOption = "",
    values: Annotated[
        list[Path] | None, typer.Option("--values", "-f", help="Values file, as for helm install; repeatable.")
    ] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE; repeatable.", autocompletion=complete.settings)
    ] = None,
    set_strings: Annotated[
        list[str] | None, typer.Option("--set-string", help="KEY=TEXT; repeatable.", autocompletion=complete.settings)
    ] = None,
    set_jsons: Annotated[
        list[str] | None, typer.Option("--set-json", help="KEY=JSON; repeatable.", autocompletion=complete.settings)
    ] = None,
    probe: Annotated[
        bool, typer.Option("--probe/--no-probe", help="Start small pods that test volumes, images and the network.")
    ] = True,
    timeout: Annotated[
        str, typer.Option(help="Time limit for these pods, including the image pull: 90 (seconds), 5m.")
    ] = "5m",
    engine: Annotated[
        str, typer.Option(help="Helm engine: auto, sdk, binary, or the path of a helm binary. Default: auto.")
    ] = "",
    python: Annotated[
        str, typer.Option(help="Without a target: the Python for local runs. Default: the one that runs trainchart.")
    ] = "",
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    output: FormatOption = Format.text,
) -> None:
    """Find out before an installation whether a cluster can run a chart; without TARGET: whether this machine can.

    The command removes what it created, except for the folders of a subPath that did not exist before. Exit code 0: no
    check has failed; 6: a check has failed.
    """
    from trainchart.actions.doctor import Request, examine
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.machine_checks import examine_machine
    from trainchart.doctor.result import FAILED
    from trainchart.durations import parse_duration

    try:
        seconds = parse_duration(timeout)
        if seconds < _LEAST_SECONDS:
            raise ValueError(f"{timeout}: expected {_LEAST_SECONDS} seconds at least")
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--timeout") from error
    if not target:
        _require_target(namespace, context, release, sets or ())
    end_in_order()
    request = Request(
        target=target,
        place=Place(context, namespace),
        release=release,
        values=tuple(values or ()),
        sets=tuple(sets or ()),
        set_strings=tuple(set_strings or ()),
        set_jsons=tuple(set_jsons or ()),
        engine=engine,
        probes=probe,
        seconds=int(seconds),
    )
    found = examine(request, print_note) if target else examine_machine(python, runs_folder)
    results = []
    for each in found:
        results.append(each)
        if output is Format.text:
            _print(each)
    if output is Format.json:
        print_json({"results": [_describe(each) for each in results]})
    failed = sum(each.outcome == FAILED for each in results)
    if failed:
        raise ChecksFailed(f"{failed} of {len(results)} checks failed")


def _require_target(namespace: str, context: str, release: str, sets: Sequence[str]) -> None:
    """Refuse options about a cluster where nothing is named that is to be installed there.

    Raises:
        UsageError: there is such an option.
    """
    named = (("-n", namespace), ("--context", context), ("--release", release), *(("--set", each) for each in sets))
    given = " ".join(f"{option} {value}" for option, value in named if value)
    if given:
        raise UsageError(
            f"{given}: without a target, doctor examines this machine, not a cluster",
            hint=f"name the model or chart to install, as in: trainchart doctor mnist {given}",
        )


def _print(result: Result) -> None:
    mark = result.outcome.upper() if result.outcome in _LOUD else result.outcome
    lines = [f"{mark:8} {result.check}: {result.message}", *([f"hint: {result.remedy}"] if result.remedy else [])]
    # Names and messages of a cluster may hold line breaks, behind which a text would look like a result.
    print_line("\n".join(lines).replace("\n", f"\n{'':9}"))


def _describe(result: Result) -> dict[str, str]:
    return {
        "check": result.check,
        "outcome": result.outcome,
        "message": result.message,
        "remedy": result.remedy,
    }
