"""A claim of one node or pod, asked for at install by pods elsewhere, is refused before anything is created."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides

CHART = Path(__file__).parent / "parameter-server" / "chart"
HERE = {"kubernetes.io/hostname": "node1"}


def render(mode: str, node: dict[str, str], **worker: Any) -> list[str]:
    values = {"volumes": {"checkpoints": {"accessMode": mode}}, "nodeSelector": node, "roles": {"worker": worker}}
    overrides = ValueOverrides(files=(("values", json.dumps(values)),))
    manifests = find_engine("sdk").render(CHART, release="exp", overrides=overrides).manifests
    claim = next(each.document for each in manifests if each.name == "exp-parameter-server-checkpoints")
    return list(claim["spec"]["accessModes"])


def test_pods_of_one_node_may_share_its_claim() -> None:
    assert render("ReadWriteOnce", HERE, nodeSelector=HERE) == ["ReadWriteOnce"]


@pytest.mark.parametrize(
    ("mode", "node", "worker", "words"),
    [
        ("ReadWriteOnce", {}, HERE, "a ReadWriteOnce claim serves one node only; use ReadWriteMany"),
        ("ReadWriteOnce", HERE, {"kubernetes.io/hostname": "node2"}, "serves one node only"),
        ("ReadWriteOnce", {"pool": "gpu"}, {"pool": "gpu"}, "serves one node only"),
        ("ReadWriteOncePod", HERE, HERE, "a ReadWriteOncePod claim serves one pod only"),
        ("ReadOnlyMany", HERE, HERE, "volumes.checkpoints.accessMode: ReadOnlyMany needs readOnly: true"),
    ],
)
def test_pods_elsewhere_may_not(mode: str, node: dict[str, str], worker: dict[str, str], words: str) -> None:
    with pytest.raises(RenderError) as refusal:
        render(mode, node, nodeSelector=worker)
    assert words in str(refusal.value.problems)
