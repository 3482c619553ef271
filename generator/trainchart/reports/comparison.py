"""Compares runs by their reports: which settings differ, how each ended, and what each measured. Pure.

`trainchart compare` and the console draw a Comparison; comparison_text.py lays it out as a table. Comparing versions of
charts is another thing: see trainchart.compare.

    Comparison
      runs      ComparedRun per run, with the title of its column
      settings  Row per setting, named as in the values of a chart: hyperparameters.seed, roles.worker.replicas
      results   Row per fact: phase, cause, attempts, last step, started, duration, examples/s
      metrics   Row per metric that any of the runs reported last
    Row         name, unit, one Cell per run, and which direction is better where that is known
    Cell        a JSON value, whether it is known, and whether it is the best of its row
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from trainchart.reports.metric_names import HIGHER, LOWER, find_better
from trainchart.reports.report import LOCAL, Report
from trainchart.reports.timing import find_seconds, find_start
from trainchart_runtime.run.state import FAILED

SECONDS = "seconds"
UNIX_TIME = "unixTime"

_TOLD_ELSEWHERE = re.compile(r"hyperparameters\..*|roles\.\w+\.(replicas|cpu|memory|gpus)", re.DOTALL)
"""Values that are settings of the run anyway."""


@dataclass(frozen=True)
class ComparedRun:
    """One of the runs, as commands find it again."""

    title: str
    """The shortest that no other of the runs has: its release, with chart or place where two have the same."""
    origin: str
    """reports.report.LOCAL or CLUSTER."""
    namespace: str
    release: str
    model: str
    folder: str
    """Of a local run; empty for a release."""


@dataclass(frozen=True)
class Cell:
    """What one run has in a row."""

    value: Any = None
    """A JSON value; None where the run has none, such as a hyperparameter that its model does not define."""
    is_known: bool = True
    is_best: bool = False


_DIRECTIONS = {"min": LOWER, "max": HIGHER}
"""By the training library's hyperparameter earlyStopMode."""
UNKNOWN = Cell(is_known=False)
NOTHING = Cell()


@dataclass(frozen=True)
class Row:
    """One setting or result of all runs."""

    name: str
    cells: tuple[Cell, ...]
    """One per run, in the order of the runs."""
    unit: str = ""
    """SECONDS or UNIX_TIME; empty for anything else."""
    better: str = ""
    """HIGHER or LOWER where one direction is better, and it is known which."""

    @property
    def differs(self) -> bool:
        """Whether two of the runs are known to have something else."""
        return len({_identify(cell.value) for cell in self.cells if cell.is_known}) > 1

    @property
    def is_known(self) -> bool:
        """Whether it is known of every run."""
        return all(cell.is_known for cell in self.cells)


@dataclass(frozen=True)
class Comparison:
    """Runs beside each other."""

    runs: tuple[ComparedRun, ...]
    settings: tuple[Row, ...]
    results: tuple[Row, ...]
    metrics: tuple[Row, ...]


def compare_reports(reports: Sequence[Report]) -> Comparison:
    """Return the runs of these reports beside each other, in this order."""
    metrics = [
        {**report.progress.metrics, **dict.fromkeys(report.progress.nan_metrics, math.nan)} for report in reports
    ]
    return Comparison(
        runs=tuple(
            ComparedRun(title, each.origin, *each.key, each.folder)
            for title, each in zip(name_runs(reports), reports, strict=True)
        ),
        settings=tuple(_list_settings(reports)),
        results=tuple(_list_results(reports)),
        metrics=tuple(
            mark_best(
                Row(name, tuple(Cell(as_json(each.get(name))) for each in metrics), better=_find_better(name, reports))
            )
            for name in _merge_keys(metrics)
        ),
    )


def name_runs(reports: Sequence[Report]) -> list[str]:
    """Return the shortest title of each run that no other one has."""
    titles = [each.key.release for each in reports]
    longer: tuple[Callable[[Report], str], ...] = (
        lambda each: str(each.key),
        lambda each: f"{each.key.release} ({each.place})",
        lambda each: f"{each.key} ({each.place})",
        lambda each: f"{each.key} ({each.folder or each.place})",
    )
    for name in longer:
        number = Counter(titles)
        titles = [title if number[title] == 1 else name(each) for title, each in zip(titles, reports, strict=True)]
    return titles


def _find_better(metric: str, reports: Sequence[Report]) -> str:
    """Return which direction of a metric is better: as the runs stop early for it, else as its name says."""
    every = [report.settings.hyperparameters or {} for report in reports]
    asked = {
        _DIRECTIONS.get(str(each.get("earlyStopMode")), "")
        for each in every
        if each.get("earlyStopMetric") == metric.rpartition("/")[2]
    } - {""}
    return (asked.pop() if len(asked) == 1 else "") if asked else find_better(metric)


def mark_best(row: Row) -> Row:
    """Return the row with its best cells marked, where a direction is known and not all of them are equal."""
    numbers = [cell.value for cell in row.cells if _is_number(cell.value)]
    if not row.better or len(set(numbers)) < 2:
        return row
    best = max(numbers) if row.better == HIGHER else min(numbers)
    cells = (replace(cell, is_best=_is_number(cell.value) and cell.value == best) for cell in row.cells)
    return replace(row, cells=tuple(cells))


