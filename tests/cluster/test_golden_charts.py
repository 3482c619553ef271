"""A real API server accepts whatever the charts can render, and warns of nothing, where Pod Security is restricted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import PROJECT
from tests.support.golden_charts import list_charts

pytestmark = pytest.mark.cluster

CHARTS = [*list_charts(), *sorted(PROJECT.glob("charts/*/"))]


@pytest.fixture(scope="module")
def objects(admin: Access, module_namespace: str) -> Iterator[list[dict[str, Any]]]:
    """Every object of every chart, with its defaults and with every switch turned on, but the ServiceAccounts.

    Those are there already, as the priority class is: not even a trial takes a pod whose account or class is missing.
    """
    cases = []
    for chart in CHARTS:
        name = chart.parent.name if chart.name == "chart" else f"{chart.name}-example"
        values = [chart / "values.yaml", *sorted(chart.glob("ci/*"))]
        cases += [(f"{name}-{number}", chart, file) for number, file in enumerate(values)]
    with ThreadPoolExecutor(4) as pool:
        charts = pool.map(lambda case: render(admin, module_namespace, *case), cases)
        rendered = [item for objects in charts for item in objects]
    trainer = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "trainer"}}
    # What ci/every-switch-values.yaml names; it has no namespace, so that an earlier run may have left it.
    metadata = {"name": "batch", "labels": {"app.kubernetes.io/managed-by": "trainchart-tests"}}
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 1}
    admin.kubectl("apply", "-f", "-", text=dump_objects(priority))
    accounts = [item for item in rendered if item["kind"] == "ServiceAccount"]
    admin.kubectl("create", f"--namespace={module_namespace}", "-f", "-", text=dump_objects(trainer, *accounts))
    yield [item for item in rendered if item not in accounts]
    admin.kubectl("delete", "priorityclass", "batch")


def render(admin: Access, namespace: str, release: str, chart: Path, values: Path) -> list[dict[str, Any]]:
    argv: list[str | Path] = ["helm", "template", release, chart, f"--namespace={namespace}", f"--values={values}"]
    return [document for document in yaml.safe_load_all(admin.run(argv).stdout) if document]


@pytest.mark.parametrize("side", ["client", "server"])
def test_every_chart_is_accepted_without_a_warning(
    admin: Access, module_namespace: str, objects: list[dict[str, Any]], side: str
) -> None:
    """Applied as `kubectl apply` does by default, and server-side as Helm 4 and Argo CD do."""
    assert {"Deployment", "Ingress", "NetworkPolicy", "PodDisruptionBudget"} <= {item["kind"] for item in objects}
    options = ["--dry-run=server", f"--namespace={module_namespace}", f"--server-side={json.dumps(side == 'server')}"]
    context = [f"--context={admin.context}"] if admin.context else []

    done = admin.run(["kubectl", *context, "apply", *options, "-f", "-"], text=dump_objects(*objects), check=False)

    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == len(objects)
