"""Chart.yaml, built as data. Artifact Hub reads the annotations."""

from __future__ import annotations

import json
from typing import Any

from trainchart.kubernetes_yaml import dump_mapping
from trainchart.plan.chart_plan import ChartPlan
from trainchart_runtime.contract import STRATEGY_ANNOTATION

KUBE_VERSION = ">=1.33.0-0"


def render_chart_yaml(plan: ChartPlan) -> str:
    """Return Chart.yaml; keys without a value are left out."""
    spec = plan.spec
    tag = str(spec.image.tag)
    image = f"{spec.image.repository}@{spec.image.digest}" if spec.image.digest else f"{spec.image.repository}:{tag}"
    images = [
        (spec.name, image),
        ("run-controller", spec.run.controller.image),
        ("tensorboard", spec.tensorboard.image),
    ]
    annotations: dict[str, str] = {
        "artifacthub.io/category": "ai-machine-learning",
        "artifacthub.io/images": "".join(f"- name: {name}\n  image: {each}\n" for name, each in images if each),
        **({"artifacthub.io/license": spec.license} if spec.license else {}),
        STRATEGY_ANNOTATION: spec.strategy,
        "trainchart/framework": f"tensorflow {spec.framework.tensorflow} ({spec.framework.flavour})",
        **{key: value if isinstance(value, str) else json.dumps(value) for key, value in spec.annotations.items()},
    }
    fields: dict[str, Any] = {
        "apiVersion": "v2",
        "name": spec.name,
        "version": spec.version,
        "appVersion": tag,
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
