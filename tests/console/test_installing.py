"""Installing and uninstalling in a real browser: what is wrong stands next to its field, what is right goes to helm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect

from tests.console.conftest import Opened, Project, Tab
from tests.console.test_browser import PHONE
from tests.small_cluster.helm_records import make_cluster_objects, make_helm_record
from tests.small_cluster.small_api import SmallApi
from tests.support.console_reports import HOSTILE

ROOT = Path(__file__).parent.parent.parent
NAMESPACE = "team-a"
RELEASE = "exp-8"


@dataclass
class RecordingHelm:
    """A helm that installs nothing: it writes down what it is given, and refuses where it is told to."""

    folder: Path

    @property
    def calls(self) -> list[list[str]]:
        file = self.folder / "calls"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    @property
    def values(self) -> Any:
        return yaml.safe_load((self.folder / "input").read_text())

    def refuse(self, text: str) -> None:
        (self.folder / "refusal").write_text(text)


@pytest.fixture(scope="module")
def helm(project: Project, helm4: Path) -> RecordingHelm:
    """The helm on the console's PATH; what it only renders, a real one does."""
    folder = project.folder / "bin"
    folder.mkdir()
    program = folder / "helm"
    program.write_text(
        '#!/bin/sh\ncase "$1" in\n(install|uninstall) ;;\n'
        f'(*) exec {helm4} "$@" ;;\nesac\n'
        f'separator="["; {{ for each; do printf \'%s"%s"\' "$separator" "$each"; separator=","; done; echo "]"; }}'
        f" >> {folder}/calls\ncat > {folder}/input\n"
        f'if [ -s {folder}/refusal ]; then cat {folder}/refusal >&2; rm {folder}/refusal; exit 1; fi\necho "done: $2"\n'
    )
    program.chmod(0o755)
    return RecordingHelm(folder)


@pytest.fixture(scope="module")
def console(project: Project, helm: RecordingHelm) -> Opened:
    """A console of a project with the example charts."""
    for name in ("mnist", "digits"):
        shutil.copytree(ROOT / "charts" / name, project.folder / "charts" / name)
    return project.open_console(PATH=f"{helm.folder}:{project.environment['PATH']}")


def fill_form(page: Page, release: str, **values: str) -> None:
    page.get_by_label("Release", exact=True).fill(release)
    for label, text in values.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(text)


def open_form(tab: Tab, chart: str = "mnist") -> Page:
    tab.go("/")
    tab.page.get_by_role("link", name="New run").click()
    tab.page.get_by_role("link", name=chart, exact=True).click()
    expect(tab.page.get_by_label("Release", exact=True)).to_be_visible()
    return tab.page


def width_beyond(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def test_wrong_values_are_refused_next_to_their_fields(
    open_tab: Callable[..., Tab], helm: RecordingHelm, take: Callable[..., None]
) -> None:
    before = len(helm.calls)
    tab = open_tab()
    page = open_form(tab)
    take(tab, "form-light")
    fill_form(page, "Exp 8", Max_steps="0", Learning_rate="fast")
    worker = page.get_by_role("group", name="Role worker")
    worker.get_by_label("Pods").fill("2000")
    page.get_by_label("All values").fill("tensorboard:\n  enabledd: false\n")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("alert")).to_contain_text("5 values are not accepted")
    for field, said in (
        (page.get_by_label("Release", exact=True), "at most 53 lower-case letters"),
        (page.get_by_label("Max steps"), "0 is less than the minimum 1"),
        (page.get_by_label("Learning rate"), "'fast' is a string, expected a number"),
        (worker.get_by_label("Pods"), "2000 is greater than the maximum 1,000"),
        (page.get_by_label("All values"), "did you mean enabled?"),
    ):
        expect(field).to_have_attribute("aria-invalid", "true")
        error = field.get_attribute("aria-describedby") or ""
        expect(page.locator(f"#{error.split()[0]}")).to_contain_text(said)
    expect(page.get_by_label("Max steps")).to_have_value("0")
    expect(page.get_by_label("All values")).to_have_value("tensorboard:\n  enabledd: false\n")
    expect(page.get_by_label("Release", exact=True)).to_be_focused()
    expect(page.get_by_label("Batch size")).not_to_have_attribute("aria-invalid", "true")
    take(tab, "form-wrong-light")
    assert helm.calls[before:] == []


