"""Upgrades a release with the helm program: a chart given as files, the release's own values, and some new ones."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.helm.io.binary import run_helm

TIMEOUT_SECONDS = 300.0
_WORDS_KEPT = 1500


@dataclass(frozen=True)
class HelmUpgrade:
    """One upgrade that keeps the values of the release, apart from `sets`."""

    release: str
    namespace: str
    context: str
    files: Mapping[str, bytes]
    sets: Mapping[str, str]
    description: str


def run_upgrade(upgrade: HelmUpgrade) -> None:
    """Run `helm upgrade --reuse-values`.

    Raises:
        ToolError: helm is not installed, or it fails; the error has helm's output.
    """
    program = shutil.which("helm")
    if program is None:
        raise ToolError(
            "there is no helm program on PATH, which is needed to change releases",
            hint="install helm 3 or 4: https://helm.sh/docs/intro/install/",
        )
    with tempfile.TemporaryDirectory(prefix="trainchart-chart-") as folder:
        for name, content in upgrade.files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        argv = ["upgrade", upgrade.release, folder, f"--namespace={upgrade.namespace}", "--reuse-values"]
        argv += [f"--kube-context={upgrade.context}"] if upgrade.context else []
        argv += [f"--description={upgrade.description}"]
        # Texts: an id such as 20261121 must not become a number.
        argv += [f"--set-string={key}={value}" for key, value in upgrade.sets.items()]
        # With the user's HELM_ variables, which may say where Helm keeps its releases.
        done = run_helm(Path(program), argv, os.environ, TIMEOUT_SECONDS)
    if done.returncode != 0:
        words = done.stderr.strip()[-_WORDS_KEPT:]
        raise ToolError(
            f"helm upgrade exited with {done.returncode}: {words}", hint="see: helm history and helm status"
        )
