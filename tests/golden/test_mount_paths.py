"""Folders where a volume would hide the image, the system or another volume: charts refuse what specs refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainchart.errors import RenderError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides
from trainchart.plan.volumes import RESERVED_FOLDERS

CHART = Path(__file__).parent / "parameter-server" / "chart"


def render(**folders: str) -> None:
    volumes = {name: {"mountPath": folder} for name, folder in folders.items()}
    overrides = ValueOverrides(files=(("values", json.dumps({"volumes": volumes})),))
    find_engine("sdk").render(CHART, release="exp", overrides=overrides)


@pytest.mark.parametrize(
    ("folder", "shown"),
    [
        *((folder, folder) for folder in RESERVED_FOLDERS),
        ("/", "/"),
        ("//", "/"),
        ("/tmp/", "/tmp"),
        ("/data/../tmp", "/tmp"),
        ("/dev/shm", "/dev/shm"),
        ("/run/trainchart-resume", "/run/trainchart-resume"),
    ],
)
def test_what_the_image_needs_is_refused(folder: str, shown: str) -> None:
    with pytest.raises(RenderError) as refusal:
        render(checkpoints=folder)
    expected = (
        f"volumes.checkpoints.mountPath: {shown} is used by the image or the system; use for example /checkpoints"
    )
    assert expected in str(refusal.value.problems)


@pytest.mark.parametrize("folder", ["/tmpfs", "/data/tmp", "/srv/run", "/checkpoints"])
def test_other_folders_are_mounted(folder: str) -> None:
    render(checkpoints=folder)


def test_two_volumes_in_one_folder_are_refused() -> None:
    with pytest.raises(RenderError) as refusal:
        render(checkpoints="/checkpoints", data="/checkpoints/")
    assert "volumes.data.mountPath: checkpoints and data are both mounted at /checkpoints" in str(
        refusal.value.problems
    )
