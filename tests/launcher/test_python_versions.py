"""The launcher runs on every Python that an image may have, from 3.8 on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "training-images"
FOUND = [str(path) for path in Path.home().glob(".pyenv/versions/*/bin/python") if (path.parent / "python3").exists()]


def _is_supported(python):
    probe = [python, "-c", "import sys; sys.exit(sys.version_info < (3, 8))"]
    return subprocess.run(probe, capture_output=True).returncode == 0


INTERPRETERS = [sys.executable, *sorted(filter(_is_supported, FOUND))]


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.split("/")[-3])
def test_trains_restarts_and_explains(make_pod, python):
    pod = make_pod(python=python, variables={"TRAINCHART_MAX_RESTARTS": "1"})
    code, stdout, stderr = pod.run(
        "import os, sys\n"
        "print('attempt', os.environ['TRAINCHART_ATTEMPT'], '%d.%d' % sys.version_info[:2], flush=True)\n"
        "raise ValueError('bad shape')\n"
    )
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True)
    assert code == 1
    assert stdout == "".join(f"attempt {number} {version.stdout.decode()}" for number in (1, 2))
    assert pod.message.error == "ValueError: bad shape" and pod.message.own_failures == 2
    # Nothing of ours warns or fails, in any version.
    assert stderr.count("Traceback") == 2 and "Warning" not in stderr


@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.split("/")[-3])
def test_takes_over_from_a_pod_that_never_released(make_pod, python):
    pod = make_pod(python=python, variables={"TRAINCHART_FENCE_SECONDS": "0.1"})
    pod.variables["TRAINCHART_CHECKPOINTS_DIR"] = str(pod.folder / "checkpoints")
    owners = pod.folder / "checkpoints/.trainchart/owners"
    owners.mkdir(parents=True)
    (owners / "exp-worker-1.owner").write_text('{"id": "x", "pod": "exp-worker-1", "node": "node-7"}')
    code, stdout, stderr = pod.run("echo", "trained")
    assert (code, stdout) == (0, "trained\n")
    assert "pod exp-worker-1 on node node-7 (x) owns the checkpoints" in stderr
    assert "Traceback" not in stderr and not list(owners.iterdir())


def check_versions(*paths):
    vermin = [
        Path(sys.executable).with_name("vermin"),
        "--target=3.8-",
        "--violations",
        "--no-tips",
        "--backport",
        "typing",
    ]
    return subprocess.run([*vermin, *map(str, paths)], capture_output=True, text=True)


def test_nothing_newer_than_python_3_8_is_used(tmp_path):
    packages = (
        SOURCES / "launcher" / "trainchart_launcher",
        SOURCES / "runtime" / "trainchart_runtime",
        SOURCES / "sbom",
    )
    result = check_versions(*packages)
    assert result.returncode == 0, result.stdout
    newer = tmp_path / "newer.py"
    newer.write_text("'run-1'.removeprefix('run')")
    assert check_versions(newer).returncode == 1


def test_no_installed_package_is_needed(make_pod):
    pod = make_pod(flags=("-I", "-S"))
    code, stdout, stderr = pod.run("echo", "trained")
    assert (code, stdout) == (0, "trained\n"), stderr
