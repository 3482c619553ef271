"""`helm upgrade`: a new chart version touches no pod, and what an API server would refuse, `trainchart check` has said.

Nothing trains here; the pods of these releases sleep.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client
from lightkube.resources.apps_v1 import ControllerRevision, Deployment, ReplicaSet, StatefulSet

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.releases import (
    IDLE,
    PROJECT,
    Release,
    container_statuses,
    copy_chart,
    digits_values,
    merge_values,
    mnist_values,
)

pytestmark = pytest.mark.cluster

CHARTS = PROJECT / "charts"
CHART_LABEL = 'helm.sh/chart: {{ printf "%s-%s" .context.Chart.Name .context.Chart.Version | quote }}'
CLAIM_TEMPLATE = """\
  volumeClaimTemplates:
    - metadata:
        name: scratch
        labels: {{ dict "helm.sh/chart" (printf "%s-%s" $.Chart.Name $.Chart.Version) | toJson }}
      spec:
        accessModes: [ReadWriteOnce]
        resources: {requests: {storage: 1Mi}}
"""


@dataclasses.dataclass(frozen=True)
class Trap:
    """An edit of a chart whose first install works and whose first upgrade cannot."""

    file: str
    old: str
    new: str
    rule: str
    """Rule of `trainchart check` that refuses it."""
    refusal: str
    """What the API server says; a pattern."""

    def spring(self, chart: Path) -> None:
        file = chart / "templates" / self.file
        text = file.read_text()
        assert text.count(self.old) == 1
        file.write_text(text.replace(self.old, self.new))


TRAPS = {
    "chart label in the selector": Trap(
        "_labels.tpl",
        '{{- define "digits.selectorLabels" -}}\n',
        f'{{{{- define "digits.selectorLabels" -}}}}\n{CHART_LABEL}\n',
        "stable-selectors",
        "updates to statefulset spec for fields other than .* are forbidden",
    ),
    "chart label in a claim template": Trap(
        "statefulset.yaml",
        "  podManagementPolicy: Parallel\n",
        f"  podManagementPolicy: Parallel\n{CLAIM_TEMPLATE}",
        "stable-selectors",
        "updates to statefulset spec for fields other than .* are forbidden",
    ),
    "immutable object with a lasting name": Trap(
        "_names.tpl",
        '"part" "hyperparameters")) $hash -}}',
        '"part" "hyperparameters")) "lasting" -}}',
        "immutable-names",
        "field is immutable when `immutable` is set",
    ),
}


def snapshot(release: Release, client: Client) -> dict[str, Any]:
    """Describe what an upgrade must leave alone: the pods, what each workload asks for, and its revisions."""
    found: dict[str, Any] = {}
    for name, pod in release.pods(client).items():
        assert pod.metadata is not None
        restarts = [status.restartCount for status in container_statuses(pod)]
        found[f"pod {name}"] = (pod.metadata.uid, restarts)
    workloads: list[StatefulSet | Deployment] = [
        *client.list(StatefulSet, namespace=release.namespace, labels=dict(release.selector)),
        *client.list(Deployment, namespace=release.namespace, labels=dict(release.selector)),
    ]
    for item in workloads:
        assert item.metadata is not None
        found[f"{type(item).__name__} {item.metadata.name}"] = item.metadata.generation
    for revision in client.list(ControllerRevision, namespace=release.namespace, labels=dict(release.selector)):
        assert revision.metadata is not None
        found[f"ControllerRevision {revision.metadata.name}"] = revision.revision
    for replica_set in client.list(ReplicaSet, namespace=release.namespace, labels=dict(release.selector)):
        assert replica_set.metadata is not None
        found[f"ReplicaSet {replica_set.metadata.name}"] = replica_set.metadata.uid
    return found


def read_chart_labels(release: Release, client: Client) -> set[str]:
    """Return what the StatefulSets say about their chart, once their controller has looked at each of them again."""
    labels = set()
    for item in client.list(StatefulSet, namespace=release.namespace, labels=dict(release.selector)):
        assert item.metadata is not None
        if not item.status or item.status.observedGeneration != item.metadata.generation:
            return set()
        labels.add((item.metadata.labels or {})["helm.sh/chart"])
    return labels


@pytest.mark.parametrize("installer", ["helm3", "helm4"])
def test_a_new_chart_version_touches_no_pod(
    admin: Access, namespace: str, request: pytest.FixtureRequest, tmp_path: Path, installer: str
) -> None:
    """Upgraded by the helm that installed it, then by the other one, as happens when a team moves to helm 4."""
    other = {"helm3": "helm4", "helm4": "helm3"}[installer]
    values = merge_values(mnist_values(), {**IDLE, "tensorboard": {"enabled": True}})
    release = Release(admin, namespace, "exp1", CHARTS / "mnist", values, helm=request.getfixturevalue(installer))
    release.install()
    release.wait_until_running(6)
    before = snapshot(release, admin.client())
    assert len(before) == 6 + 5 + 4 + 1

    for version, helm in (("0.1.1", installer), ("0.2.0", other)):
        chart = copy_chart(CHARTS / "mnist", tmp_path, version)
        dataclasses.replace(release, chart=chart, helm=request.getfixturevalue(helm)).upgrade()

        def has_arrived(client: Client, label: str = f"mnist-{version}") -> bool:
            return read_chart_labels(release, client) == {label}

        admin.wait_for(has_arrived, f"version {version} seen by the controller", namespace=namespace)
        assert snapshot(release, admin.client()) == before


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """Name of a trap → the chart with it, and the chart's next version."""
    charts = {}
    for name, trap in TRAPS.items():
        folder = tmp_path_factory.mktemp("trap")
        first, second = (copy_chart(CHARTS / "digits", folder, version) for version in ("0.1.0", "0.1.1"))
        for chart in (first, second):
            trap.spring(chart)
        charts[name] = (first, second)
    return charts


