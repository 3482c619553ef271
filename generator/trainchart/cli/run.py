"""`trainchart run`: parse, run the local training, print its progress (stderr) and result (stdout)."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.options import DEFAULT_RUNS_FOLDER, ColorOption, RunsOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note
from trainchart.errors import Problem, TrainingFailed

if TYPE_CHECKING:
    from trainchart.local.plan import LocalPlan
    from trainchart.local.result import RunResult

_LAST_LINES = 10
_EXAMPLES = """
Examples:

  trainchart run mnist

  trainchart run charts/mnist --set hyperparameters.learningRate=0.01

  trainchart run mnist-0.1.0.tgz -f small.yaml --release exp-7

  trainchart run charts/mnist --release exp-7 --resume

  trainchart run mnist --strategy multi-worker-mirrored

  trainchart run charts/mnist --kill worker-1@20s

  trainchart run charts/mnist --dry-run
"""


def register(app: typer.Typer) -> None:
    app.command("run", epilog=_EXAMPLES)(_run)


def _run(
    target: Annotated[
        str,
        typer.Argument(
            help="A model's name or spec file, a chart folder, or a chart archive (.tgz).",
            autocompletion=complete.models,
        ),
    ],
    strategy: Annotated[
        str,
        typer.Option(
            help="Try this strategy instead of the one in the model's spec.",
            autocompletion=complete.strategies,
        ),
    ] = "",
    release: Annotated[
        str,
        typer.Option(
            help="Name of the run. Default: <chart>-<next free number>.",
            autocompletion=complete.runs,
        ),
    ] = "",
    namespace: Annotated[str, typer.Option(help="Namespace that the templates see. Default: default.")] = "",
    values: Annotated[
        list[Path] | None,
        typer.Option("--values", "-f", help="Values file, as for helm install; repeatable."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="KEY=VALUE; repeatable.", autocompletion=complete.settings),
    ] = None,
    set_strings: Annotated[
        list[str] | None,
        typer.Option(
            "--set-string",
            help="KEY=TEXT; repeatable.",
            autocompletion=complete.settings,
        ),
    ] = None,
    set_jsons: Annotated[
        list[str] | None,
        typer.Option(
            "--set-json",
            help="KEY=JSON; repeatable.",
            autocompletion=complete.settings,
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Helm engine: auto, sdk, binary, or the path of a helm binary. Default: auto.")
    ] = "",
    python: Annotated[
        str,
        typer.Option(help="Python that runs the training. Default: the one that runs trainchart."),
    ] = "",
    code: Annotated[
        Path | None,
        typer.Option(help="Folder of the training code, used in place of the image's /app. Default: the model's."),
    ] = None,
    claims: Annotated[
        list[str] | None,
        typer.Option("--claim", help="CLAIM=FOLDER: use your folder for a volume claim; repeatable."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an existing release with its values, code, Python and claims."),
    ] = False,
    reset_values: Annotated[
        bool, typer.Option("--reset-values", help="With --resume: start from the chart's values again.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Remove an existing release of the same model and start over.")
    ] = False,
    kills: Annotated[
        list[str] | None,
        typer.Option(
            "--kill",
            help="POD@TIME: kill a pod's program this long after the run's start, such as worker-1@20s; repeatable.",
        ),
    ] = None,
    runs_folder: RunsOption = DEFAULT_RUNS_FOLDER,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be started, without starting it.")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="ROLE",
            help="Show only the output of this role or pod; repeatable.",
            autocompletion=complete.roles,
        ),
    ] = None,
    table: Annotated[
        bool, typer.Option("--table/--no-table", help="Show a table of the pods below the output.")
    ] = True,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show TensorFlow's own start-up and connection messages.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")] = False,
    color: ColorOption = True,
    output: FormatOption = Format.text,
) -> None:
    """Train a model on this machine, as local processes, from the same chart that a cluster gets.

    Every pod's container becomes a process with the same command, environment and TF_CONFIG, except for host names and
    ports, which the command prints. Volumes are folders below .trainchart/runs/RELEASE. On a terminal, progress and a
    table of the pods are shown below the output, and at the end the loss by step. Ctrl-C stops the run cleanly. A
    program that fails through its own fault is not restarted, unless --kill is given or the values set run.maxRestarts.
    """
    from trainchart.actions.run import RunRequest, preview_run, run_local
    from trainchart.cli.run_display import DisplayOptions, LineChoice, choose_display, show_curve
    from trainchart.local.io.release_folder import Existing
    from trainchart.local.report import describe_plan, describe_result, summarize_plan
    from trainchart.local.summary import summarize_result
    from trainchart.secret_masks import mask_command

    if resume and fresh:
        raise typer.BadParameter("--resume and --fresh cannot be used together")
    if resume and not release:
        raise typer.BadParameter("--resume needs the --release to continue")
    if reset_values and not resume:
        raise typer.BadParameter("--reset-values needs --resume: other runs start from the chart's values anyway")
    existing = Existing.RESUME if resume else Existing.FRESH if fresh else Existing.REFUSE
    request = RunRequest(
        target=target,
        runs_folder=runs_folder,
        strategy=strategy,
        command=shlex.join(mask_command(["trainchart", *sys.argv[1:]])),
        python=python,
        release=release,
        namespace=namespace,
        values=tuple(values or ()),
        sets=tuple(sets or ()),
        set_strings=tuple(set_strings or ()),
        set_jsons=tuple(set_jsons or ()),
        engine=engine,
        code=code,
        existing=existing,
        keeps_values=not reset_values,
        kills=tuple(kills or ()),
        claims=_parse_claims(claims or []),
    )
    options = DisplayOptions(quiet or output is Format.json, table, verbose, tuple(only or ()), color)
    if dry_run:
        preview = preview_run(request)
        LineChoice(options).check(preview)
        for warning in preview.warnings:
            print_note(f"note: {warning}")
        print_json(describe_plan(preview)) if output is Format.json else print_line(summarize_plan(preview))
        return
    with choose_display(options) as display:
        done = run_local(request, display)
    if not options.quiet:
        show_curve(done.curves, done.result.last_step)
    plan, result = done.plan, done.result
    for warning in result.warnings:
        print_note(f"warning: {warning}")
    if output is Format.json:
        print_json({**describe_result(plan, result), "record": done.record})
    elif result.failure is None:
        print_line(summarize_result(plan, result, done.record, str(runs_folder / plan.release), done.install))
    _leave(plan, result, lines_were_shown=not options.quiet)


def _parse_claims(texts: list[str]) -> dict[str, Path]:
    claims = {}
    for text in texts:
        name, separator, folder = text.partition("=")
        if not separator or not name or not Path(folder).is_dir():
            raise typer.BadParameter(f"--claim {text!r}: expected CLAIM=FOLDER with a folder that exists")
        claims[name] = Path(folder)
    return claims


def _leave(plan: LocalPlan, result: RunResult, *, lines_were_shown: bool) -> None:
    """Turn a failure into the error that names its first cause, and an interruption into its exit code."""
    from trainchart.local.report import explain_hint

    if result.signal is not None:
        raise typer.Exit(128 + result.signal)
    failure = result.failure
    if failure is None:
        return
    problems = [Problem(failure.sentence, where=failure.pod)]
    if failure.error:
        problems.append(Problem(failure.error, where=failure.pod))
    if not lines_were_shown:
        # No one has seen where the error is.
        problems += [Problem(line, where=failure.pod) for line in failure.last_lines[-_LAST_LINES:] if line.strip()]
    raise TrainingFailed(
        f"the training run {result.release} failed: {failure.pod} gave up first ({failure.cause})",
        hint=explain_hint(failure, plan),
        problems=tuple(problems),
    )
