"""Ephemeral volumes: what follows from that one word, and that the node's disk has room for them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainchart.errors import PlanError
from trainchart.plan.chart_plan import ChartPlan

Resolve = Callable[..., ChartPlan]
SCRATCH = "  scratch: {ephemeral: true, size: 20Gi, mountPath: /scratch}\n"


def test_each_pod_uses_an_ephemeral_volume_alone(resolved: Resolve, spec: str) -> None:
    pack = 'volumes: {"*": {accessMode: ReadWriteMany}}'
    for text in (spec + SCRATCH, (spec + SCRATCH).replace("strategy: parameter-server", "strategy: single")):
        volumes = resolved(text, pack).values.volumes
        assert volumes["scratch"].access_mode == "ReadWriteOnce"
        assert not volumes["scratch"].keep
        assert volumes["checkpoints"].access_mode == "ReadWriteMany"


def test_limit_of_the_disk_has_room_for_ephemeral_volumes(resolved: Resolve, spec: str) -> None:
    limited = (spec + SCRATCH).replace("memory: 8Gi", "memory: 8Gi, ephemeralStorageLimit: 20Gi")
    with pytest.raises(PlanError) as refusal:
        resolved(limited)
    (problem,) = refusal.value.problems
    assert str(problem).startswith("m.yaml:10:")
    assert "20Gi of the node's disk leaves no room for 1Gi and the ephemeral scratch" in problem.message
    resolved(limited.replace("ephemeralStorageLimit: 20Gi", "ephemeralStorageLimit: 21Gi"))
    resolved(limited.replace("ephemeral: true", "ephemeral: true, storageClass: fast"))
    resolved(limited.replace("ephemeral: true", "ephemeral: true, roles: [ps]"))
    with pytest.raises(PlanError):
        resolved(limited.replace("ephemeral: true", 'ephemeral: true, storageClass: "-"'))


@pytest.mark.parametrize(
    ("mode", "selectors", "says"),
    [
        ("ReadWriteOnce", "nodeSelector: {kubernetes.io/hostname: node1}", ""),
        ("ReadWriteOnce", "nodeSelector: {pool: gpu}", "serves one node only"),
        ("ReadWriteOncePod", "nodeSelector: {kubernetes.io/hostname: node1}", "serves one pod only"),
    ],
)
def test_pods_of_one_node_share_a_claim_of_one_node(
    resolved: Resolve, spec: str, mode: str, selectors: str, says: str
) -> None:
    text = spec.replace("size: 20Gi", f"size: 20Gi, accessMode: {mode}") + selectors
    if not says:
        resolved(text)
        with pytest.raises(PlanError):  # The role's own selector replaces the chart's.
            resolved(text.replace("memory: 8Gi", "memory: 8Gi, nodeSelector: {kubernetes.io/hostname: node2}"))
        return
    with pytest.raises(PlanError) as refusal:
        resolved(text)
    assert says in refusal.value.problems[0].message
