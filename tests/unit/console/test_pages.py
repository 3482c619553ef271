"""What pages show: rows in a useful order, the answer of `why`, old data called old, and nothing of others as HTML."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.support.console_reports import HOSTILE, NOW, MadeUpSource, make_failed, make_hostile, make_pages, make_report
from trainchart.console.compare_page import describe_comparison
from trainchart.console.list_page import describe_group
from trainchart.console.pages import GroupHtml
from trainchart.console.run_page import describe_run
from trainchart.console.views import ListView, RunRef, RunView, refer_to
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import CLUSTER, LOCAL, Progress, Report
from trainchart.reports.run_settings import RoleSettings, RunSettings
from trainchart_runtime.run.state import RUNNING, SUCCEEDED

PAGES = make_pages()


def show(report: Report, **more: object) -> str:
    return PAGES.run(refer_to(report), MadeUpSource().add(report, **more), "token")


def test_runs_that_go_on_come_first_and_the_newest_of_them() -> None:
    reports = [
        make_report("done", phase=SUCCEEDED, record={"startedAt": NOW}),
        make_report("old", record={"startedAt": NOW - 99}),
        make_report("new", record={"startedAt": NOW - 9}),
        make_report("odd", record={"startedAt": "never"}),
    ]
    rows = describe_group(LOCAL, ListView(tuple(reports), read_at=NOW)).rows
    assert [row.cells.release for row in rows] == ["new", "old", "odd", "done"]


def test_a_cluster_that_is_away_keeps_its_rows_and_says_so() -> None:
    view = ListView((make_report(origin=CLUSTER),), error="no answer from the cluster", read_at=NOW)
    html = PAGES.list_group(CLUSTER, view).html
    assert "exp-7" in html
    assert "Not up to date" in html
    assert "no answer from the cluster. The page shows the state as of 2027-01-15 08:00:00 UTC." in html


def test_only_rows_that_changed_are_sent_again() -> None:
    def make_group(step: int, *more: Report) -> GroupHtml:
        changing = make_report("b", progress=Progress(step))
        group: GroupHtml = PAGES.list_group(LOCAL, ListView((make_report("a"), changing, *more), read_at=NOW))
        return group

    before = make_group(1)
    assert list(before.changes_since(None)) == ["group-local"]
    assert make_group(1).changes_since(before) == {}
    assert list(make_group(2).changes_since(before)) == ["row:runs:local:b"]
    assert list(make_group(2, make_report("c")).changes_since(before)) == ["group-local"]


@pytest.mark.parametrize("text", ["<!--rows-->", "row:runs:local:b"])
def test_no_text_takes_the_place_of_the_rows(text: str) -> None:
    view = ListView((make_report(text), make_report("b")), (text,), error=text, read_at=NOW)
    html = PAGES.list_group(LOCAL, view).html
    assert html.count("<tr") == 3
    assert html.index("<tbody>") < html.index('<tr id="row') < html.index("</tbody>")


def test_a_cluster_that_never_answered_is_not_an_empty_list() -> None:
    html = PAGES.list_group(CLUSTER, ListView(error="no answer")).html
    assert "Nothing is known yet." in html
    assert "No runs" not in html


def test_a_failed_run_shows_its_cause_and_the_next_action() -> None:
    html = show(make_failed())
    assert "program-error: The program ended with an exception." in html
    assert "ValueError: no data today" in html
    advice = re.search(r'<p class="advice">(.*?)</p>', html)
    assert advice is not None
    assert "trainchart run mnist --resume --release exp-8" in advice[1]
    assert "What to do next:" not in html


def test_the_settings_of_a_run_are_spelled_as_they_are_set() -> None:
    roles = {"worker": RoleSettings(1, cpu="4", memory="8Gi", gpus="1 nvidia.com/gpu")}
    settings = RunSettings("single", roles, {"learningRate": 0.1, "seed": None}, {"roles": {"worker": {"replicas": 2}}})
    page = describe_run(RunView(), make_report(settings=settings))
    assert [resources for _, resources in page.roles] == ["4 cpu, 8Gi memory, 1 nvidia.com/gpu"]
    assert page.hyperparameters == [("learningRate", "0.1"), ("seed", "unset")]
    assert page.values == [("roles.worker.replicas", "2")]


def test_a_release_shows_the_images_that_it_runs() -> None:
    roles = {role: RoleSettings(1, image) for role, image in (("chief", "r/a:1"), ("worker", "r/a:1"), ("ps", "r/b:2"))}
    report = make_report(origin=CLUSTER, settings=RunSettings(roles=roles))
    assert ("Image", "r/a:1, r/b:2") in describe_run(RunView(report), report).origin


def test_the_answer_to_why_has_the_step_that_is_told_now() -> None:
    recorded = make_report(origin=CLUSTER, phase=RUNNING, progress=Progress(step=1650, at=NOW - 20))
    told = replace(recorded, now=NOW + 2, progress=Progress(step=2500, at=NOW))
    lines = [line.text for line in describe_run(RunView(told, why=recorded), told).why]
    assert "Its last known step is 2500, 2 s ago." in lines


def test_of_a_thousand_pods_the_odd_ones_are_shown() -> None:
    from tests.support.console_reports import make_pod

    pods = [make_pod(f"worker-{number}", restarts=int(number == 700)) for number in range(1000)]
    page = describe_run(RunView(), make_report(pods=tuple(pods)))
    assert page.pods is not None
    assert [pod.label for pod in page.pods] == ["worker-0", "worker-1", "worker-700"]
    assert page.pods_left == 997


def test_the_command_of_a_comparison_names_its_runs() -> None:
    views = [RunView(make_report(name, origin=CLUSTER)) for name in ("a", "b")]
    assert describe_comparison(views, "prod").command == "trainchart compare a b -n team-a --context prod"
    assert describe_comparison([*views, RunView(make_report())], "prod").command == ""


def test_pods_that_could_not_be_read_are_not_shown_as_none() -> None:
    assert "The pods could not be read." in show(make_report(pods=None))


def make_all_pages(text: str) -> list[str]:
    """Return pages in which everything that others write is `text`."""
    report = make_hostile(text)
    view = MadeUpSource().add(report, lines=(LogLine(text, text, text),), notes=(text,), error=text)
    return [
        PAGES.run(refer_to(report), view, "token"),
        PAGES.list({LOCAL: ListView((report,), (text,), error=text, read_at=NOW), CLUSTER: ListView()}, "token"),
        PAGES.run(RunRef(LOCAL, "", text, ""), RunView(error=text), "token"),
        PAGES.compare([view, MadeUpSource().add(make_hostile(f"{text}2"))], text, "token"),
        PAGES.refusal(text, text),
        PAGES.sign_in(text),
    ]


class Tags(HTMLParser):
    """The tags of a page, and the names of their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, list[str]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))


@pytest.mark.parametrize("text", HOSTILE)
def test_what_others_write_never_becomes_html(text: str) -> None:
    for html, harmless in zip(make_all_pages(text), make_all_pages("word"), strict=True):
        found = Tags(html).found
        assert found == Tags(harmless).found
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", html)
        assert not [name for _, names in found for name in names if name == "style" or name.startswith("on")]


def test_a_run_that_is_gone_is_shown_as_it_was_last() -> None:
    view = replace(MadeUpSource().add(make_report()), error="there is no such run", is_missing=True)
    html = PAGES.run(refer_to(make_report()), view, "token")
    assert "This run is gone." in html
    assert "1,200" in html
