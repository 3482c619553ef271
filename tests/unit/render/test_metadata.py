"""Chart.yaml as Artifact Hub reads it."""

from __future__ import annotations

from pathlib import Path

import yaml

from trainchart.actions.support.models import load_model
from trainchart.render.metadata import render_chart_yaml

SPEC = Path(__file__).parents[2] / "golden" / "single" / "spec.yaml"


def test_every_image_that_a_chart_can_run_is_listed(tmp_path: Path) -> None:
    spec = yaml.safe_load(SPEC.read_text())
    spec["image"] = {"repository": "registry.example.com/ml/single", "tag": "1.4.0", "digest": f"sha256:{'ab' * 32}"}
    spec["run"] = {"controller": {"image": "registry.example.com/ml/runtime:1.0.0"}}
    spec["tensorboard"] = {"image": "registry.example.com/ml/tensorboard:2.21.0"}
    (tmp_path / "single.yaml").write_text(yaml.safe_dump(spec))
    chart = yaml.safe_load(render_chart_yaml(load_model(tmp_path / "single.yaml").plan))
    assert yaml.safe_load(chart["annotations"]["artifacthub.io/images"]) == [
        {"name": "single", "image": f"registry.example.com/ml/single@sha256:{'ab' * 32}"},
        {"name": "run-controller", "image": "registry.example.com/ml/runtime:1.0.0"},
        {"name": "tensorboard", "image": "registry.example.com/ml/tensorboard:2.21.0"},
    ]
