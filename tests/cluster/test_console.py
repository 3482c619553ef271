"""The console in a browser, on a real cluster: releases installed, watched, disturbed, stopped and uninstalled."""

from __future__ import annotations

import re
import shutil
import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect, sync_playwright

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.releases import PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY
from tests.cluster.testcluster.users import make_user
from tests.console.conftest import FLAGS, Project

pytestmark = pytest.mark.cluster

WAIT_MS = 90_000
STEPS_WATCHED = 10
STEPS = """
import json, os, time
from pathlib import Path
step = 0
while True:
    step += 10
    if os.environ["TASK_TYPE"] == "chief":
        target = Path(os.environ["TRAINCHART_PROGRESS_FILE"])
        target.with_suffix(".new").write_text(json.dumps({"step": step, "metrics": {"loss": 1 / step}}))
        target.with_suffix(".new").replace(target)
        print("step", step, flush=True)
    time.sleep(0.5)
"""


CHANGES = {
    "command": ["python3", "-c", STEPS],
    "roles": {
        "chief": TINY,
        "worker": {**TINY, "saveWaitSeconds": 0},
        "ps": {**TINY, "saveWaitSeconds": 0},
        "evaluator": {"replicas": 0},
    },
}
VALUES = merge_values(mnist_values(), merge_values(CONTROLLED, CHANGES))
"""A run of a chief and two workers, which makes steps."""


@pytest.fixture
def release(admin: Access, namespace: str) -> Release:
    """A run that goes on."""
    made = Release(admin, namespace, "exp1", PROJECT / "charts" / "mnist", VALUES)
    made.install()
    return made


@pytest.fixture
def page(admin: Access, namespace: str, tmp_path: Path) -> Iterator[Page]:
    """The page of all runs, with the user signed in, of a console in a project with a chart."""
    with open_page(admin, namespace, tmp_path) as opened:
        yield opened


@contextmanager
def open_page(access: Access, namespace: str, folder: Path) -> Iterator[Page]:
    shutil.copytree(PROJECT / "charts" / "mnist", folder / "charts" / "mnist")
    project = Project(folder, {**access.environment, "HOME": str(folder)})
    place = [f"--namespace={namespace}"]
    place += [f"--context={access.context}"] if access.context else []
    console = project.open_console(*place)
    program = shutil.which("chromium")
    assert program is not None, "chromium is not installed"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
            opened = browser.new_context().new_page()
            opened.set_default_timeout(WAIT_MS)
            opened.goto(console.address)
            opened.get_by_label("Code").fill(console.code)
            opened.get_by_role("button", name="Sign in").click()
            yield opened
            browser.close()
    finally:
        code = project.end(console.process)
    assert code == 0


def read_step(page: Page) -> int:
    """Return the step on the page of a run; 0 for none yet."""
    found = re.search(r"Step\s*([\d,]+)", page.locator(".facts").inner_text(), re.IGNORECASE)
    return int(found[1].replace(",", "")) if found else 0


def watch_steps(page: Page) -> dict[int, float]:
    """Return steps as they came onto the page, and when; the record alone would have three of them in that time."""
    seen: dict[int, float] = {}
    deadline = time.monotonic() + WAIT_MS / 1000
    while len(seen) < STEPS_WATCHED:
        assert time.monotonic() < deadline, f"the page had only these steps: {list(seen)}"
        step = read_step(page)
        if step:
            seen.setdefault(step, time.time())
        time.sleep(0.02)
    return seen


def list_delays(release: Release, seen: Mapping[int, float]) -> list[float]:
    """Return how long after its line in the log each step, or a later one, was on the page."""
    pod = f"{release.name}-mnist-chief-0"
    log = release.access.kubectl("logs", pod, "--namespace", release.namespace, "--timestamps")
    logged = {int(step): datetime.fromisoformat(at[:26] + "+00:00").timestamp()
              for at, step in re.findall(r"^(\S+)Z step (\d+)$", log, re.MULTILINE)}  # fmt: skip
    return [
        min(at for shown, at in seen.items() if shown >= step) - at
        for step, at in logged.items()
        if min(seen) < step <= max(seen)
    ]


def act(page: Page, verb: str) -> None:
    page.get_by_text(f"{verb} …").click()
    page.get_by_role("button", name=f"{verb} exp1").click()


