"""The console in a real browser: runs that go on while watched, a failed one, hostile texts, a cluster that is away."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect

from tests.console.conftest import Opened, Project, Tab, wait_until
from tests.small_cluster.small_api import SmallApi
from tests.support.console_reports import HOSTILE
from trainchart.console.addresses import address_of
from trainchart.console.views import RunRef

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
STEP_SECONDS = 2.0
STEPS = range(40, 1240, 40)


@pytest.fixture(scope="module")
def training(project: Project) -> str:
    """A run that goes on, with some steps behind it."""
    project.train("mnist-2", "train")
    wait_until(lambda: list(project.runs.glob("mnist-2/claims/*checkpoints")), "the run starts")
    curves = project.runs / "mnist-2" / "curves.jsonl"
    # Kept once a second: the others are written as a run keeps them.
    project.set_step("mnist-2", 20)
    wait_until(curves.exists, "the first step is kept")
    lines = [
        {"task": "chief-0", "at": time.time(), "step": step, "values": {"loss": loss, "accuracy": 1 - loss / 2.5}}
        for step in STEPS
        for loss in [2.3 / (1 + step / 400) * (1 + 0.05 * (-1) ** (step // 40))]
    ]
    with curves.open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))
    project.set_step("mnist-2", 1240)
    return "mnist-2"


@pytest.fixture(scope="module")
def failed(project: Project) -> str:
    """A run whose program has failed."""
    project.train("mnist-1", "fail").wait(40)
    return "mnist-1"


def make_hostile_run(project: Project, text: str) -> None:
    """Write the folder of a run in which everything that others write is `text`."""
    folder = project.runs / text
    for name in ("logs", "state"):
        (folder / name).mkdir(parents=True)
    pod = {"label": "chief-0", "name": text, "role": text, "state": str(folder / "state"), "log": text}
    record = {
        "release": text, "chart": text, "target": text, "command": text, "deciding": ["chief-0"], "pods": [pod],
        "hyperparameters": {text: text}, "values": {text: text}, "code": {"folder": text}, "host": text,
    }  # fmt: skip
    failure = {
        "pod": text, "cause": text, "sentence": text, "error": text, "hint": text, "exit_code": 1, "at": 1.0,
        "log_file": text, "last_lines": [text],
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "result.json").write_text(
        json.dumps({"verdict": "Failed", "failure": failure, "metrics": {"c": {text: 1}}})
    )
    (folder / "logs" / "chief-0.log").write_text("".join(f"2026-01-01T00:00:00Z {line}\n" for line in text.split("\n")))
    point = {"task": text, "at": 1.0, "step": 1, "values": {text: 1.0}}
    (folder / "curves.jsonl").write_text(json.dumps(point) + "\n")


def test_a_new_step_is_on_the_screen_within_two_seconds(
    project: Project, training: str, open_tab: Callable[..., Tab], take: Callable[..., None]
) -> None:
    tab = open_tab()
    tab.go(f"/runs/local/{training}")
    step = tab.page.locator(".facts div", has_text="Step").locator("dd").first
    expect(step).to_have_text("1,240")
    seconds = []
    for number in (1280, 1320, 1360):
        begin = time.monotonic()
        project.set_step(training, number)
        expect(step).to_have_text(f"{number:,}")
        seconds.append(time.monotonic() - begin)
    assert min(seconds) <= STEP_SECONDS, seconds
    expect(tab.page.locator(".log li").last).to_contain_text("step 1360")
    loss = tab.page.locator("figure", has_text="loss").get_by_role("img")
    expect(loss).to_have_attribute("aria-label", re.compile(r"^loss: 0\.52\d* at step 1360, from 2\.\d+ at step 20"))
    expect(tab.page.locator("figure canvas")).to_have_count(3)
    take(tab, "run-light")
    tab.page.get_by_role("button", name="Colours").click()
    tab.page.get_by_role("button", name="Colours").click()
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 28)"
    take(tab, "run-dark")
    assert tab.complaints == []


def test_the_list_follows_a_run_to_its_end(
    project: Project, open_tab: Callable[..., Tab], training: str, failed: str, take: Callable[..., None]
) -> None:
    del training, failed
    tab = open_tab()
    take(tab, "list-light")
    project.train("mnist-3", "train")
    row = tab.page.get_by_role("row", name="mnist-3")
    expect(row).to_contain_text("Running")
    project.set_step("mnist-3", 20)
    expect(row.locator(".step")).to_have_text("20")
    project.set_step("mnist-3", 0)
    expect(row).to_contain_text("Succeeded")
    assert tab.complaints == []


def test_a_wide_role_does_not_widen_the_page(api: SmallApi, open_tab: Callable[..., Tab]) -> None:
    resources = {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"nvidia.com/mig-1g.10gb.shared": "1"}}
    for each in api.objects["statefulsets"]:
        each["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    for settings in ({}, PHONE):
        tab = open_tab(**settings)
        tab.go("/runs/cluster/team-a/exp1/mnist")
        expect(tab.page.get_by_role("region", name="Roles and pods")).to_contain_text("1 nvidia.com/mig-1g")
        assert tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_pages_fit_a_phone_and_dark_colours(
    open_tab: Callable[..., Tab], training: str, failed: str, take: Callable[..., None]
) -> None:
    for name, settings in (("phone", PHONE), ("dark", {"color_scheme": "dark"})):
        tab = open_tab(**settings)
        for part, path in (("list", "/"), ("failed", f"/runs/local/{failed}"), ("run", f"/runs/local/{training}")):
            tab.go(path)
            width = tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert width <= 0, (name, part)
            if (name, part) != ("dark", "run"):
                take(tab, f"{part}-{name}")
        assert tab.complaints == []


def test_a_failed_run_shows_why_and_what_to_do(failed: str, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    tab.page.get_by_role("link", name=failed, exact=True).click()
    why = tab.page.get_by_role("region", name="Why")
    expect(why).to_contain_text("program-error: The program ended with an exception.")
    expect(why).to_contain_text("ValueError: the learning rate is too fast")
    expect(why.locator(".advice")).to_contain_text(f"--resume --release {failed}")
    assert tab.complaints == []


def test_a_run_is_stopped_from_its_page(
    project: Project, open_tab: Callable[..., Tab], take: Callable[..., None]
) -> None:
    process = project.train("mnist-5", "train")
    wait_until(lambda: list(project.runs.glob("mnist-5/claims/*checkpoints")), "the run starts")
    project.set_step("mnist-5", 40)
    tab = open_tab()
    tab.go("/runs/local/mnist-5")
    expect(tab.page.locator(".facts")).to_contain_text("40")
    tab.page.get_by_text("Stop …").click()
    expect(tab.page.get_by_text("Runs trainchart stop mnist-5")).to_be_visible()
    take(tab, "stop-light")
    tab.page.get_by_role("button", name="Stop mnist-5").click()
    expect(tab.page.get_by_role("status").filter(has_text="asked to stop")).to_be_visible()
    expect(tab.page.locator(".head .phase")).to_have_text("Stopped")
    expect(tab.page.get_by_text("Stop …")).to_have_count(0)
    assert process.wait(20) != 0
    assert tab.complaints == []


def test_runs_are_compared_side_by_side(
    project: Project, training: str, failed: str, open_tab: Callable[..., Tab], take: Callable[..., None]
) -> None:
    other = project.runs / "mnist-4"
    (other / "logs").mkdir(parents=True)
    for name in ("run.json", "state.json", "curves.jsonl"):
        text = (project.runs / training / name).read_text()
        (other / name).write_text(text.replace(f'"{training}"', '"mnist-4"').replace("0.05", "0.2"))
    points = [json.loads(line) for line in (other / "curves.jsonl").read_text().splitlines()]
    for point in points:
        point["values"]["loss"] = point["values"]["loss"] ** 1.5 / 2
    (other / "curves.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    result = {"verdict": "Succeeded", "step": 1240, "metrics": {"chief-0": {"loss": 0.2, "accuracy": 0.92}}}
    (other / "result.json").write_text(json.dumps(result))
    tab = open_tab()
    compare = tab.page.get_by_role("button", name="Compare")
    expect(compare).to_be_disabled()
    for name in (training, "mnist-4", failed):
        tab.page.get_by_label(f"Choose {name}").check()
    expect(compare).to_have_text("Compare 3")
    compare.click()
    expect(tab.page.get_by_role("row", name="learningRate")).to_contain_text("0.2")
    loss = tab.page.locator("figure", has_text="loss").get_by_role("img")
    expect(loss).to_have_attribute("aria-label", re.compile(rf"^loss: {training} 0\.5.*; mnist-4 "))
    project.set_step(training, 1400)
    expect(tab.page.get_by_role("row", name="last step")).to_contain_text("1400")
    take(tab, "compare-light")
    assert tab.complaints == []


def test_hostile_texts_run_no_script(project: Project, open_tab: Callable[..., Tab]) -> None:
    names = [text for text in HOSTILE if "/" not in text and "\n" not in text]
    for text in names:
        make_hostile_run(project, text)
    # What no folder can be called stands in the logs of another run.
    others = "\n".join(text for text in HOSTILE if text not in names)
    (project.runs / names[0] / "logs" / "chief-0.log").write_text(
        "".join(f"2026-01-01T00:00:00Z {line}\n" for line in others.split("\n"))
    )
    tab = open_tab()
    try:
        expect(tab.page.locator("#group-local tbody tr")).to_have_count(len(list(project.runs.glob("*/run.json"))))
        for text in names:
            tab.go(address_of(RunRef("local", "", text, "")))
            expect(tab.page.locator("figure")).to_have_count(1)
            assert unquote(urlsplit(tab.page.url).path) == f"/runs/local/{text}"
            assert (
                tab.page.evaluate("document.querySelectorAll('script:not([src]), [onerror], [onload], img').length")
                == 0
            )
        tab.go(address_of(RunRef("local", "", names[0], "")))
        expect(tab.page.locator(".log")).to_contain_text("</title></textarea></style><script>alert(1)</script>")
        assert tab.complaints == []
    finally:
        for text in names:
            (project.runs / text / "run.json").unlink()


def test_a_cluster_that_goes_away_is_called_stale(
    api: SmallApi, open_tab: Callable[..., Tab], take: Callable[..., None]
) -> None:
    tab = open_tab()
    cluster = tab.page.get_by_role("region", name="On the cluster")
    expect(cluster.get_by_role("row", name="exp1")).to_contain_text("Running")
    page = open_tab()
    page.go("/runs/cluster/team-a/exp1/mnist")
    expect(page.page.get_by_role("region", name="Roles and pods")).to_contain_text("worker-1")
    api.raw = (503, "text/plain", b"away")
    try:
        for each in (tab, page):
            expect(each.page.get_by_role("alert")).to_contain_text("Not up to date")
        expect(cluster.get_by_role("row", name="exp1")).to_contain_text("Running")
        expect(page.page.get_by_role("region", name="Roles and pods")).to_contain_text("worker-1")
        take(tab, "stale-light")
    finally:
        api.raw = None
    for each in (tab, page):
        expect(each.page.get_by_role("alert")).to_have_count(0)


def test_the_keyboard_finds_and_opens_a_run(failed: str, training: str, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    expect(tab.page.get_by_role("row", name=training)).to_be_visible()
    tab.page.keyboard.press("/")
    expect(tab.page.get_by_label("Filter")).to_be_focused()
    tab.page.keyboard.type(failed)
    expect(tab.page.get_by_role("row", name=training)).to_be_hidden()
    tab.page.keyboard.press("Tab")
    expect(tab.page.get_by_label(f"Choose {failed}")).to_be_focused()
    tab.page.keyboard.press("Tab")
    expect(tab.page.get_by_role("link", name=failed, exact=True)).to_be_focused()
    time.sleep(1.2)  # the page is brought up to date meanwhile, and the focus stays
    expect(tab.page.get_by_role("link", name=failed, exact=True)).to_be_focused()
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text(failed)


def test_the_private_file_signs_in(
    project: Project, open_tab: Callable[..., Tab], tmp_path: Path, browser: Any
) -> None:
    noted = tmp_path / "noted"
    program = tmp_path / "open-page"
    program.write_text(f'#!/bin/sh\necho "$1" > {noted}\n')
    program.chmod(0o755)
    console = project.open_console(BROWSER=f"{program} %s", XDG_RUNTIME_DIR=str(tmp_path))
    wait_until(lambda: noted.exists() and noted.read_text(), "the browser is started")
    address = noted.read_text().strip()
    page = Path(urlsplit(address).path)
    assert console.code not in address
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    tab = open_tab(console, signs_in=False)
    tab.page.goto(address)
    tab.page.wait_for_selector('#live[data-state="live"]')
    assert tab.page.url == console.address
    assert project.end(console.process) == 0
    assert not page.exists()
    expect(tab.page.locator("#live")).to_have_text(re.compile("no connection to the console"))


def test_signing_in_needs_the_code(console: Opened, open_tab: Callable[..., Tab], take: Callable[..., None]) -> None:
    tab = open_tab(signs_in=False)
    tab.page.goto(console.address + "runs/local/mnist-1")
    take(tab, "sign-in")
    tab.page.get_by_label("Code").fill("wrong")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("not the code")
    tab.page.goto(console.address)
    assert "mnist-1" not in tab.page.content()


def test_another_site_cannot_use_the_session(open_tab: Callable[..., Tab], tmp_path: Path) -> None:
    tab = open_tab()
    evil = tmp_path / "evil.html"
    evil.write_text(
        f'<iframe src="{tab.console.address}"></iframe>'
        f'<form method="post" action="{tab.console.address}sign-out"><input name="token" value="x"></form>'
        f'<script>fetch("{tab.console.address}", {{credentials: "include"}})'
        '.then((answer) => answer.text()).then((text) => { document.title = text || "read" })'
        '.catch(() => { document.title = "refused" })</script>'
    )
    page = tab.page.context.new_page()
    page.goto(evil.as_uri())
    wait_until(lambda: page.title() == "refused", "the foreign page is refused")
    page.evaluate("document.forms[0].submit()")
    page.wait_for_url(re.compile("sign-out"))
    tab.go("/")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Runs")


def test_secrets_stay_out_of_addresses_and_output(console: Opened, project: Project) -> None:
    with os.scandir(project.folder) as found:
        texts = [Path(each.path).read_text() for each in found if each.name.startswith("errors-")]
    assert sum(text.count(console.code) for text in texts) == 1
    consoles = [text for text in texts if text.startswith("console:")]
    assert consoles
    assert not any("Traceback" in text for text in consoles)