def test_right_values_go_to_helm_and_to_the_page_of_the_run(
    api: SmallApi, open_tab: Callable[..., Tab], helm: RecordingHelm, take: Callable[..., None]
) -> None:
    before = len(helm.calls)
    tab = open_tab()
    page = open_form(tab)
    fill_form(page, RELEASE, Max_steps="500", Learning_rate="0.1", Batch_size="64", Tag="1.10")
    page.get_by_role("group", name="Role worker").get_by_label("Pods").fill("4")
    page.get_by_label("All values").fill("tensorboard: {enabled: false}\nhyperparameters: {seed: 7}")
    page.get_by_label("Resume").fill("latest")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Install {RELEASE} in {NAMESPACE}?")
    command = page.get_by_role("region", name="The command")
    expect(command).to_contain_text(f"helm install {RELEASE} charts/mnist --namespace {NAMESPACE} --values - <<")
    expect(page.get_by_role("region", name="Objects that helm creates")).to_contain_text("4 StatefulSet")
    take(tab, "review-light")

    page.get_by_role("button", name="Change values").click()
    expect(page.get_by_label("Max steps")).to_have_value("500")
    page.get_by_role("button", name="Review").click()

    helm.refuse("Error: INSTALLATION FAILED: exceeded quota: <b>gpus</b>\n")
    page.get_by_role("button", name="Install").click()
    expect(page.get_by_role("alert")).to_contain_text("INSTALLATION FAILED: exceeded quota: <b>gpus</b>")
    assert "seed: 7" in command.inner_text()

    wanted = {
        "hyperparameters": {"maxSteps": 500, "learningRate": 0.1, "seed": 7},
        "image": {"tag": "1.10"},
        "roles": {"worker": {"replicas": 4}},
        "run": {"resume": "latest"},
        "tensorboard": {"enabled": False},
    }
    made = make_cluster_objects(ROOT / "charts" / "mnist", RELEASE, NAMESPACE, wanted)
    api.objects["statefulsets"] += made["statefulsets"]
    page.get_by_role("button", name="Install").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(RELEASE)
    expect(page.locator(".notice")).to_have_text(f"{RELEASE} is installed.")
    assert page.url.endswith(f"/runs/cluster/{NAMESPACE}/{RELEASE}/mnist")
    call = ["install", RELEASE, "charts/mnist", "--namespace", NAMESPACE, "--values", "-"]
    assert helm.calls[before:] == [call, call]
    assert helm.values == wanted


def test_uninstalling_asks_for_the_name_of_the_release(
    api: SmallApi, open_tab: Callable[..., Tab], helm: RecordingHelm, take: Callable[..., None]
) -> None:
    chart = ROOT / "charts" / "mnist"
    release = "exp-9"
    api.objects["statefulsets"] += make_cluster_objects(chart, release, NAMESPACE, {})["statefulsets"]
    api.objects["secrets"] = [make_helm_record(chart, release, NAMESPACE, {})]
    before = len(helm.calls)
    tab = open_tab()
    tab.go(f"/runs/cluster/{NAMESPACE}/{release}/mnist")
    page = tab.page
    page.get_by_role("link", name="Uninstall …").click()
    expect(page.get_by_role("region", name="Kept")).to_contain_text(
        f"PersistentVolumeClaim {release}-mnist-checkpoints (5Gi)"
    )
    expect(page.get_by_role("region", name="Deleted")).to_contain_text("4 StatefulSet")
    expect(page.get_by_role("region", name="Deleted")).not_to_contain_text("PersistentVolumeClaim")
    command = page.get_by_role("region", name="The command")
    expect(command).to_contain_text(f"helm uninstall {release} --namespace {NAMESPACE}")
    take(tab, "uninstall-light")
    expect(page.get_by_role("note")).to_have_count(0)
    for each in api.objects["statefulsets"][-4:]:
        each["metadata"]["labels"]["argocd.argoproj.io/instance"] = HOSTILE[0]
    page.reload()
    expect(page.get_by_role("note")).to_contain_text(f"the Argo CD application {HOSTILE[0]} applies this release")
    confirm = page.get_by_label(f"Type {release} to confirm")
    confirm.fill("exp")
    page.keyboard.press("Enter")
    expect(confirm).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#confirm-error")).to_contain_text("not the name")
    assert helm.calls[before:] == []
    confirm.fill(release)
    page.get_by_role("button", name=f"Uninstall {release}").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"{release} is uninstalled")
    expect(page.get_by_text(f"{release}-mnist-checkpoints")).to_be_visible()
    assert helm.calls[before:] == [["uninstall", release, "--namespace", NAMESPACE]]


