"""Faults put into the chart templates, one at a time: check finds each, by the rule that the table names."""

from __future__ import annotations

import functools
import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

from trainchart.actions.check import check_chart, choose_rules
from trainchart.actions.support.models import build_values_schema, load_model
from trainchart.check.finding import Severity
from trainchart.plan.chart_plan import ChartPlan
from trainchart.render.chart import FAMILY, render_chart
from trainchart.resources import read_family

SPEC = Path(__file__).parent.parent / "golden" / "parameter-server" / "spec.yaml"


def _load_table() -> ModuleType:
    # Test modules are imported by path (importmode=importlib), so siblings are not importable by name.
    spec = importlib.util.spec_from_file_location("seeded_faults_table", Path(__file__).with_name("faults.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FAULTS = _load_table().FAULTS


@functools.cache
def plan() -> ChartPlan:
    return load_model(SPEC).plan


def write_chart(folder: Path, family: Mapping[str, str]) -> Path:
    for path, content in render_chart(plan(), family, build_values_schema(plan())).files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def test_the_templates_without_fault_have_no_finding(tmp_path: Path) -> None:
    found = check_chart(write_chart(tmp_path / "chart", read_family(FAMILY))).findings
    assert [finding for finding in found if finding.severity is not Severity.info] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_seeded_fault_is_found_by_its_rule(fault: tuple[str, ...], tmp_path: Path) -> None:
    _, file, old, new, rule = fault
    family = read_family(FAMILY)
    path = f"templates/{file}"
    assert old in family[path], "the template changed: change the table too"
    chart = write_chart(tmp_path / "chart", {**family, path: family[path].replace(old, new)})
    found = check_chart(chart, rules=choose_rules((rule,))).findings
    shutil.rmtree(chart)
    assert {finding.rule for finding in found if finding.severity is not Severity.info} == {rule}
    assert all(finding.path for finding in found)


def test_there_are_enough_faults_and_each_has_a_name() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 20
