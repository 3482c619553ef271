"""The image in charts of families whose pods run one: tags that YAML reads as numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.family_charts import make_family_chart, render_family_chart
from trainchart.errors import RenderError


@pytest.fixture(scope="module", params=["notebook", "model-server", "console"])
def chart(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    return make_family_chart(request.param, tmp_path_factory.mktemp("project"))


def find_images(chart: Path, tag: object) -> set[str]:
    manifests = render_family_chart(chart, "nb", "team-a", {"image": {"repository": "ml/x", "tag": tag}}).manifests
    found: set[str] = set()
    for each in manifests:
        if each.kind == "Deployment":
            containers: list[dict[str, Any]] = each.document["spec"]["template"]["spec"]["containers"]
            found |= {container["image"] for container in containers}
    return found


@pytest.mark.parametrize(("tag", "written"), [("", "latest"), (0, "0"), (20261121, "20261121"), (2e7, "20000000")])
def test_a_tag_may_be_a_number(chart: Path, tag: object, written: str) -> None:
    assert find_images(chart, tag) == {f"ml/x:{written}"}


@pytest.mark.parametrize("tag", [-1, 2**53, 20261121123456789012])
def test_a_number_that_helm_cannot_hold_is_no_tag(chart: Path, tag: int) -> None:
    """Text can hold it."""
    with pytest.raises(RenderError):
        find_images(chart, tag)
    assert find_images(chart, str(abs(tag))) == {f"ml/x:{abs(tag)}"}
