"""The console in a real browser with 1,001 releases, one of which has 1,000 pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Tab
from tests.small_cluster.cluster_objects import make_pod, make_set
from tests.small_cluster.small_api import SmallApi, serve_small_api

MANY = 1000
SECONDS = 60
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def api() -> Iterator[SmallApi]:
    """A cluster with exp-0 to exp-999, of one pod each, and the release wide."""
    releases = [f"exp-{number}" for number in range(MANY)]
    pods = [make_pod("worker-0", release=each) for each in releases]
    pods += [make_pod(f"worker-{number}", release="wide") for number in range(MANY)]
    sets = [make_set("worker", release=each, wanted=1) for each in releases]
    with serve_small_api() as server:
        server.objects = {"statefulsets": [*sets, make_set("worker", release="wide", wanted=MANY)], "pods": pods}
        yield server


def test_one_of_a_thousand_releases_is_found_and_opened(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    rows = tab.page.locator("tbody tr[id^=row]")
    expect(rows).to_have_count(MANY + 1, timeout=SECONDS * 1000)
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("exp-777")
    expect(rows.locator("visible=true")).to_have_count(1)
    tab.page.get_by_role("link", name="exp-777", exact=True).click()
    expect(tab.page.get_by_role("region", name="Roles and pods")).to_contain_text("worker-0")
    assert tab.complaints == []


def test_a_release_of_a_thousand_pods_fits_a_phone(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(**PHONE)
    for path in ("/", "/runs/cluster/team-a/wide/mnist"):
        tab.go(path)
        assert tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
    expect(tab.page.get_by_role("region", name="Roles and pods")).to_contain_text("998", timeout=SECONDS * 1000)
    assert tab.complaints == []
