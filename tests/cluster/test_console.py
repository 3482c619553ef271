"""The console in a browser, of a release on a real cluster: watched, disturbed, suspended, resumed and stopped."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.releases import PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY
from tests.console.conftest import FLAGS, Project

pytestmark = pytest.mark.cluster

WAIT_MS = 90_000
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


@pytest.fixture
def release(admin: Access, namespace: str) -> Release:
    """A run of a chief and two workers, which makes steps."""
    changes = {
        "command": ["python3", "-c", STEPS],
        "roles": {
            "chief": TINY,
            "worker": {**TINY, "saveWaitSeconds": 0},
            "ps": {**TINY, "saveWaitSeconds": 0},
            "evaluator": {"replicas": 0},
        },
    }
    values = merge_values(mnist_values(), merge_values(CONTROLLED, changes))
    made = Release(admin, namespace, "exp1", PROJECT / "charts" / "mnist", values)
    made.install()
    return made


@pytest.fixture
def page(release: Release, tmp_path: Path) -> Iterator[Page]:
    """The page of all runs, with the user signed in."""
    project = Project(tmp_path, {**release.access.environment, "HOME": str(tmp_path)})
    place = [f"--namespace={release.namespace}"]
    place += [f"--context={release.access.context}"] if release.access.context else []
    console = project.open_console(*place)
    program = shutil.which("chromium")
    assert program is not None, "chromium is not installed"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        opened = browser.new_page()
        opened.set_default_timeout(WAIT_MS)
        opened.goto(console.address)
        opened.get_by_label("Code").fill(console.code)
        opened.get_by_role("button", name="Sign in").click()
        yield opened
        browser.close()
    assert project.end(console.process) == 0


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
