"""What is drawn: the lines of several runs over each other."""

from __future__ import annotations

from tests.support.console_reports import MadeUpSource, make_report
from trainchart.console.curves import draw_comparison, draw_run
from trainchart.reports.curves import Curve


def test_the_lines_of_runs_have_their_place_and_title() -> None:
    source = MadeUpSource()
    views = [
        source.add(make_report("a"), curves=(Curve("loss", (1, 2), (2.0, 1.0)),)),
        source.add(make_report("b")),
        source.add(make_report("c"), curves=(Curve("loss", (1,), (3.0,)), Curve("accuracy", (1,), (0.5,)))),
    ]
    loss, accuracy = draw_comparison(views)["charts"]
    assert [(line["title"], line["number"], line["steps"]) for line in loss["lines"]] == [
        ("a", 0, (1, 2)),
        ("c", 2, (1,)),
    ]
    assert (accuracy["name"], [line["number"] for line in accuracy["lines"]]) == ("accuracy", [2])


def test_one_run_has_one_line_a_chart() -> None:
    view = MadeUpSource().add(make_report(), curves=(Curve("loss", (1,), (2.0,)),), curves_since=5.0)
    drawn = draw_run(view)
    assert drawn["since"] == 5.0
    assert [len(chart["lines"]) for chart in drawn["charts"]] == [1]
