"""What static/curves.js draws: a chart for each scalar, with a line for each run. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trainchart.console.compare_page import list_reports
from trainchart.console.views import RunView
from trainchart.reports.comparison import name_runs
from trainchart.reports.curves import CURVES_SHOWN, Curve


def draw_run(view: RunView) -> dict[str, Any]:
    """Return the charts of one run, and since when its scalars are known; 0 for always."""
    charts = [{"name": curve.name, "lines": [_make_line("", 0, curve)]} for curve in view.curves]
    return {"since": view.curves_since, "charts": charts}


def draw_comparison(views: Sequence[RunView]) -> dict[str, Any]:
    """Return the charts of runs over each other; lines have the titles that the runs have on the page."""
    titles = name_runs(list_reports(views))
    names = list(dict.fromkeys(curve.name for view in views for curve in view.curves))[:CURVES_SHOWN]
    charts = [
        {
            "name": name,
            "lines": [
                _make_line(titles[number], number, curve)
                for number, view in enumerate(views)
                for curve in view.curves
                if curve.name == name
            ],
        }
        for name in names
    ]
    return {"since": max(view.curves_since for view in views), "charts": charts}


def _make_line(title: str, number: int, curve: Curve) -> dict[str, Any]:
    return {"title": title, "number": number, "steps": curve.steps, "values": curve.values}
