"""The command `trainchart check`."""

from __future__ import annotations

import enum
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainchart import __version__
from trainchart.cli import complete
from trainchart.cli.output import Format, choose_format, print_error, print_json, print_line, print_note
from trainchart.errors import ChecksFailed, TrainchartError

if TYPE_CHECKING:
    from trainchart.actions.check import CheckedChart
    from trainchart.check.finding import Finding
    from trainchart.check.rule import Rule
    from trainchart.check.unknown_kinds import UnknownKind


class CheckFormat(enum.StrEnum):
    text = "text"
    json = "json"
    sarif = "sarif"


def _remember(value: CheckFormat) -> CheckFormat:
    choose_format(Format.text if value is CheckFormat.text else Format.json)
    return value


def register(app: typer.Typer) -> None:
    """Add `trainchart check` to `app`."""
    app.command("check")(check)


def check(
    charts: Annotated[
        list[Path],
        typer.Argument(
            help="Chart folders, .tgz archives, or YAML files and folders; - reads YAML.", show_default=False
        ),
    ],
    values: Annotated[
        list[Path] | None,
        typer.Option("--values", "-f", help="Also check with this values file; repeatable."),
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            "--select",
            metavar="ID[,ID]",
            help="Check these rules only; see trainchart rules.",
            autocompletion=complete.rules,
        ),
    ] = None,
    ignore: Annotated[
        str | None,
        typer.Option(
            "--ignore",
            metavar="ID[,ID]",
            help="Leave these rules out.",
            autocompletion=complete.rules,
        ),
    ] = None,
    info: Annotated[
        bool, typer.Option("--info", help="Also print findings of severity info, and those that are waived.")
    ] = False,
    engine: Annotated[
        str, typer.Option("--engine", help="Helm engine: auto, sdk, binary or the path of a helm program.")
    ] = "auto",
    kube_version: Annotated[
        list[str] | None,
        typer.Option("--kube-version", help="Kubernetes version, such as 1.34. Default: 1.33 and the newest known."),
    ] = None,
    no_cache: Annotated[
        bool,
        typer.Option("--no-cache", help="Also recheck charts that were checked today and have not changed since."),
    ] = False,
    format_: Annotated[
        CheckFormat,
        typer.Option(
            "--format", callback=_remember, is_eager=True, help="Print findings as text, JSON or SARIF 2.1.0."
        ),
    ] = CheckFormat.text,
) -> None:
    """Check charts against the rules of Helm, Kubernetes and training. Exit code 6: something is wrong.

    Example: trainchart check charts/mnist -f cluster-a.yaml --kube-version 1.34
    """
    from trainchart.actions.check import check_charts
    from trainchart.actions.support.given_values import read_values_files
    from trainchart.check.finding import Severity

    chosen = _choose_rules(select, ignore)
    versions = tuple(kube_version or ())
    checked: list[CheckedChart] = []
    failures: list[TrainchartError] = []
    results = check_charts(
        charts,
        values=read_values_files(values or ()),
        engine=engine,
        kube_versions=versions,
        rules=chosen,
        use_cache=not no_cache,
    )
    for result in results:
        if isinstance(result, TrainchartError):
            failures.append(result)
        else:
            checked.append(result)
    if failures and not checked:
        raise failures[0]
    _print(checked, chosen, format_, info)
    errors = sum(found.count(Severity.error) for found in checked)
    warnings = sum(found.count(Severity.warning) for found in checked)
    shows_info = info or format_ is not CheckFormat.text
    summary = _summary(checked, errors, warnings, shows_info=shows_info)
    print_note(f"{_name_checked(checked)} checked: {summary}")
    for failure in failures[:-1]:
        print_error(failure)
    if failures:
        raise failures[-1]
    if errors:
        raise typer.Exit(ChecksFailed.exit_code)


def _choose_rules(select: str | None, ignore: str | None) -> tuple[Rule, ...]:
    from trainchart.actions.check import choose_rules

    try:
        chosen = choose_rules(_split("--select", select), _split("--ignore", ignore))
    except KeyError as error:
        raise typer.BadParameter(f"{error.args[0]}; trainchart rules lists all of them") from error
    if not chosen:
        raise typer.BadParameter("--select and --ignore together exclude every rule")
    return chosen