def test_a_release_is_watched_and_controlled(release: Release, page: Page) -> None:
    expect.set_options(timeout=WAIT_MS)
    page.get_by_role("link", name="exp1").click()
    phase, facts = page.locator(".head .phase"), page.locator(".facts")
    expect(phase).to_have_text("Running")
    expect(facts).to_contain_text("Step")
    expect(page.locator(".log")).to_contain_text("step 10")
    expect(page.get_by_role("region", name="Settings")).to_contain_text("learningRate")
    delays = list_delays(release, watch_steps(page))
    print(f"from the log to the page: {statistics.median(delays):.2f} s, at most {max(delays):.2f} s")

    pod = f"{release.name}-mnist-worker-0"
    release.access.kubectl("delete", "pod", pod, "--namespace", release.namespace, "--wait=false")
    expect(page.get_by_role("region", name="Why")).to_contain_text("pod-deleted")
    expect(page.get_by_role("row", name="worker-0")).to_contain_text("Running")

    act(page, "Suspend")
    expect(page.locator(".notice")).to_have_text("exp1: set run.desiredState=suspended")
    expect(phase).to_have_text("Suspended")
    expect(page.locator(".advice")).to_contain_text(f"trainchart resume exp1 -n {release.namespace}")
    act(page, "Resume")
    expect(phase).to_have_text("Running")
    act(page, "Stop")
    expect(phase).to_have_text("Stopped")
    expect(page.get_by_text("Rerun …")).to_be_visible()


def test_who_may_only_read_sees_and_is_refused(release: Release, tmp_path: Path) -> None:
    expect.set_options(timeout=WAIT_MS)
    reader = make_user(release.access, release.namespace, "reader", "view", tmp_path)
    with open_page(reader, release.namespace, tmp_path / "project") as page:
        page.get_by_role("link", name="exp1").click()
        expect(page.locator(".head .phase")).to_have_text("Running")
        expect(page.locator(".log")).to_contain_text("step 10")
        expect(page.locator(".note", has_text="30 seconds late")).to_contain_text(
            'cannot get resource "pods/portforward"'
        )
        act(page, "Suspend")
        expect(page.locator(".stale")).to_contain_text("suspend was refused")
        expect(page.locator(".stale")).to_contain_text('cannot list resource "secrets"')
        page.get_by_role("link", name="Uninstall …").click()
        expect(page.locator("main")).to_contain_text('cannot list resource "secrets"')
    release.access.kubectl("get", "statefulset", f"{release.name}-mnist-chief", "--namespace", release.namespace)


def fill_form(page: Page) -> None:
    page.get_by_role("link", name="New run").click()
    page.get_by_role("link", name="mnist", exact=True).click()
    page.get_by_label("Release", exact=True).fill("exp2")
    page.get_by_label("All values").fill(yaml.safe_dump(VALUES))


def test_a_training_is_installed_and_uninstalled(admin: Access, namespace: str, page: Page) -> None:
    expect.set_options(timeout=WAIT_MS)
    fill_form(page)
    expect(page.get_by_label("Namespace")).to_have_value(namespace)
    rate = page.get_by_label("Learning rate")
    rate.fill("0")
    page.get_by_role("group", name="Role worker").get_by_label("Pods").fill("1")
    page.get_by_role("button", name="Review").click()
    expect(rate).to_have_attribute("aria-invalid", "true")
    rate.fill("0.2")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("region", name="The command")).to_contain_text(
        f"helm install exp2 charts/mnist --namespace {namespace}"
    )
    page.get_by_role("button", name="Install").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("exp2")
    expect(page.locator(".notice")).to_have_text("exp2 is installed.")
    expect(page.get_by_role("row", name="worker-0")).to_contain_text("Running")
    expect(page.locator(".log")).to_contain_text("step 10")
    expect(page.get_by_role("region", name="Settings")).to_contain_text("0.2")
    expect(page.get_by_role("row", name="worker-1")).to_have_count(0)

    page.get_by_role("link", name="Uninstall …").click()
    claim = "exp2-mnist-checkpoints"
    expect(page.get_by_role("region", name="Kept")).to_contain_text(f"PersistentVolumeClaim {claim} (1Gi)")
    page.get_by_label("Type exp2 to confirm").fill("exp2")
    page.get_by_role("button", name="Uninstall exp2").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("exp2 is uninstalled")
    assert "exp2" not in admin.kubectl("get", "secrets", "--output=name", "--namespace", namespace)
    assert claim in admin.kubectl("get", "pvc", "--output=name", "--namespace", namespace)
    assert "exp2" not in admin.kubectl("get", "statefulsets", "--output=name", "--namespace", namespace)

    # The claim is still there, so the chart refuses a release of this name, and helm says so.
    page.get_by_role("link", name="All runs").click()
    fill_form(page)
    page.get_by_role("button", name="Review").click()
    page.get_by_role("button", name="Install").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("It was not installed.")
    expect(alert).to_contain_text(claim)
    page.get_by_role("button", name="Change values").click()
    expect(page.get_by_label("Release", exact=True)).to_have_value("exp2")
    assert yaml.safe_load(page.get_by_label("All values").input_value()) == VALUES
