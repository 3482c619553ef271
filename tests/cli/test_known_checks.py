"""A chart that was checked today is not checked again, unless anything that the check looks at has changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from trainchart.actions import check as action
from trainchart.actions.check import CheckedChart, check_known_chart, choose_rules
from trainchart.check.finding import Finding
from trainchart.host.files import read_tree


@pytest.fixture(autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def never_again(*_: object, **__: object) -> CheckedChart:
    raise AssertionError("the chart was checked again")


def test_what_was_found_is_remembered_whole(plain_chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = plain_chart / "templates" / "service.yaml"
    service.write_text(service.read_text().replace("  publishNotReadyAddresses: true\n", ""))
    (plain_chart / "trainchart-waivers.yaml").write_text(
        "- {rule: capabilities-dropped, reason: an old base image, until: 2099-01-01}\n"
    )
    first = check_known_chart(plain_chart)
    monkeypatch.setattr(action, "check_chart", never_again)
    assert check_known_chart(plain_chart) == first
    assert any(finding.rule == "hosts-match" for finding in first.findings)


def _write(path: str, text: str) -> Callable[[Path, pytest.MonkeyPatch], dict[str, Any]]:
    def change(chart: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        del monkeypatch
        (chart / path).parent.mkdir(exist_ok=True)
        (chart / path).write_text(text)
        return {}

    return change


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], dict[str, Any]]] = {
    "a template": _write("templates/more.yaml", "a: 1\n"),
    "a file for ci": _write("ci/more-values.yaml", "env: []\n"),
    "a values file of the user": lambda *_: {"values": (("mine.yaml", "env: [1]\n"),)},
    "another version of Kubernetes": lambda *_: {"kube_versions": ("1.34",)},
    "other rules": lambda *_: {"rules": choose_rules(("hosts-match",))},
    "another engine": lambda *_: {"engine": "sdk"},
    "another day": lambda _, monkeypatch: monkeypatch.setattr(action, "utc_today", lambda: date(2099, 12, 31)) or {},
    "another trainchart": lambda _, monkeypatch: (
        monkeypatch.setattr("trainchart.host.result_cache._hash_program", lambda: "another") or {}
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_the_check_looks_at_is_noticed(
    plain_chart: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path, pytest.MonkeyPatch], dict[str, Any]],
) -> None:
    checked: list[str] = []

    def check_chart(chart: Path, **_: object) -> CheckedChart:
        checked.append("")
        return CheckedChart(chart, ())

    monkeypatch.setattr(action, "check_chart", check_chart)
    check_known_chart(plain_chart)
    check_known_chart(plain_chart)
    assert len(checked) == 1
    options = change(plain_chart, monkeypatch)
    check_known_chart(plain_chart, **options)
    assert len(checked) == 2


def test_a_changed_values_file_of_the_user_is_noticed(plain_chart: Path) -> None:
    found = []
    for text in ("env: []\n", "gpuz: 1\n"):
        found.append(check_known_chart(plain_chart, values=(("mine.yaml", text),)).findings)
    assert found[0] != found[1]


def test_what_a_rule_could_not_finish_is_not_kept(plain_chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = CheckedChart(plain_chart, (Finding("gave up", is_own_fault=True),))
    monkeypatch.setattr(action, "check_chart", lambda *_, **__: given_up)
    assert check_known_chart(plain_chart) == given_up
    monkeypatch.setattr(action, "check_chart", lambda *_, **__: replace(given_up, findings=()))
    assert not check_known_chart(plain_chart).findings


def test_what_changed_during_the_check_is_not_kept(plain_chart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    service = plain_chart / "templates" / "service.yaml"
    good = service.read_text()
    check_chart = action.check_chart

    def save_and_check(chart: Path, **options: Any) -> CheckedChart:
        service.write_text(good)
        checked = check_chart(chart, **options)
        service.write_text("BROKEN {{ .Values.nope.nope }}\n")  # as before: the bytes alone do not tell
        return checked

    service.write_text("BROKEN {{ .Values.nope.nope }}\n")
    monkeypatch.setattr(action, "check_chart", save_and_check)
    check_known_chart(plain_chart)
    monkeypatch.setattr(action, "check_chart", check_chart)
    assert any(finding.severity == "error" for finding in check_known_chart(plain_chart).findings)


def test_a_chart_that_is_not_there_is_not_asked_for_twice(tmp_path: Path, cache_folder: Path) -> None:
    with pytest.raises(action.ToolError):
        check_known_chart(tmp_path / "nowhere")
    assert not read_tree(cache_folder)


def test_a_chart_whose_name_is_not_unicode_is_named(plain_chart: Path) -> None:
    chart = plain_chart.rename(plain_chart.with_name("caf\udce9"))
    with pytest.raises(action.ToolError, match=r"caf\\udce9' is not Unicode"):
        check_known_chart(chart)
