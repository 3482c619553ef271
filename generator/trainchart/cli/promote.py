"""The command `trainchart promote`: the export of a release goes live on a model server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainchart.cli import complete
from trainchart.cli.options import ContextOption, NamespaceOption
from trainchart.cli.output import Format, FormatOption, print_json, print_line, print_note, refuse_empty
from trainchart.cli.signals import end_in_order

if TYPE_CHECKING:
    from trainchart.actions.promote import Promoted
    from trainchart.promotion.gates import Gate
    from trainchart.promotion.history import Entry
    from trainchart.promotion.record import Model, Promotion

_EXAMPLES = """
Examples:

  trainchart promote exp-7 --to digits-prod -n team-a --gate 'accuracy>=0.9'

  trainchart promote exp-8 --to digits-prod -n team-a --gate 'accuracy>=serving-0.01' --dry-run

  trainchart promote --to digits-prod -n team-a --rollback

  trainchart promote --to digits-prod -n team-a --history
"""


def register(app: typer.Typer) -> None:
    """Add `trainchart promote` to `app`."""
    app.command("promote", epilog=_EXAMPLES)(_promote)


def _promote(
    release: Annotated[
        str,
        typer.Argument(
            help="Release to promote; its run must have succeeded. RELEASE/CHART if it holds several training runs.",
            show_default=False,
            autocompletion=complete.succeeded_releases,
        ),
    ] = "",
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="SERVER",
            help="Release of the model server (a chart of the family model-server), in the same namespace.",
            show_default=False,
            callback=refuse_empty,
            autocompletion=complete.servers,
        ),
    ] = "",
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            metavar="METRIC>=NUMBER",
            help="Condition on a metric of the run: its name, one of >=, <=, > and <, and a number or serving, "
            "serving-0.01 or serving+0.01, where serving is the same metric of the model that is currently served. "
            "Repeatable; all must be met.",
            show_default=False,
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option("--step", help="Refuse the export unless it is from this step.", min=0, show_default=False),
    ] = None,
    version: Annotated[
        int | None,
        typer.Option("--version", help="Version that clients see. Default: the step.", min=1, show_default=False),
    ] = None,
    rollback: Annotated[bool, typer.Option("--rollback", help="Serve the previous model again.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="List the promotions that the server's revisions record.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check the gates and show what would change.")
    ] = False,
    timeout: Annotated[
        str,
        typer.Option(
            "--timeout", help="Roll back if not all pods serve the model within this time: 90 (seconds), 10m."
        ),
    ] = "10m",
    watch: Annotated[
        str, typer.Option("--watch", help="How long to count failed requests once all pods serve it. 0: do not count.")
    ] = "30s",
    max_error_rate: Annotated[
        float,
        typer.Option("--max-error-rate", help="Roll back if a larger fraction of requests fails.", min=0, max=1),
    ] = 0.01,
    namespace: NamespaceOption = "",
    context: ContextOption = "",
    output: FormatOption = Format.text,
) -> None:
    """Make a model server serve the export of a release, and roll back automatically if that fails.

    The export is pinned by its content. The gates are checked with the evaluation of its step, or else with the last
    metrics that the run reported. Then helm upgrades the server's release with its installed chart and values; only the
    model changes, and with it the record of who promoted it, when, and from which run. The command follows the rollout,
    and rolls back if a pod fails, the timeout expires, or too many requests fail. Progress goes to stderr.

    Exit code 0: the model is being served, or already was; 6: a gate is not met; 9: it was rolled back; 11: it was
    rolled back because of the timeout.
    """
    from trainchart.actions.promote import PromoteOptions, promote, read_history, roll_back
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.promotion_watch import Watch

    _refuse_combinations(release, to, gate, (step, version), rollback=rollback, history=history)
    place = Place(context, namespace)
    if history:
        _print_history(*read_history(to, place), output)
        return
    follow = Watch(_seconds(timeout, "--timeout"), _seconds(watch, "--watch"), max_error_rate)
    options = PromoteOptions(_parse_gates(gate or []), step, version, dry_run, follow)
    end_in_order()
    done = roll_back(to, place, options, print_note) if rollback else promote(release, to, place, options, print_note)
    _print_done(done, output)


def _refuse_combinations(
    release: str,
    to: str,
    gate: list[str] | None,
    numbers: tuple[int | None, int | None],
    *,
    rollback: bool,
    history: bool,
) -> None:
    if not to:
        raise typer.BadParameter("it is missing; name the model server: --to SERVER", param_hint="--to")
    if rollback and history:
        raise typer.BadParameter("--rollback and --history cannot be used together", param_hint="--history")
    option = "--rollback" if rollback else "--history"
    if (rollback or history) and (release or gate or numbers != (None, None)):
        raise typer.BadParameter("cannot be combined with a release, gate, step or version", param_hint=option)
    if not release and not rollback and not history:
        raise typer.BadParameter("name the release to promote, or add --rollback or --history", param_hint="RELEASE")


def _seconds(text: str, option: str) -> int:
    from trainchart.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def _parse_gates(texts: list[str]) -> tuple[Gate, ...]:
    from trainchart.promotion.gates import parse_gate

    try:
        return tuple(map(parse_gate, texts))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--gate") from error


def _print_done(done: Promoted, output: Format) -> None:
    from trainchart.actions.promote import PLANNED, UNCHANGED
    from trainchart.promotion.record import dump_record

    if output is Format.json:
        body: dict[str, Any] = {
            "server": done.server,
            "namespace": done.namespace,
            "state": done.state,
            "revision": done.revision,
            "model": _describe_model(done.model),
            "before": _describe_model(done.before),
            "changes": [{"key": each.key, "before": each.before, "after": each.after} for each in done.changes],
            "gates": [{"gate": str(each.gate), "value": each.value, "limit": each.limit} for each in done.gates],
            "record": dump_record(done.record),
            "notes": list(done.notes),
        }
        print_json(body)
        return
    for each in done.gates:
        _print_cleaned(f"gate {each.gate}: {_number(each.value)}, met")
    if done.state == UNCHANGED:
        _print_cleaned(f"{done.server} already serves {done.model}; nothing was changed")
    elif done.state == PLANNED:
        for change in done.changes:
            _print_cleaned(f"{change.key}: {change.before} -> {change.after}")
        _print_cleaned(f"{done.server} would serve {done.model} instead of {done.before}; nothing was changed")
    else:
        _print_cleaned(f"{done.server} serves {done.model} instead of {done.before} (revision {done.revision})")
    for note in done.notes:
        print_note(f"note: {note}")


def _print_history(entries: list[Entry], serving: Model, output: Format) -> None:
    from trainchart.promotion.history import describe_entry

    if output is Format.json:
        print_json([describe_entry(each) for each in entries])
        return
    if not any(each.promotion.model == serving for each in entries):
        print_note(f"{serving} is served now; it was not promoted")
    if not entries:
        print_note("no promotions in the revisions that Helm keeps")
        return
    rows: list[tuple[str, ...]] = [("REVISION", "PROMOTED", "VERSION", "FROM", "BY", "STATE", "METRICS")]
    rows += [(str(each.revision), *_describe_promotion(each.promotion, each.state)) for each in entries]
    widths = [max(len(row[column]) for row in rows) for column, _ in enumerate(rows[0])]
    for row, why in zip(rows, ("", *(each.why for each in entries)), strict=True):
        _print_cleaned("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        if why:
            _print_cleaned(f"          {why}")


def _print_cleaned(text: str) -> None:
    """Print one line: the record of a promotion may hold any text, with line breaks too."""
    from trainchart_runtime.log_text import clean

    print_line(clean(text))


def _describe_promotion(promotion: Promotion, state: str) -> tuple[str, ...]:
    from trainchart.promotion.history import describe_metrics, describe_origin

    origin, metrics = describe_origin(promotion.source), describe_metrics(promotion.source)
    return promotion.at, str(promotion.model.version), origin, promotion.by, state, metrics or "-"


def _describe_model(model: Model) -> dict[str, Any]:
    return {"version": model.version, "content": model.content, "claim": model.claim, "path": model.path}


def _number(value: float | None) -> str:
    return "?" if value is None else f"{value:.6g}"
