"""The command `trainchart rules`."""

from __future__ import annotations

import enum
from typing import Annotated

import typer

from trainchart.cli import complete
from trainchart.cli.output import print_json, print_line


class RulesFormat(enum.StrEnum):
    text = "text"
    json = "json"
    markdown = "markdown"


def register(app: typer.Typer) -> None:
    """Add `trainchart rules` to `app`."""
    app.command("rules")(rules)


def rules(
    rule: Annotated[
        str | None,
        typer.Argument(
            help="Id of one rule; all if none is given.",
            show_default=False,
            autocompletion=complete.rules,
        ),
    ] = None,
    format_: Annotated[
        RulesFormat, typer.Option("--format", help="Print the rules as text, as JSON, or as the page docs/checks.md.")
    ] = RulesFormat.text,
) -> None:
    """List the rules of trainchart check: each with its severity, why it matters, and its source.

    Example: trainchart rules names-fit
    """
    from trainchart.actions.rules import dump_rules_page, list_rules
    from trainchart.check.rule import Scope

    found = list_rules(rule)
    if format_ is RulesFormat.markdown:
        print_line(dump_rules_page(found), end="")
    elif format_ is RulesFormat.json:
        print_json(
            [
                {
                    "id": entry.id,
                    "severity": entry.severity.value,
                    "severityForOthers": entry.others.value,
                    "scope": entry.scope.value,
                    "why": entry.why,
                    "source": entry.source,
                }
                for entry in found
            ]
        )
    elif rule is None:
        width = max(len(entry.id) for entry in found)
        for entry in found:
            print_line(f"{entry.id:{width}}  {entry.severity.value:7}  {entry.why}")
    else:
        for entry in found:
            print_line(f"{entry.id}: {entry.why}")
            others = (
                f"; in third-party charts at most {entry.others.value}" if entry.scope is not Scope.trainings else ""
            )
            print_line(f"  severity  {entry.severity.value}{others}")
            print_line(f"  applies to  {entry.scope.value}")
            print_line(f"  source    {entry.source}")
