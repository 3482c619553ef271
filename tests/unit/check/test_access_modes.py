"""Claims of one node that several pods mount: found, unless all these pods are bound to that node."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.check.finding import Case, CheckInput
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering


def find(mode: str, *nodes: str) -> list[str]:
    """Return what is found about a claim that pods with these nodes in their selectors mount."""
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}}
    documents: list[dict[str, Any]] = [{**claim, "spec": {"accessModes": [mode]}}]
    for number, node in enumerate(nodes):
        spec: dict[str, Any] = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}
        spec |= {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
        head = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": f"s{number}"}}
        documents.append({**head, "spec": {"replicas": 2, "template": {"spec": spec}}})
    manifests = tuple(Manifest("a.yaml", document) for document in documents)
    given = CheckInput(files={}, cases=(Case("", Rendering("r", "default", manifests, {})),))
    return [finding.message for finding in run_checks(given, find_rules(("access-modes",))).findings]


@pytest.mark.parametrize(
    ("mode", "nodes", "is_found"),
    [
        ("ReadWriteOnce", ("node1", "node1"), False),
        ("ReadWriteOnce", ("node1", "node2"), True),
        ("ReadWriteOnce", ("node1", ""), True),
        ("ReadWriteOnce", ("",), True),
        ("ReadWriteOncePod", ("node1",), True),
        ("ReadWriteMany", ("node1", "node2"), False),
    ],
)
def test_pods_of_one_node_share_its_claim(mode: str, nodes: tuple[str, ...], *, is_found: bool) -> None:
    assert bool(find(mode, *nodes)) is is_found
