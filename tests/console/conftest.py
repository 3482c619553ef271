"""A browser, a console in a process of its own, and runs that it shows."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.small_cluster.cluster_objects import make_pods, make_sets
from tests.small_cluster.small_api import SmallApi, serve_small_api

HERE = Path(__file__).parent
CHART = HERE.parent / "local" / "charts" / "trainer"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
DEADLINE_SECONDS = 40.0


def wait_until(condition: Callable[[], Any], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


@dataclass
class Opened:
    """A console that listens."""

    process: subprocess.Popen[str]
    address: str
    code: str


@dataclass
class Project:
    """A folder with runs, and what was started in it."""

    folder: Path
    environment: dict[str, str]
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def runs(self) -> Path:
        return self.folder / ".trainchart" / "runs"

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        errors = (self.folder / f"errors-{len(self.started)}").open("w")
        process = subprocess.Popen(
            [sys.executable, "-m", "trainchart", *arguments],
            cwd=self.folder, env={**self.environment, **environment}, text=True, stdout=errors, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def open_console(self, *arguments: str, **environment: str) -> Opened:
        words = ("console", "--no-browser") if "BROWSER" not in environment else ("console",)
        process = self.start(*words, *arguments, **environment)
        errors = self.folder / f"errors-{len(self.started) - 1}"
        wait_until(lambda: "Ctrl-C" in errors.read_text() or process.poll() is not None, "the console starts")
        text = errors.read_text()
        found = re.search(r"console: +(http://\S+)\ncode: +(\S+)", text)
        assert found, text
        return Opened(process, found[1], found[2])

    def train(self, release: str, part: str) -> subprocess.Popen[str]:
        """Start a run whose chief plays a part of programs/steps.py."""
        role = {"replicas": 1, "args": [part]}
        values = {"program": "steps.py", "roles": {"chief": role, "worker": role, "ps": {"replicas": 0}}}
        (self.folder / f"{part}.yaml").write_text(json.dumps(values))
        return self.start("run", "charts/trainer", "--release", release, "-f", f"{part}.yaml", "--code", "code")

    def set_step(self, release: str, step: int) -> None:
        """Let the chief of a run report a step; 0 ends it."""
        (found,) = self.runs.glob(f"{release}/claims/*checkpoints")
        (found / "step.new").write_text(str(step))
        (found / "step.new").replace(found / "step")

    def end(self, process: subprocess.Popen[str]) -> int:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        return process.wait(20)


@pytest.fixture(scope="module")
def api() -> Iterator[SmallApi]:
    """A cluster with the release exp1."""
    with serve_small_api() as server:
        server.objects = {"statefulsets": make_sets(), "pods": make_pods()}
        yield server


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, api: SmallApi) -> Iterator[Project]:
    """A folder without runs, and the kubeconfig of the cluster."""
    folder = tmp_path_factory.mktemp("project")
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    shutil.copytree(CHART, folder / "charts" / "trainer")
    shutil.copytree(HERE / "programs", folder / "code")
    environment = {**kept, "HOME": str(folder), "KUBECONFIG": str(api.write_kubeconfig(folder / "kubeconfig"))}
    made = Project(folder, environment)
    yield made
    for process in made.started:
        with contextlib.suppress(ProcessLookupError):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
    for process in made.started:
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


@pytest.fixture(scope="module")
def console(project: Project) -> Opened:
    """A console of the project's runs and of the cluster's."""
    return project.open_console()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, as Debian packages it; while it is there, no other event loop can run in this thread."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        started.close()


@dataclass
class Tab:
    """A page, and what went wrong on it."""

    page: Page
    complaints: list[str]
    console: Opened

    def go(self, path: str) -> None:
        self.page.goto(self.console.address + path.removeprefix("/"))
        self.page.wait_for_selector('#live[data-state="live"]')


@pytest.fixture
def open_tab(browser: Browser, console: Opened) -> Iterator[Callable[..., Tab]]:
    """Return a function that opens a page with the user signed in, in colours and a width of choice."""
    contexts: list[BrowserContext] = []

    def open_one(console: Opened = console, *, signs_in: bool = True, **settings: Any) -> Tab:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(DEADLINE_SECONDS * 1000)
        complaints: list[str] = []
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("console", lambda line: complaints.append(line.text) if line.type in ("error", "warning") else None)
        if signs_in:
            page.goto(console.address)
            page.get_by_label("Code").fill(console.code)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_selector('#live[data-state="live"]')
            complaints.clear()  # that the first answer was 401
        return Tab(page, complaints, console)

    yield open_one
    for context in contexts:
        context.close()


HIDE_PATHS = r"""() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    node.data = node.data.replace(/\/\S*\/\.venv\/bin\//g, "/home/ada/.venv/bin/");
    node.data = node.data.replace(/\/tmp\/pytest-\S*?\/project0\//g, "/home/ada/project/");
  }
}"""
"""Folders of the machine that takes pictures, as those of a user."""


@pytest.fixture
def take(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a function that keeps a picture of a page in the folder of --screenshots, if one is given."""
    folder = request.config.getoption("--screenshots")

    def take_one(tab: Tab, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            tab.page.evaluate(HIDE_PATHS)
            tab.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)

    return take_one