def _merge_keys(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return all keys once, those of the first mapping first, and others behind what they follow in theirs."""
    merged: list[str] = []
    for mapping in mappings:
        known = set(merged)
        followers: dict[str | None, list[str]] = {}
        last = None
        for key in mapping:
            if key in known:
                last = key
            else:
                followers.setdefault(last, []).append(key)
        merged = [*followers.get(None, ()), *(one for key in merged for one in (key, *followers.get(key, ())))]
    return merged


def _list_settings(reports: Sequence[Report]) -> Iterator[Row]:
    names: set[str] = set()
    for find in (_find_versions, _find_roles, _find_hyperparameters, _find_values):
        found = [find(report) for report in reports]
        known = [each or {} for each in found]
        # A run has none of what it does not list, unless nothing of the kind is known of it.
        missing = [UNKNOWN if each is None else NOTHING for each in found]
        for name in [name for name in _merge_keys(known) if name not in names]:
            names.add(name)
            yield Row(name, tuple(each.get(name, cell) for each, cell in zip(known, missing, strict=True)))


_Settings = Mapping[str, Cell] | None
"""By name; None where nothing is known."""


def _find_versions(report: Report) -> _Settings:
    """Return what the run is made from: a local run takes a folder of code, and a release an image."""
    code = report.record.get("code")
    code = code if isinstance(code, Mapping) else {}
    commit = str(code.get("commit") or "")[:12]
    found = {
        "chart": report.chart,
        "chart content": _shorten_digest(report.record.get("chartIdentity")),
        "strategy": report.settings.strategy,
        "image": "" if report.origin == LOCAL else ", ".join(report.settings.images),
        "code": _shorten_digest(code.get("sha256")),
        "code commit": f"{commit} and changes" if commit and code.get("isDirty") else commit,
        "python": str(report.record.get("python") or ""),
    }
    return {name: Cell(value) if value else UNKNOWN for name, value in found.items()}


def _find_roles(report: Report) -> _Settings:
    known = report.settings.roles
    found = {}
    for role, each in known.items():
        found[f"roles.{role}.replicas"] = Cell(each.replicas)
        for name, value in (("cpu", each.cpu), ("memory", each.memory), ("gpus", each.gpus)):
            found[f"roles.{role}.{name}"] = Cell(value or None)
    return found or None


def _find_hyperparameters(report: Report) -> _Settings:
    values = report.settings.hyperparameters
    return None if values is None else {f"hyperparameters.{name}": Cell(as_json(each)) for name, each in values.items()}


def _find_values(report: Report) -> _Settings:
    """Return what else the user set."""
    values = report.settings.values
    if values is None:
        return None
    return {key: Cell(as_json(each)) for key, each in _flatten(values) if not _TOLD_ELSEWHERE.fullmatch(key)}


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _list_results(reports: Sequence[Report]) -> Iterator[Row]:
    outcomes = [report.outcome for report in reports]
    starts, seconds = [find_start(report) for report in reports], [find_seconds(report) for report in reports]
    yield Row("phase", tuple(Cell(report.phase) for report in reports))
    if any(each is not None and each.result == FAILED for each in outcomes):
        causes = (each.cause if each is not None and each.result == FAILED else None for each in outcomes)
        yield Row("cause", tuple(Cell(cause) for cause in causes))
    yield Row("attempts", tuple(UNKNOWN if report.attempt is None else Cell(report.attempt) for report in reports))
    yield Row("last step", tuple(Cell(report.progress.step) for report in reports))
    yield Row("started", tuple(Cell(at) if at else UNKNOWN for at in starts), UNIX_TIME)
    yield Row("duration", tuple(UNKNOWN if each is None else Cell(round(each, 1)) for each in seconds), SECONDS)
    speeds = tuple(Cell(as_json(report.progress.examples_per_second)) for report in reports)
    yield mark_best(Row("examples/s", speeds, better=HIGHER))


def _shorten_digest(digest: object) -> str:
    return digest.removeprefix("sha256:")[:12] if isinstance(digest, str) else ""


def as_json(value: Any) -> Any:
    """Return a value that JSON can carry: a number that is not finite becomes its name."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(key): as_json(each) for key, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, (list, tuple)) else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _identify(value: Any) -> tuple[str, Any]:
    """Return what is equal for equal values: 1 and 1.0 are, 1 and true are not."""
    if _is_number(value):
        return "number", value
    return "other", json.dumps(value, sort_keys=True, ensure_ascii=False)


def describe_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison as a JSON document: every row, those too that are the same for all."""
    return {
        "runs": [{name: value or None for name, value in asdict(run).items()} for run in comparison.runs],
        "settings": [_describe_row(row) for row in comparison.settings],
        "results": [_describe_row(row) for row in comparison.results],
        "metrics": [_describe_row(row) for row in comparison.metrics],
    }


def _describe_row(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "unit": row.unit or None,
        "better": row.better or None,
        "differs": row.differs,
        "cells": [{"value": cell.value, "known": cell.is_known, "best": cell.is_best} for cell in row.cells],
    }


def count_rows(rows: Iterable[Row]) -> tuple[int, int]:
    """Return how many rows are the same for all runs, and how many others are known of some runs only."""
    alike = [row for row in rows if not row.differs and any(cell.is_known for cell in row.cells)]
    known = sum(row.is_known for row in alike)
    return known, len(alike) - known
