"""Numbers that a template printed as 2e+06 are told once; those that somebody wrote so are left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainchart.check.finding import Case, CheckInput, Probe
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import parse_documents

CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {rules: 'expr: rate(x[5m]) > 1e+06'}}"


def render(text: str) -> Rendering:
    manifests = tuple(Manifest("templates/a.yaml", document) for document in parse_documents(text))
    return Rendering("exp", "default", manifests, {"templates/a.yaml": text})


def find(given: CheckInput) -> list[str]:
    return [finding.message for finding in run_checks(given, find_rules(("numbers-plain",))).findings]


def chart(rendered: str, *, probed: str = "", **files: str) -> CheckInput:
    named = {name.replace("__", "/") + ".yaml": text.encode() for name, text in files.items()}
    probes = {Probe.large_numbers: render(probed)} if probed else {}
    return CheckInput({"Chart.yaml": b"name: a\n", **named}, (Case("", render(rendered)),), probes=probes)


def test_a_text_in_a_plain_manifest_is_its_authors() -> None:
    assert find(CheckInput({"a.yaml": CONFIG.encode()}, (Case("", render(CONFIG)),))) == []


def test_an_unquoted_number_in_a_plain_manifest_is_told() -> None:
    text = "{apiVersion: v1, kind: Secret, metadata: {name: a}, spec: {port: 2e+06}}"
    assert find(CheckInput({"a.yaml": text.encode()}, (Case("", render(text)),))) == ["Secret a: spec.port is 2e+06"]


@pytest.mark.parametrize("place", ["templates__a", "values", "ci__a-values", "dashboards__a"])
def test_a_number_that_stands_so_in_a_file_of_the_chart_is_meant(place: str) -> None:
    assert find(chart(CONFIG, probed=CONFIG, **{place: CONFIG})) == []
    assert find(chart(CONFIG, **{place: CONFIG.replace("1e+06", "{{ .Values.most }}")})) == [
        "ConfigMap a: data.rules is 1e+06"
    ]


def test_a_field_is_told_once() -> None:
    given = chart(CONFIG, probed=CONFIG.replace("1e+06", "3e+06"))
    assert find(given) == ["ConfigMap a: data.rules is 1e+06"]


def test_number_written_so_in_a_users_values_file_is_accepted() -> None:
    assert find(replace(chart(CONFIG), added_values={"v.yaml": "most: 'x > 1e+06'\n"})) == []
    assert find(replace(chart(CONFIG), added_values={"v.yaml": "most: 1000000\n"})) != []
