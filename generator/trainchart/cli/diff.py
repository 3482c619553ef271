"""The command `trainchart diff`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainchart.cli import complete
from trainchart.cli.options import ContextOption, NamespaceOption
from trainchart.cli.output import Format, FormatOption, print_json, print_lines, print_note, spell_line
from trainchart.cli.publish import PlainHttpOption

if TYPE_CHECKING:
    from trainchart.actions.diff import Difference
    from trainchart.compare.chart import ChartChanges
    from trainchart.compare.effect import FieldChange, ObjectChange

_STYLES = ("dim", "", "yellow", "bold red")
"""Of each effect, by its value."""
_FIELDS_SHOWN = 12
_WIDTH = 110


def register(app: typer.Typer) -> None:
    """Add `trainchart diff` to `app`."""
    app.command("diff")(diff)


def diff(
    model: Annotated[
        str,
        typer.Argument(
            help="Name of a model in models/, or a spec file.", show_default=False, autocompletion=complete.models
        ),
    ],
    from_: Annotated[
        str, typer.Option("--from", help="Repository to compare with, in the form that publish takes.")
    ] = "",
    against: Annotated[
        str,
        typer.Option("--against", help="A version there (default: the last), a chart's path, or a release."),
    ] = "",
    plain_http: PlainHttpOption = False,
    context: ContextOption = "",
    namespace: NamespaceOption = "",
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    format_: FormatOption = Format.text,
) -> None:
    """Show what changed in a model's chart since an earlier version: values, objects, and what an upgrade does.

    Each object is labelled: no effect, applied in place, restarts training, or rejected by Kubernetes. The next version
    follows from the changes. For a release, its own values are used.

    Example: trainchart diff mnist --from oci://registry.example.com/charts
    """
    from trainchart.actions.diff import Against, diff_model
    from trainchart.actions.support.cluster_access import Place
    from trainchart.actions.support.repository_access import Address

    repository = Address(from_, plain_http) if from_ else None
    found = diff_model(
        model, Against(against, repository, Place(context, namespace)), engine=engine, environment=os.environ
    )
    if found.is_deprecated:
        since = found.changes.old_version
        print_note(f"note: {found.name} has been deprecated since {since}; to undo that, release it with --bump")
    if format_ is Format.json:
        print_json(describe(found))
    else:
        _print(found)


def describe(found: Difference) -> dict[str, Any]:
    """Return a difference as JSON says it."""
    changes = found.changes
    return {
        "name": found.name,
        "against": found.against,
        "oldVersion": changes.old_version,
        "bump": changes.bump.name,
        "nextVersion": found.next_version,
        "isDeprecated": found.is_deprecated,
        "effect": changes.effect_text,
        "reasons": {bump.name: list(words) for bump, words in changes.reasons.items()},
        "values": [{"path": key.path, "change": key.turn.value, "detail": key.detail} for key in changes.keys],
        "defaults": [{"path": d.path, "before": d.before, "after": d.after} for d in changes.defaults],
        "refused": [{"values": name, "reason": reason} for name, reason in (changes.refused or {}).items()],
        "notCompared": [{"values": name, "reason": reason} for name, reason in (changes.not_compared or {}).items()],
        "objects": [
            {
                "values": name,
                "kind": change.kind,
                "name": change.name,
                "change": change.fate.value,
                "effect": change.effect.text,
                "fields": [{"path": f.path, "before": f.before, "after": f.after} for f in change.fields],
            }
            for name, some in (changes.objects or {}).items()
            for change in some
        ],
        "files": list(changes.files),
    }


def _print(found: Difference) -> None:
    from rich.console import Console
    from rich.text import Text

    if os.environ.get("NO_COLOR"):  # rich would still write in bold
        print_lines(line for line, _ in _lines(found))
        return
    console = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    for line, style in _lines(found):
        console.print(Text(spell_line(line), style=style))


def _lines(found: Difference) -> Iterator[tuple[str, str]]:
    changes = found.changes
    if not changes.reasons and not changes.not_compared:
        yield f"{found.name}: nothing has changed since {found.against}", ""
        return
    yield f"{found.name} since {found.against}", "bold"
    for bump, words in changes.reasons.items():
        yield from ((f"  {bump.name}: {word}", "") for word in words if bump.name != "patch")
    yield from ((f"  patch: {change.text}", "") for change in changes.defaults)
    objects = changes.objects or {}
    for name, some in objects.items():
        # With other values mostly the same happens; only what differs is worth a second look.
        shown = some if not name else tuple(change for change in some if change not in objects.get("", ()))
        if shown:
            yield "", ""
            yield f"objects, rendered with {name or 'its own values'}", "bold"
        for change in shown:
            yield from _object_lines(change)
    for name, reason in (changes.not_compared or {}).items():
        yield "", ""
        values = name or "its own values"
        yield f"objects, not compared with {values}, because {found.against} does not render with them:", "bold"
        yield f"  {' '.join(reason.split())}", ""
    if changes.files:
        yield "", ""
        yield f"files: {', '.join(changes.files)}", "dim"
    yield "", ""
    yield f"an upgrade is: {_say_effect(changes)}", _STYLES[changes.effect]
    yield f"version: {changes.old_version} → {found.next_version} ({changes.bump.name})", "bold"


def _say_effect(changes: ChartChanges) -> str:
    from trainchart.compare.effect import Effect

    if not changes.not_compared:
        return changes.effect.text
    worse = "" if changes.effect is Effect.rejected else ", or worse"
    said = changes.effect.text + worse if changes.effect else "unknown"
    return f"{said}, because not all objects could be compared"


def _object_lines(change: ObjectChange) -> Iterator[tuple[str, str]]:
    fate = "" if change.fate.value == "changed" else f" {change.fate.value}"
    yield f"  {change.effect.text}: {change.kind} {change.name}{fate}", _STYLES[change.effect]
    for field in change.fields[:_FIELDS_SHOWN]:
        yield from _field_lines(field)
    if len(change.fields) > _FIELDS_SHOWN:
        yield f"      … and {len(change.fields) - _FIELDS_SHOWN} more", "dim"


def _field_lines(field: FieldChange) -> Iterator[tuple[str, str]]:
    yield f"      {field.path}", "dim"
    if field.before is not None:
        yield f"      - {_shorten(field.before)}", "red"
    if field.after is not None:
        yield f"      + {_shorten(field.after)}", "green"


def _shorten(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[:_WIDTH]}…"
