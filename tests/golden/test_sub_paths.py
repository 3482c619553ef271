"""One claim for many releases: a sub-path may name the release, in the training pods and in TensorBoard."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides

CHART = Path(__file__).parent / "parameter-server" / "chart"


def find_sub_paths(release: str, sub_path: str) -> dict[str, str]:
    """Return the sub-path of the folder logs by the name of what makes the pods."""
    logs = {"existingClaim": "team-data", "size": "", "subPath": sub_path}
    overrides = ValueOverrides(files=(("values", json.dumps({"volumes": {"logs": logs}})),))
    found = {}
    for manifest in find_engine("sdk").render(CHART, release=release, overrides=overrides).manifests:
        if manifest.kind in ("StatefulSet", "Deployment"):
            pod: dict[str, Any] = manifest.document["spec"]["template"]["spec"]
            names = [each["name"] for each in pod["volumes"] if "team-data" in json.dumps(each)]
            (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["name"] in names]
            found[manifest.name] = mount["subPath"]
    return found


@pytest.mark.parametrize("release", ["exp-1", "exp-2"])
def test_each_release_has_a_folder_of_its_own(release: str) -> None:
    found = find_sub_paths(release, "runs/$(TRAINCHART_NAMESPACE)/$(TRAINCHART_RELEASE)")
    assert len(found) == 5 and f"{release}-parameter-server-tensorboard" in found
    assert set(found.values()) == {f"runs/default/{release}"}


@pytest.mark.parametrize(
    ("sub_path", "words"),
    [
        ("$(TRAINCHART_RUN_ID)", "volumes.logs.subPath: $(TRAINCHART_RUN_ID) is not known here"),
        ("$(RELEASE)/x", "volumes.logs.subPath: $(RELEASE) is not known here: use $(TRAINCHART_RELEASE)"),
        ("../other", "volumes.logs.subPath: ../other is not a folder inside the volume"),
        ("/abs", "volumes.logs.subPath: /abs is not a folder inside the volume"),
    ],
)
def test_what_is_no_folder_of_the_volume_is_refused(sub_path: str, words: str) -> None:
    with pytest.raises(RenderError) as refusal:
        find_sub_paths("exp", sub_path)
    assert words in str(refusal.value.problems)
