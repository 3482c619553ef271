"""Model servers in a real browser: what serves, from which run, the history of promotions, and the commands."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Opened, Tab
from tests.small_cluster import cluster_objects
from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    make_job,
    make_record,
    make_sets,
    make_state,
    make_verdict,
)
from tests.small_cluster.helm_records import make_helm_record
from tests.small_cluster.small_api import SmallApi
from tests.support.command_line import call
from tests.support.console_reports import HOSTILE
from tests.support.model_server_objects import CLAIM, HASH, make_deployment, make_promotion
from trainchart_runtime import causes

FAMILY = Path(__file__).parents[2] / "chart-templates" / "model-server"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
HISTORY_SECONDS = 40
CANARY: dict[str, Any] = {"version": 350, "track": "canary", "wanted": 1, "weight": "10"}
BACK = {
    "at": "2026-11-28T20:12:00Z",
    "by": "bob",
    "revision": 3,
    "version": 350,
    "promotedAt": "2026-11-28T20:05:00Z",
    "why": "0.04 of the requests failed",
}
SUCCESS: dict[str, Any] = {
    "pod": "exp1-mnist-chief-0",
    "node": "node1",
    "exitCode": 0,
    "error": "",
    "step": 300,
    "metrics": {"accuracy": 0.93},
    "lines": ["final accuracy 0.93 at step 300"],
}
LINES = (
    ("chief-0", "final accuracy 0.93 at step 300"),
    ("worker-0", "joined the training at step 0"),
    ("worker-1", "joined the training at step 0"),
    ("ps-0", "listening at 0.0.0.0:2222"),
)
NOW = make_promotion(300, at="2026-11-28T19:40:00Z", rolledBack=BACK)


@pytest.fixture(scope="module", autouse=True)
def servers(api: SmallApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallApi]:
    """exp1 has succeeded and serves on digits, beside a canary; letters was installed by hand."""
    folder = tmp_path_factory.mktemp("servers")
    (folder / "models").mkdir()
    shutil.copy(FAMILY / "tests" / "digits-prod.yaml", folder / "models" / "digits-prod.yaml")
    assert call(folder, "generate", "digits-prod").returncode == 0

    def make_revision(number: int, record: dict[str, Any], status: str = "superseded") -> dict[str, Any]:
        model = {"version": record["model"]["version"], "content": HASH, "claim": CLAIM}
        given = {"model": model, "promotion": record}
        return make_helm_record(
            folder / "charts" / "digits-prod", "digits", NAMESPACE, given, status=status, revision=number
        )

    earlier = make_promotion(250, at="2026-11-27T09:15:00Z")
    failed = make_promotion(350, "exp2", "bob", at="2026-11-28T20:05:00Z")
    verdict = make_verdict("Succeeded", causes.SUCCEEDED, **SUCCESS)
    logs = json.dumps({f"exp1-mnist-{label}": {"at": cluster_objects.NOW, "lines": [line]} for label, line in LINES})
    api.objects |= {
        "statefulsets": make_sets(0),
        "pods": [],
        "jobs": [make_job("Complete")],
        "configmaps": [make_record(make_state("Succeeded", verdict=verdict), logs=logs)],
        "deployments": [
            make_deployment(promotion=NOW, wanted=9),
            make_deployment("digits-canary", **CANARY),
            make_deployment("letters", version=12),
        ],
        "secrets": [
            make_revision(1, earlier),
            make_revision(2, make_promotion(300, at="2026-11-28T19:40:00Z")),
            make_revision(3, failed),
            make_revision(4, NOW, "deployed"),
        ],
    }  # fmt: skip
    yield api


def test_the_first_page_asks_nothing_about_servers(
    servers: SmallApi, console: Opened, open_tab: Callable[..., Tab]
) -> None:
    """The first test here: what an earlier one had on its page, the console may still read."""
    tab = open_tab()
    servers.requests.clear()
    tab.go("/")
    expect(tab.page.get_by_role("region", name="On the cluster").get_by_role("row", name="exp1")).to_be_visible()
    time.sleep(1)
    asked = [path for path in servers.requests if re.search("/(deployments|secrets)", path)]
    assert asked == []


def test_a_server_shows_what_serves_and_its_history(open_tab: Callable[..., Tab], take: Callable[..., None]) -> None:
    tab = open_tab()
    tab.page.get_by_role("link", name="Model servers").focus()
    tab.page.keyboard.press("Enter")
    row = tab.page.get_by_role("row", name="team-a digits")
    for words in ("Serving", "9/9", "exp1 step 300", "2026-11-28T20:12:00Z", "10 %: version 350, 1/1 pods"):
        expect(row).to_contain_text(words)
    expect(tab.page.get_by_role("row", name="team-a letters")).to_contain_text("not promoted")
    take(tab, "servers-light")
    tab.page.get_by_role("link", name="digits", exact=True).focus()
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("digits")
    history = tab.page.get_by_role("region", name="Promotions", exact=True)
    for words in (
        "exp2 step 350",
        "rolled back",
        "0.04 of the requests failed",
        "accuracy>=0.9",
        "accuracy=0.93",
        "bob",
    ):
        expect(history).to_contain_text(words)
    expect(tab.page.get_by_role("region", name="Commands")).to_contain_text(
        "trainchart promote --to digits -n team-a --rollback"
    )
    take(tab, "server-light")
    history.get_by_role("link", name="exp1 step 300").click()
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("exp1")
    assert tab.complaints == []


def test_a_run_shows_who_serves_it(open_tab: Callable[..., Tab], take: Callable[..., None]) -> None:
    tab = open_tab()
    tab.go("/runs/cluster/team-a/exp1/mnist")
    serving = tab.page.get_by_role("region", name="Serving")
    for words in ("digits", "exp1 step 300", "2026-11-28T20:12:00Z", "bob"):
        expect(serving).to_contain_text(words)
    summary = serving.get_by_text("Promote it")
    summary.focus()
    tab.page.keyboard.press("Enter")
    expect(serving.get_by_text("trainchart promote exp1 -n team-a --to letters")).to_be_visible()
    time.sleep(1)  # the page is brought up to date meanwhile, and what was opened stays open
    expect(serving.get_by_text("trainchart promote exp1 -n team-a --to letters")).to_be_visible()
    take(tab, "served-light")
    assert tab.complaints == []


def test_pages_of_servers_fit_a_phone(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(**PHONE)
    for path in ("/servers", "/servers/team-a/digits", "/runs/cluster/team-a/exp1/mnist"):
        tab.go(path)
        assert tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, (
            path
        )
    assert tab.complaints == []


def test_a_promotion_appears_by_itself(servers: SmallApi, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    tab.go("/servers")
    row = tab.page.get_by_role("row", name="team-a letters")
    expect(row).to_contain_text("not promoted")
    before = servers.objects["deployments"]
    promoted = make_deployment("letters", version=40, promotion=make_promotion(40, "exp9", "carol"))
    servers.objects["deployments"] = [*before[:2], promoted]
    try:
        expect(row).to_contain_text("exp9 step 40")
        expect(row).to_contain_text("carol")
    finally:
        servers.objects["deployments"] = before


def test_who_may_not_read_helm_sees_what_serves(servers: SmallApi, open_tab: Callable[..., Tab]) -> None:
    servers.refused["secrets"] = 403
    try:
        tab = open_tab()
        tab.go("/servers/team-a/digits")
        expect(tab.page.locator(".head")).to_contain_text("exp1 step 300")
        # Another page may have read it a moment ago, and it is not read again at once.
        alert = tab.page.get_by_role("alert")
        expect(alert).to_contain_text("The history could not be read.", timeout=HISTORY_SECONDS * 1000)
    finally:
        servers.refused.clear()


def test_hostile_records_run_no_script(servers: SmallApi, open_tab: Callable[..., Tab]) -> None:
    before, tab = servers.objects["deployments"], open_tab()
    try:
        for text in HOSTILE:
            promotion = make_promotion(
                300, text, text, at=text, gates=[text], rolledBack={**BACK, "why": text, "at": text}
            )
            promotion["from"] |= {"run": text, "chart": text, "metrics": {text: 1.0}}
            servers.objects["deployments"] = [make_deployment(promotion=promotion, weight=text), *before[1:]]
            for path in ("/servers", "/servers/team-a/digits"):
                tab.go(path)
                expect(tab.page.locator("main")).to_contain_text("step 300")
                found = "document.querySelectorAll('script:not([src]), [onerror], [onload], img').length"
                assert tab.page.evaluate(found) == 0
        assert tab.complaints == []
    finally:
        servers.objects["deployments"] = before
