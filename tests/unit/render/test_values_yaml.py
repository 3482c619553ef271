"""values.yaml says what the plan says, whatever stands in its comments."""

from __future__ import annotations

import helm_python
import pytest

from trainchart.actions.support.models import resolve_spec
from trainchart.kubernetes_yaml import parse_mapping
from trainchart.render.value_tree import build_value_tree
from trainchart.render.values_yaml import render_values_yaml
from trainchart.spec.document import parse_document

SPEC = """
apiVersion: trainchart/v1
kind: Model
name: m
version: 0.1.0
description: d
strategy: single
image: {repository: registry.example.com/m, tag: "1"}
code: {path: code, command: [python, train.py]}
env: {A: "x%(escape)sy"}
hyperparameters:
  rate: {type: number, default: 0.1, description: "first%(escape)sroles: {}"}
"""


@pytest.mark.parametrize("escape", [r"\n", r"\r"])
def test_no_line_break_ends_a_comment_or_gets_lost(escape: str) -> None:
    plan = resolve_spec(parse_document(SPEC.replace("%(escape)s", escape), file="m.yaml", layer="model spec"))
    values = render_values_yaml(plan.name, build_value_tree(plan))
    assert parse_mapping(values) == helm_python.values_from_yaml(values)
    assert parse_mapping(values)["env"] == plan.values.env
    assert parse_mapping(values)["roles"]


@pytest.mark.parametrize("name", ["y", "no", "on", "null", "true"])
def test_names_that_yaml_takes_for_other_values_stay_names(name: str) -> None:
    text = f"{SPEC}volumes: {{'{name}': {{size: 1Gi, mountPath: /q}}}}\n"
    plan = resolve_spec(parse_document(text, file="m.yaml", layer="model spec"))
    values = render_values_yaml(plan.name, build_value_tree(plan))
    assert name in helm_python.values_from_yaml(values)["volumes"]
