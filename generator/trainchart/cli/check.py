"""The command `trainchart check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainchart.cli.output import Format, FormatOption, print_json, print_note
from trainchart.errors import ChecksFailed

if TYPE_CHECKING:
    from trainchart.actions.check import CheckedChart
    from trainchart.check.finding import Finding


def register(app: typer.Typer) -> None:
    """Add `trainchart check` to `app`."""
    app.command("check")(check)


def check(
    charts: Annotated[list[Path], typer.Argument(help="Chart folders or .tgz archives.", show_default=False)],
    values: Annotated[
        list[Path] | None,
        typer.Option("--values", "-f", help="Check with this values file too; may be given several times."),
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    kube_version: Annotated[
        list[str] | None,
        typer.Option("--kube-version", help="Kubernetes version like 1.34; default: 1.33 and the newest known."),
    ] = None,
    format_: FormatOption = Format.text,
) -> None:
    """Check charts as helm, the Kubernetes API and training need them; exit code 6 where something is wrong.

    Example: trainchart check charts/mnist -f cluster-a.yaml --kube-version 1.34
    """
    from trainchart.actions.check import check_chart
    from trainchart.check.finding import Severity

    checked = [
        check_chart(chart, values=tuple(values or ()), engine=engine, kube_versions=tuple(kube_version or ()))
        for chart in charts
    ]
    if format_ is Format.json:
        print_json([_as_json(found) for found in checked])
    else:
        for found in checked:
            for finding in found.findings:
                print(_as_text(found, finding))
    errors = sum(found.count(Severity.error) for found in checked)
    warnings = sum(found.count(Severity.warning) for found in checked)
    summary = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}"
    print_note(f"{_counted(len(checked), 'chart')} checked: {summary}")
    if errors:
        raise typer.Exit(ChecksFailed.exit_code)


def _as_text(checked: CheckedChart, finding: Finding) -> str:
    line = f":{finding.line}" if finding.line else ""
    where = checked.chart / finding.path if finding.path else checked.chart
    text = f"{where}{line}: {finding.severity}: {finding.message} [{finding.rule}]"
    if finding.values:
        text += f"\n  with: {finding.values}"
    if finding.hint:
        text += f"\n  hint: {finding.hint}"
    return text


def _as_json(checked: CheckedChart) -> dict[str, Any]:
    return {
        "chart": str(checked.chart),
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity.value,
                "path": finding.path,
                "line": finding.line or None,
                "message": finding.message,
                "hint": finding.hint,
                "values": finding.values,
            }
            for finding in checked.findings
        ],
    }


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
