"""The wheel in a clean environment, outside the checkout: it holds the templates, the defaults and the launcher."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
API_USER = ROOT / "tests" / "support" / "python_api_user.py"
SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: tiny
description: A tiny model.
image: {repository: registry.example.com/tiny, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: single
hyperparameters: {rate: {type: number, default: 0.5}}
"""
PROGRAM = "import os; print('trained with', os.environ['TRAINCHART_HP_RATE'])\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_what_the_program_reads_at_run_time(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "trainchart/_resources/launcher.pyz",
        "trainchart/_resources/controller.pyz",
        "trainchart/_resources/chart-templates/training-job/templates/statefulset.yaml",
        "trainchart/_resources/training-images/controller/Dockerfile",
        "trainchart/_resources/training-images/sbom/write_sbom.py",
        "trainchart/_resources/training-images/tensorflow/Dockerfile",
        "trainchart/_resources/training-images/tensorflow/requirements/gpu.txt",
        "trainchart/_resources/chart-templates/training-job/.helmignore",
        "trainchart/console/static/live.js",
        "trainchart/console/static/uplot/LICENSE",
        "trainchart/console/templates/run.html",
        "trainchart/plan/defaults.yaml",
        "trainchart/scaffold/train.py.txt",
        "trainchart/py.typed",
        "trainchart_runtime/contract.py",
        "trainchart_training/roles.py",
        "trainchart_training/py.typed",
        "trainchart_serving/__init__.py",
    ):
        assert name in names
    assert not [name for name in names if name.startswith("tests/")]


@pytest.mark.timeout(280)
def test_an_installed_wheel_generates_checks_runs_and_packs(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=True)
    binaries = environment / "bin"
    pip = [str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, f"{wheel}[helm]"], check=True)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny.yaml").write_text(SPEC)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(PROGRAM)

    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def trainchart(*arguments: str) -> str:
        done = subprocess.run(
            [str(binaries / "trainchart"), *arguments],
            cwd=tmp_path,
            env={**inherited, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    trainchart("generate")
    steps = trainchart("image", "build", "tiny", "--builder=docker", "--dry-run")
    assert "--file=CONTEXT/training-images/tensorflow/Dockerfile" in steps
    assert "0 errors, 0 warnings" in trainchart("check", "charts/tiny")
    assert "trained with 0.25" in trainchart("run", "charts/tiny", "--set", "hyperparameters.rate=0.25")
    trainchart("package", "charts/tiny", "-d", "dist")
    program = [str(binaries / "python"), str(API_USER), "models/tiny.yaml", "packed"]
    told = subprocess.run(program, cwd=tmp_path, env=inherited, capture_output=True, text=True)
    assert (told.returncode, told.stderr) == (0, ""), told.stdout
    assert (tmp_path / "packed" / "tiny-0.1.0.tgz").is_file()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tiny-0.1.0.tgz").write_bytes((tmp_path / "dist" / "tiny-0.1.0.tgz").read_bytes())
    done = subprocess.run(
        [str(binaries / "trainchart"), "run", "tiny-0.1.0.tgz"],
        cwd=elsewhere,
        env={**inherited, "XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "trained with 0.5" in done.stdout + done.stderr