@pytest.fixture(scope="module")
def refusals(admin: Access, trapped: Mapping[str, tuple[Path, Path]]) -> dict[str, set[str]]:
    """Name of a trap → rules by which `trainchart check` refuses its chart; the empty name for the chart without."""
    charts = {"": CHARTS / "digits", **{name: second for name, (_, second) in trapped.items()}}
    argv: list[str | Path] = [sys.executable, "-m", "trainchart", "check", *charts.values(), "--format=json"]
    answers = json.loads(admin.run(argv, check=False).stdout)
    return {
        name: {found["rule"] for found in answer["findings"] if found["severity"] == "error"}
        for name, answer in zip(charts, answers, strict=True)
    }


@pytest.mark.parametrize("name", TRAPS)
def test_check_refuses_what_the_api_server_refuses_at_an_upgrade(
    admin: Access,
    namespace: str,
    trapped: Mapping[str, tuple[Path, Path]],
    refusals: Mapping[str, set[str]],
    name: str,
) -> None:
    first, second = trapped[name]
    release = Release(admin, namespace, "trap", first, merge_values(digits_values(), IDLE))

    assert TRAPS[name].rule in refusals[name]

    release.install()
    upgraded = dataclasses.replace(
        release, chart=second, values=merge_values(release.values, {"hyperparameters": {"epochs": 99}})
    )
    with pytest.raises(CommandFailed, match=TRAPS[name].refusal):
        upgraded.upgrade()


def test_the_chart_without_traps_is_upgraded(
    admin: Access, namespace: str, tmp_path: Path, refusals: Mapping[str, set[str]]
) -> None:
    """The same steps as above, so that nothing but the trap is what was refused there."""
    chart = copy_chart(CHARTS / "digits", tmp_path, "0.1.1")
    release = Release(admin, namespace, "trap", CHARTS / "digits", merge_values(digits_values(), IDLE))
    assert not refusals[""]
    release.install()

    changed = merge_values(release.values, {"hyperparameters": {"epochs": 99}})

    assert "REVISION: 2" in dataclasses.replace(release, chart=chart, values=changed).upgrade()