def _split(option: str, ids: str | None) -> tuple[str, ...]:
    found = tuple(part.strip() for part in (ids or "").split(",") if part.strip())
    if ids is not None and not found:
        raise typer.BadParameter(f"{option} {ids!r} names no rule")
    return found


def _print(checked: list[CheckedChart], rules: tuple[Rule, ...], format_: CheckFormat, info: bool) -> None:
    from trainchart.check.finding import Severity
    from trainchart.check.sarif import dump_sarif

    if format_ is CheckFormat.json:
        print_json([_as_json(found) for found in checked])
    elif format_ is CheckFormat.sarif:
        charts = [(_path(found.chart), found.findings, found.waived) for found in checked]
        print_json(dump_sarif(charts, rules, __version__))
    else:
        for found in checked:
            for finding in found.findings:
                if info or finding.severity is not Severity.info:
                    print_line(_as_text(found, finding))
            for entry in found.waived if info else ():
                print_line(_as_text(found, entry.finding, reason=entry.waiver.reason))


def _path(chart: Path) -> str:
    return "stdin" if str(chart) == "-" else chart.as_posix()


def _as_text(checked: CheckedChart, finding: Finding, *, reason: str = "") -> str:
    line = f":{finding.line}" if finding.line else ""
    where = checked.chart / finding.path if finding.path else checked.chart
    severity = f"waived {finding.severity}" if reason else finding.severity
    lines = [f"{where}{line}: {severity}: {finding.message} [{finding.rule}]"]
    lines += [f"  reason: {reason}"] if reason else []
    lines += [f"  with: {finding.values}"] if finding.values else []
    lines += [f"  hint: {finding.hint}"] if finding.hint else []
    # A name with a line break must not look like another finding.
    return "\n".join(line.replace("\n", "\\n") for line in lines)


def _as_json(checked: CheckedChart) -> dict[str, Any]:
    return {
        "chart": str(checked.chart),
        "findings": [_finding(finding) for finding in checked.findings],
        "waived": [_finding(entry.finding) | {"reason": entry.waiver.reason} for entry in checked.waived],
        "unknownKinds": [
            {
                "apiVersion": found.api_version,
                "kind": found.kind,
                "objects": list(found.objects),
                "checked": ["metadata", *["pod templates"] * found.has_pods],
            }
            for found in checked.unknown_kinds
        ],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "path": finding.path,
        "line": finding.line or None,
        "message": finding.message,
        "hint": finding.hint,
        "values": finding.values,
    }


def _summary(checked: list[CheckedChart], errors: int, warnings: int, *, shows_info: bool) -> str:
    notes = sum(len(found.findings) for found in checked) - errors - warnings
    waived = sum(len(found.waived) for found in checked)
    parts = [_counted(errors, "error"), _counted(warnings, "warning")]
    parts += [f"{notes} info"] * bool(notes) + [f"{waived} waived"] * bool(waived)
    if (notes or waived) and not shows_info:
        parts[-1] += " (--info shows them)"
    unknown = [found for chart in checked for found in chart.unknown_kinds]
    return ", ".join(parts) + (f"; {_not_looked_into(unknown)}" if unknown else "")


def _not_looked_into(kinds: list[UnknownKind]) -> str:
    numbers = Counter[tuple[str, str, bool]]()
    for found in kinds:
        numbers[found.kind, found.api_version, found.has_pods] += len(found.objects)
    listed = (
        f"{number} {kind} ({api_version}{'; its pods are checked' if has_pods else ''})"
        for (kind, api_version, has_pods), number in sorted(numbers.items())
    )
    return f"checked by names and labels only: {', '.join(listed)}"


def _name_checked(checked: list[CheckedChart]) -> str:
    charts = sum(found.is_chart for found in checked)
    manifests = len(checked) - charts
    parts = [_counted(charts, "chart")] if charts else []
    parts += [f"{manifests} sets of manifests" if manifests > 1 else "manifests"] if manifests else []
    return " and ".join(parts)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
