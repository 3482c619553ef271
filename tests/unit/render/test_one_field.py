"""One field, one place: what is added to PodSettings reaches templates, values, schema and README."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field

from trainchart.actions.support.models import build_values_schema, load_model
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides
from trainchart.render import chart as chart_module
from trainchart.render import schema as schema_module
from trainchart.render import value_tree, values_yaml
from trainchart.render.chart import FAMILY, list_pod_fields, render_chart
from trainchart.resources import read_family
from trainchart.spec import settings
from trainchart.spec.section import PassThrough, list_of
from trainchart.spec.settings import POD_SETTINGS, PodSettings
from trainchart.spec.values import Values

SPEC = Path(__file__).parents[2] / "golden" / "single" / "spec.yaml"


def test_a_new_pass_through_field_appears_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Extended(PodSettings):
        readiness_gates: Annotated[list[object], PassThrough(list_of("PodReadinessGate"), "readinessGates", "pod")] = (
            Field(default_factory=list)
        )
        """Conditions that must hold before a pod counts as ready."""

    class ExtendedValues(Values, Extended):
        pass

    plan = load_model(SPEC).plan
    values = ExtendedValues.model_construct(**dict(plan.values), readiness_gates=[])
    monkeypatch.setattr(chart_module, "PodSettings", Extended)
    monkeypatch.setattr(schema_module, "Values", ExtendedValues)
    monkeypatch.setattr(values_yaml, "POD_SETTINGS", POD_SETTINGS | {"readinessGates"})
    extended = replace(plan, values=values)
    files = render_chart(extended, read_family(FAMILY), build_values_schema(extended)).files
    assert b"readinessGates: []  # Conditions that must hold" in files["values.yaml"]
    assert "io.k8s.api.core.v1.PodReadinessGate" in json.loads(files["values.schema.json"])["$defs"]
    assert b"| `readinessGates` |" in files["README.md"]
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    overrides = ValueOverrides(set_jsons=('readinessGates=[{"conditionType":"ready.example.com/gpu"}]',))
    rendering = find_engine("sdk").render(tmp_path, release="exp", overrides=overrides)
    (pod,) = [m.document["spec"]["template"]["spec"] for m in rendering.manifests if m.kind == "StatefulSet"]
    assert pod["readinessGates"] == [{"conditionType": "ready.example.com/gpu"}]


def test_pass_through_fields_are_emitted_from_the_model_alone() -> None:
    """No template names a pass-through field: they come from the loop over the model."""
    text = "\n".join(read_family(FAMILY)[f"templates/{name}"] for name in ("_pod_template.tpl", "_pod.tpl"))
    # The DNS policy of the pods follows from hostNetwork, what they take of a disk from their volumes, and whether they
    # share a node from nodeSelector.
    special = {"topologySpreadConstraints", "hostNetwork", "volumes", "nodeSelector"}
    for place in ("pod", "container", "append"):
        for field in list_pod_fields(place):
            assert field.key in special or f".settings.{field.value}" not in text, field.value
    assert value_tree.walk_leaves
    assert settings.RoleSettings.model_fields.keys() > PodSettings.model_fields.keys()
