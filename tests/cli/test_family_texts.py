"""Texts in charts of families: none disappears on the way through Helm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.family_charts import FAMILIES, make_family_chart, render_family_chart
from trainchart.errors import RenderError

LOST = "a<no value>b"
VOLUME = {"driver": "nfs.csi.k8s.io", "volumeAttributes": {"server": "s", "share": "/s"}, "size": "1Gi"}
GIVEN: dict[str, tuple[str, dict[str, Any]]] = {
    "console": ("nodeSelector.a", {"nodeSelector": {"a": LOST}}),
    "model-server": ("ingress.annotations.a", {"ingress": {"annotations": {"a": LOST}}}),
    "monitoring": ("labels.a", {"labels": {"a": LOST}}),
    "notebook": ("nodeSelector.a", {"nodeSelector": {"a": LOST}}),
    "static-volumes": ("volumes.v.mountOptions[1]", {"volumes": {"v": {**VOLUME, "mountOptions": ["ro", LOST]}}}),
    "tenant": ("namespaceLabels.a", {"namespaceLabels": {"a": LOST}}),
}
"""By family: a text that its schema accepts, and how the chart names its place."""


def test_every_family_is_tried() -> None:
    families = {path.name for path in FAMILIES.iterdir()} - {"training-job"}
    assert families == set(GIVEN), "training charts: tests/golden/test_values_through_helm.py"


@pytest.mark.parametrize("family", GIVEN)
def test_a_text_that_helm_would_remove_is_refused(family: str, tmp_path: Path) -> None:
    place, values = GIVEN[family]
    chart = make_family_chart(family, tmp_path)
    with pytest.raises(RenderError) as refusal:
        render_family_chart(chart, "exp", "team-a", values)
    found = " ".join(map(str, refusal.value.problems))
    assert f'{place}: "{LOST}" contains <no value>, which Helm removes from every text' in found
