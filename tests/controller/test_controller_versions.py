"""The controller runs on every Python that an image may have, from 3.8 on, and needs no installed package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.controller.fake_api import make_pod
from trainchart_runtime import causes

SOURCES = Path(__file__).parents[2] / "training-images"
INTERPRETERS = [
    sys.executable,
    *sorted(
        str(path)
        for version in ("3.8", "3.13")
        for path in Path.home().glob(f".pyenv/versions/{version}*/bin/python")
        if (path.parent / "python3").exists()
    ),
]


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.split("/")[-3])
def test_a_whole_run(api, start, run_to_phase, python):
    controller = start(python=python, flags=("-I", "-S"), patient=True)
    run_to_phase("Running")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    assert api.state()["phase"] == "Succeeded" and "Warning" not in controller.log


def test_nothing_newer_than_python_3_8_is_used():
    vermin = [Path(sys.executable).with_name("vermin"), "--target=3.8-", "--violations", "--no-tips"]
    package = SOURCES / "controller" / "trainchart_controller"
    result = subprocess.run([*vermin, "--backport", "typing", str(package)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
