"""The pages of model servers: what serves, its history, the commands; nothing of others becomes HTML."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.support.console_reports import HOSTILE, NOW, MadeUpSource, make_pages, make_report
from trainchart.console.server_pages import describe_serving
from trainchart.console.views import ServerRef, ServersView, ServerView, refer_to
from trainchart.promotion.history import Entry
from trainchart.promotion.record import Model, Promotion, Record, Source, Takeback
from trainchart.promotion.servers import SERVING, ServerState, Track
from trainchart.reports.report import CLUSTER, Report
from trainchart_runtime.run.state import FAILED, SUCCEEDED

PAGES = make_pages()
SERVER = ServerRef("team-a", "digits")


def make_server(text: str = "", name: str = "digits", release: str = "exp-7", run: str = "") -> ServerState:
    """Return a server with a canary; with a text, everything that others write is this text."""
    source = Source(release, run or text, 300, {text or "accuracy": 0.9}, text, text or "mnist-0.1.0")
    promotion = Promotion(
        text or "2026-11-28T18:00:00Z", text or "alice", Model(300), source, (text or "accuracy>=0.9",)
    )
    takeback = Takeback(text, text, 2, 310, text, text) if text else None
    track = Track(text or "300", text or "sha256:60", 2, 2, text or SERVING)
    record = Record(promotion, takeback)
    return ServerState("team-a", name, text, text or "digits", track, record, track, text or "10")


def make_view(text: str = "") -> ServerView:
    server = make_server(text, *((text, text) if text else ()))
    promotion = server.record.promotion
    assert promotion is not None
    entry = Entry(2, promotion, text or "serving", text)
    return ServerView(server, (entry,), text, text, NOW)


def show_all(text: str) -> tuple[str, ...]:
    view = make_view(text)
    assert view.server is not None
    report = make_report(text, origin=CLUSTER, phase=SUCCEEDED)
    run = MadeUpSource().add(report, servers=(view.server, make_server(text, text, "other")))
    return (
        PAGES.servers.list(ServersView((view.server,), (text,), text, NOW), "token"),
        PAGES.servers.one(SERVER, view, "token"),
        PAGES.run(refer_to(report), run, "token"),
    )


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


@pytest.mark.parametrize("text", HOSTILE)
def test_what_others_write_never_becomes_html(text: str) -> None:
    for page, harmless in zip(show_all(text), show_all("word"), strict=True):
        assert Tags(page).found == Tags(harmless).found
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", page)


def test_the_list_says_what_serves_and_leads_on() -> None:
    page = PAGES.servers.list(ServersView((make_server(),), read_at=NOW), "token")
    for words in ("exp-7 step 300", "alice", "2026-11-28T18:00:00Z", "10 %: version 300, 2/2 pods", "Serving"):
        assert words in page
    assert 'href="/servers/team-a/digits"' in page
    assert 'href="/runs/cluster/team-a/exp-7/mnist"' in page


def test_a_list_that_cannot_be_read_is_never_empty() -> None:
    page = PAGES.servers.list(ServersView((make_server(),), error="the cluster is away", read_at=NOW), "token")
    assert "Not up to date" in page
    assert "exp-7 step 300" in page
    assert "No model servers." not in PAGES.servers.list(ServersView(error="the cluster is away"), "token")


def test_a_server_has_its_history_and_the_commands() -> None:
    page = html.unescape(PAGES.servers.one(SERVER, make_view(), "token"))
    assert "accuracy=0.9" in page
    assert "<code>accuracy>=0.9</code>" in page
    assert "trainchart promote RELEASE --to digits -n team-a" in page
    assert "trainchart promote --to digits -n team-a --rollback" in page
    without = PAGES.servers.one(SERVER, replace(make_view(), entries=(), history_error="secrets is forbidden"), "token")
    assert "The history could not be read.</strong> secrets is forbidden" in without
    assert "No promotions." not in without


def describe(report: Report, *servers: ServerState) -> tuple[list[str], list[str], str]:
    found = describe_serving(servers, report, "exp-7 -n team-a")
    return [f"{row.name} {row.note}".strip() for row in found.rows], list(found.commands), found.note


def test_a_run_shows_who_serves_it_and_how_others_would() -> None:
    other = make_server(name="other", release="exp-6")
    report = make_report(origin=CLUSTER, phase=SUCCEEDED, run_id="b")
    command = "trainchart promote exp-7 -n team-a --to other"
    assert describe(report, make_server(), other) == (["digits"], [command], "")
    # An export of an earlier run of the release is another model.
    names, commands, _ = describe(report, make_server(run="a"))
    assert names == ["digits of another run of the release, a"]
    assert commands == ["trainchart promote exp-7 -n team-a --to digits"]
    assert describe(make_report(origin=CLUSTER), other)[2] == "It can be promoted once it has succeeded."
    failed = make_report(origin=CLUSTER, phase=FAILED)
    assert describe_serving([other], failed, "exp-7").is_shown is False
    assert describe_serving([other], make_report(), "exp-7").is_shown is False
    assert describe_serving([], report, "exp-7").is_shown is False
