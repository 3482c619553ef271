"""Chart.yaml, built as data. Artifact Hub reads the annotations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainchart.kubernetes_yaml import dump_mapping
from trainchart.plan.chart_plan import ChartPlan
from trainchart.spec.chart import ChartSpec
from trainchart.spec.model import ModelSpec
from trainchart_runtime.contract import FAMILY_ANNOTATION, STRATEGY_ANNOTATION

KUBE_VERSION = ">=1.33.0-0"


def render_chart_yaml(plan: ChartPlan) -> str:
    """Return Chart.yaml of a model; keys without a value are left out."""
    spec = plan.spec
    tag = str(spec.image.tag)
    image = f"{spec.image.repository}@{spec.image.digest}" if spec.image.digest else f"{spec.image.repository}:{tag}"
    images = [
        (spec.name, image),
        ("run-controller", spec.run.controller.image),
        ("tensorboard", spec.tensorboard.image),
    ]
    listed = "".join(f"- name: {name}\n  image: {each}\n" for name, each in images if each)
    annotations = {
        STRATEGY_ANNOTATION: spec.strategy,
        "trainchart/framework": f"tensorflow {spec.framework.tensorflow} ({spec.framework.flavour})",
    }
    return _dump(spec, annotations, images=listed, app_version=tag)


def render_family_chart_yaml(spec: ChartSpec) -> str:
    """Return Chart.yaml of a chart of a family; keys without a value are left out."""
    return _dump(spec, {FAMILY_ANNOTATION: spec.family})


def _dump(spec: ModelSpec | ChartSpec, own: Mapping[str, str], *, images: str = "", app_version: str = "") -> str:
    annotations: dict[str, str] = {
        "artifacthub.io/category": "ai-machine-learning",
        **({"artifacthub.io/images": images} if images else {}),
        **({"artifacthub.io/license": spec.license} if spec.license else {}),
        **own,
        **{key: value if isinstance(value, str) else json.dumps(value) for key, value in spec.annotations.items()},
    }
    fields: dict[str, Any] = {
        "apiVersion": "v2",
        "name": spec.name,
        "version": spec.version,
        "appVersion": app_version,
        "description": spec.description,
        "type": "application",
        "kubeVersion": KUBE_VERSION,
        "home": spec.home,
        "icon": spec.icon,
        "sources": spec.sources,
        "keywords": spec.keywords,
        "maintainers": [maintainer.model_dump(exclude_defaults=True) for maintainer in spec.maintainers],
        "annotations": annotations,
    }
    return dump_mapping({key: value for key, value in fields.items() if value})
