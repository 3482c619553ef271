"""The classic examples of distributed TensorFlow, side by side on a cluster, watched to their ends in the console."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.cluster.test_console import open_page
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.releases import PROJECT, TRAINING_SECONDS, Release, make_values, merge_values
from tests.cluster.testcluster.runs import CONTROLLED

pytestmark = pytest.mark.cluster

STEPS = {"trainSteps": 200}
LEARNED = re.compile(r"accuracy on 1000 held-out digits: 0\.[89]")


@dataclass(frozen=True)
class Example:
    """A release of one of the examples, and what it prints at its end."""

    chart: str
    pods: dict[str, int]
    """Role → pods."""
    says: re.Pattern[str]
    hyperparameters: dict[str, int]


EXAMPLES = {
    "hello": Example(
        "hello",
        {"chief": 1, "worker": 1},
        re.compile(r"/job:worker/.* says: Hello, distributed TensorFlow! 1 \+ … \+ 100 = 5050"),
        {},
    ),
    "replica": Example("mnist-classic", {"worker": 1, "ps": 1}, LEARNED, STEPS),
    "towers": Example("mnist-towers", {"chief": 1, "worker": 2, "ps": 1}, LEARNED, STEPS),
}


def plan_release(access: Access, namespace: str, name: str) -> Release:
    example = EXAMPLES[name]
    values = make_values(example.chart, tuple(example.pods), **example.hyperparameters)
    changes = {
        "image": {"repository": f"{REGISTRY_HOST}/ml/classic"},
        "roles": {role: {"replicas": pods} for role, pods in example.pods.items()},
    }
    if not example.hyperparameters:
        del values["volumes"], values["hyperparameters"]
    return Release(
        access,
        namespace,
        name,
        PROJECT / "charts" / example.chart,
        merge_values(merge_values(values, CONTROLLED), changes),
    )


def open_tab(page: Page, name: str) -> Page:
    """Open the page of a run beside that of all runs, and see its pods there."""
    tab = page.context.new_page()
    tab.goto(page.url)
    tab.get_by_role("link", name=name, exact=True).click()
    for role, pods in EXAMPLES[name].pods.items():
        expect(tab.get_by_role("row", name=f"{role}-{pods - 1}")).to_be_visible()
    return tab


def test_the_classic_examples_end_well_in_the_console(admin: Access, namespace: str, tmp_path: Path) -> None:
    expect.set_options(timeout=TRAINING_SECONDS * 1000)
    with open_page(admin, namespace, tmp_path) as page:
        for name in EXAMPLES:
            plan_release(admin, namespace, name).install()
        tabs = {name: open_tab(page, name) for name in EXAMPLES}
        for name, tab in tabs.items():
            tab.bring_to_front()
            expect(tab.locator(".head .phase")).to_have_text("Succeeded")
            expect(tab.locator(".log")).to_contain_text(EXAMPLES[name].says)
