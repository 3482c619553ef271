"""The notebook beside a release: its manifest is as safe as a chart, and nobody gets in without a token."""

from __future__ import annotations

import os
import sys
import venv
from pathlib import Path
from subprocess import run
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "docs" / "images" / "notebook.yaml"
IMAGE = ROOT / "training-images" / "notebook"
TOKEN = "0123456789abcdef"


def configure(monkeypatch: pytest.MonkeyPatch, token: str) -> Any:
    """Execute Jupyter's configuration as Jupyter does, and return what it has set."""
    found = SimpleNamespace(
        IdentityProvider=SimpleNamespace(), ServerApp=SimpleNamespace(), ServerProxy=SimpleNamespace()
    )
    monkeypatch.setenv("JUPYTER_TOKEN", token)
    exec((IMAGE / "jupyter_server_config.py").read_text(), {"get_config": lambda: found})
    return found


def test_the_manifest_passes_every_rule() -> None:
    done = run([sys.executable, "-m", "trainchart", "check", MANIFEST], capture_output=True, text=True)

    assert (done.returncode, "0 errors, 0 warnings" in done.stderr) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize("token", ["", TOKEN[1:]])
def test_a_token_that_could_be_guessed_is_refused(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    with pytest.raises(SystemExit, match=f"JUPYTER_TOKEN has {len(token)} characters, expected 16"):
        configure(monkeypatch, token)


def test_a_notebook_imports_the_models_code_from_its_own_folder(tmp_path: Path) -> None:
    instructions = (IMAGE / "Dockerfile").read_text().replace("\\\n", "").splitlines()
    (install,) = (line for line in instructions if line.startswith("RUN") and "notebook.txt" in line)
    command = next((part for part in install.split("&& ") if part.startswith("echo /app ")), "true")
    (tmp_path / "app" / "mnist").mkdir(parents=True)
    (tmp_path / "app" / "mnist" / "train.py").write_text("print('the code of the model')\n")
    # Called like a module that Jupyter needs.
    (tmp_path / "app" / "token.py").write_text("raise SystemExit('not me')\n")
    (tmp_path / "notebooks").mkdir()
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    inside = {"PATH": f"{python.parent}:{os.environ['PATH']}"}

    run(["sh", "-ec", command.replace("/app", str(tmp_path / "app"))], env=inside, check=True)
    done = run(
        [python, "-c", "import token, mnist.train"],
        cwd=tmp_path / "notebooks",
        env=inside,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, done.stdout) == (0, "the code of the model\n"), done.stderr


def test_manifest_and_image_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    found = configure(monkeypatch, TOKEN)
    (container,) = yaml.safe_load(MANIFEST.read_text())["spec"]["template"]["spec"]["containers"]

    assert found.IdentityProvider.token == TOKEN
    assert [variable["name"] for variable in container["env"]] == ["JUPYTER_TOKEN"]
    assert [port["containerPort"] for port in container["ports"]] == [found.ServerApp.port]
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert mounts == {"/checkpoints": True, found.ServerApp.root_dir: False, "/tmp": False}
    command = " ".join(found.ServerProxy.servers["tensorboard"]["command"])
    assert "--host=127.0.0.1" in command, "only Jupyter, which asks for the token, is reached from outside"
    assert "--logdir=/checkpoints/logs" in command
