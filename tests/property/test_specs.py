"""Random specs: a chart that renders to what Kubernetes accepts, or a refusal with places; never a traceback."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.kubernetes_objects import find_faults
from tests.property.model_specs import damaged_specs, well_typed_specs
from trainchart.actions.support.models import build_values_schema, resolve_spec
from trainchart.errors import PlanError, RenderError, SpecError
from trainchart.helm.io.choose import find_engine
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.plan.chart_plan import ChartPlan
from trainchart.render.chart import FAMILY, RenderedChart, render_chart
from trainchart.resources import read_family
from trainchart.spec.document import parse_document

FILE = "models/random.yaml"
PLACE = re.compile(rf"{FILE}(:\d+(:\d+)?)?")


def plan_of(text: str) -> ChartPlan:
    return resolve_spec(parse_document(text, file=FILE, layer="model spec"))


def chart_of(plan: ChartPlan) -> RenderedChart:
    return render_chart(plan, read_family(FAMILY), build_values_schema(plan))


def require_valid_or_refused(text: str, tally: Counter[str], what: str) -> None:
    try:
        chart = chart_of(plan_of(text))
    except (SpecError, PlanError) as refusal:
        assert refusal.problems, refusal.message
        for problem in refusal.problems:
            assert PLACE.fullmatch(problem.where), problem
        tally[f"{what}: refused with places ({type(refusal).__name__})"] += 1
        return
    with tempfile.TemporaryDirectory() as folder:
        for path, content in chart.files.items():
            Path(folder, path).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, path).write_bytes(content)
        try:
            rendering = find_engine("sdk").render(Path(folder), release="exp-7")
        except RenderError as error:
            pytest.fail(f"{error.message}: {'; '.join(str(problem) for problem in error.problems)}")
    assert find_faults(rendering) == []
    tally[f"{what}: chart and objects valid"] += 1


@pytest.mark.parametrize("share", range(3))
@given(spec=well_typed_specs())
def test_a_well_typed_spec(spec: dict[str, Any], share: int, tally: Counter[str]) -> None:
    require_valid_or_refused(dump_mapping(spec), tally, "well-typed specs")


@pytest.mark.parametrize("share", range(2))
@given(spec=damaged_specs())
def test_a_spec_with_something_wrong(spec: dict[str, Any], share: int, tally: Counter[str]) -> None:
    require_valid_or_refused(dump_mapping(spec), tally, "damaged specs")


@pytest.mark.parametrize("name", ["n", "on", "true", "null"])
def test_a_name_that_yaml_takes_for_something_else(name: str, tally: Counter[str]) -> None:
    spec = {
        "apiVersion": "trainchart/v1",
        "kind": "Model",
        "name": name,
        "description": "Digits.",
        "image": {"repository": "registry.example.com/ml/digits", "tag": "1.4.0"},
        "code": {"path": ".", "command": ["python", "train.py"]},
        "strategy": "single",
        "volumes": {"checkpoints": {"size": "1Gi", "mountPath": "/checkpoints"}},
        "tensorboard": True,
    }
    require_valid_or_refused(dump_mapping(spec), tally, "names that are YAML words")
    assert chart_of(plan_of(dump_mapping(spec))).name == name


@given(text=st.text(st.characters(exclude_categories=("Cs",))) | st.text("{}[]:,-# \n\"'&*!|>ab1", max_size=60))
def test_any_text(text: str, tally: Counter[str]) -> None:
    require_valid_or_refused(text, tally, "any text")


@given(spec=well_typed_specs(), data=st.data())
def test_the_same_spec_in_another_form_gives_the_same_bytes(
    spec: dict[str, Any], data: st.DataObject, tally: Counter[str]
) -> None:
    try:
        chart = chart_of(plan_of(dump_mapping(spec)))
    except (SpecError, PlanError):
        return
    assert chart_of(plan_of(dump_mapping(spec))).files == chart.files
    shuffled = {key: spec[key] for key in data.draw(st.permutations(list(spec)))}
    commented = "# Random.\n" + dump_mapping(shuffled).replace("\nkind:", "\n\n  # What it is.\nkind:", 1)
    assert chart_of(plan_of(commented)).files == chart.files
    tally["specs in two forms: the same bytes"] += 1
