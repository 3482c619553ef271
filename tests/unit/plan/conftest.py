"""A realistic spec and a short way to resolve variations of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.plan.resolve import resolve
from trainchart.resources import read_builtin_defaults
from trainchart.spec.document import parse_document

SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: mnist
description: Handwritten digits.
image: {repository: registry.example.com/ml/mnist, tag: "1.4.0"}
code: {path: examples/mnist, command: [python, -m, mnist.train]}
strategy: parameter-server
roles:
  chief: {cpu: 1, memory: 2Gi}
  worker: {replicas: 2, cpu: 4, memory: 8Gi}
  ps: {cpu: 2, memory: 4Gi}
volumes:
  checkpoints: {size: 20Gi, mountPath: /checkpoints}
"""


@pytest.fixture
def spec() -> str:
    return SPEC


@pytest.fixture
def resolved() -> Callable[..., ChartPlan]:
    name, defaults = read_builtin_defaults()
    builtin = parse_document(defaults, file=name, layer=BUILTIN_LAYER)

    def run(text: str = SPEC, *packs: str) -> ChartPlan:
        layers = [parse_document(pack, file=f"pack-{n}.yaml", layer=f"pack {n}") for n, pack in enumerate(packs)]
        return resolve(parse_document(text, file="m.yaml", layer="model spec"), [builtin, *layers])

    return run
