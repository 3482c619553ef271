"""The notebook image: nobody gets in without a token, the model's code is there, and the family's charts fit it."""

from __future__ import annotations

import os
import venv
from pathlib import Path
from subprocess import run
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.family_charts import make_family_chart, render_family_chart

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / "training-images" / "notebook"
TOKEN = "0123456789abcdef"


def configure(monkeypatch: pytest.MonkeyPatch, token: str) -> Any:
    """Execute Jupyter's configuration as Jupyter does, and return what it has set."""
    parts = ("IdentityProvider", "MappingKernelManager", "ServerApp", "ServerProxy")
    found = SimpleNamespace(**{part: SimpleNamespace() for part in parts})
    monkeypatch.setenv("JUPYTER_TOKEN", token)
    exec((IMAGE / "jupyter_server_config.py").read_text(), {"get_config": lambda: found})
    return found


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


def test_chart_and_image_agree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOG_DIR", "/elsewhere")
    monkeypatch.setenv("IDLE_MINUTES", "3")
    found = configure(monkeypatch, TOKEN)
    chart = make_family_chart("notebook", tmp_path)
    manifests = render_family_chart(chart, "nb", "team-a", {}).manifests
    (deployment,) = [each.document for each in manifests if each.kind == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    assert found.IdentityProvider.token == TOKEN
    assert {variable["name"] for variable in container["env"]} == {"JUPYTER_TOKEN", "LOG_DIR", "IDLE_MINUTES"}
    assert [port["containerPort"] for port in container["ports"]] == [found.ServerApp.port]
    assert found.ServerApp.root_dir in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert found.MappingKernelManager.cull_idle_timeout == 180
    command = " ".join(found.ServerProxy.servers["tensorboard"]["command"])
    assert "--host=127.0.0.1" in command, "only Jupyter, which asks for the token, is reached from outside"
    assert "--logdir=/elsewhere" in command