def test_a_hostile_chart_runs_no_script(project: Project, open_tab: Callable[..., Tab], helm: RecordingHelm) -> None:
    texts = [text for text in HOSTILE if text.isprintable()]
    folder = project.folder / "charts" / "hostile"
    (folder / "templates").mkdir(parents=True)
    values = {f"key{number}": text for number, text in enumerate(texts)}
    described = {
        key: {"type": "string", "description": text, "enum": [text, *texts]}
        if number % 2
        else {"description": text, "type": [text, "string"], "pattern": "^(a+)+$|"}
        for number, (key, text) in enumerate(values.items())
    }
    odd = {"hyperparameters": {"properties": {**described, "odd": [], "self": {"$ref": "#/properties"}}}, "roles": 7}
    (folder / "Chart.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v2", "name": "hostile", "version": "1.0.0", "description": "".join(texts)})
    )
    (folder / "values.yaml").write_text(yaml.safe_dump({"hyperparameters": {**values, "odd": 1, "self": texts[0]}}))
    (folder / "values.schema.json").write_text(json.dumps({"properties": odd}))
    note = "{{ .Values.hyperparameters | toJson }}"
    template = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": note}}
    (folder / "templates" / "a.yaml").write_text(f"{{{{- fail (toJson .Values) }}}}\n{json.dumps(template)}")
    tab = open_tab()
    try:
        page = open_form(tab, "hostile")
        page.get_by_label("Key0").fill(f"{'a' * 60}!{texts[0]}")
        page.get_by_label("All values").fill(f"more: |\n  </textarea>{texts[1]}\n")
        fill_form(page, "exp-1")
        page.get_by_role("button", name="Review").click()
        expect(page.get_by_role("alert")).to_contain_text("not accepted")
        expect(page.get_by_label("All values")).to_have_value(f"more: |\n  </textarea>{texts[1]}\n")
        found = page.evaluate("document.querySelectorAll('script:not([src]), [onerror], [onload], main img').length")
        assert found == 0
        assert [line for line in tab.complaints if "422" not in line] == []
    finally:
        shutil.rmtree(folder)


def test_a_chart_that_was_not_offered_is_not_opened(
    project: Project, open_tab: Callable[..., Tab], helm: RecordingHelm
) -> None:
    outside = project.folder.parent / "outside"
    shutil.copytree(ROOT / "charts" / "digits", outside)
    (project.folder / "charts" / "linked").symlink_to(outside)
    before = len(helm.calls)
    tab = open_tab()
    tab.page.goto(f"{tab.console.address}new")
    expect(tab.page.get_by_text("linked' is not offered: it leads outside the project")).to_be_visible()
    names = ("../outside", "charts/../../outside", "charts/linked", "charts/linked/", str(outside))
    for key in (*(f"local/{name}" for name in names), str(outside), "oci://evil.example/c:1", "fetched/1", ""):
        answer = tab.page.goto(f"{tab.console.address}new/form?chart={key}")
        assert answer is not None
        assert answer.status == 404
    page = open_form(tab)
    fill_form(page, "exp-1")
    page.evaluate("document.querySelector('[name=chart]').value = 'local/../outside'")
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("main")).to_contain_text("is not one of the offered charts")
    assert helm.calls[before:] == []
    (project.folder / "charts" / "linked").unlink()


def test_forms_fit_a_phone_and_dark_colours(open_tab: Callable[..., Tab], take: Callable[..., None]) -> None:
    for name, settings in (("phone", PHONE), ("dark", {"color_scheme": "dark"})):
        tab = open_tab(**settings)
        tab.page.goto(f"{tab.console.address}new")
        expect(tab.page.get_by_role("link", name="digits")).to_be_visible()
        assert width_beyond(tab.page) <= 0
        take(tab, f"charts-{name}")
        tab.page.get_by_role("link", name="mnist", exact=True).click()
        expect(tab.page.get_by_label("Release", exact=True)).to_be_visible()
        assert width_beyond(tab.page) <= 0
        take(tab, f"form-{name}")
        fill_form(tab.page, "exp-1", Max_steps="50")
        tab.page.get_by_role("button", name="Review").click()
        expect(tab.page.get_by_role("button", name="Install")).to_be_visible()
        assert width_beyond(tab.page) <= 0
        take(tab, f"review-{name}")
        assert tab.complaints == []
