"""Real helm programs of pinned versions for the tests, built once a machine and shared by parallel runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

VERSIONS = {3: "3.22.0", 4: "4.3.1"}
"""Helm's major version → the release that the tests run against."""


class HelmProgramMissingError(Exception):
    """There is no helm of the pinned version and no Go to build it with."""


def find_helm_program(major: int) -> Path:
    """Return the helm program of a major version, building it into the cache where it is not there yet."""
    version = VERSIONS[major]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "trainchart", "bin")
    program = cache / f"helm-{version}"
    if program.is_file():
        return program
    go = shutil.which("go")
    if go is None:
        raise HelmProgramMissingError(f"helm {version} is not at {program}, and there is no Go to build it with")
    cache.mkdir(parents=True, exist_ok=True)
    with Path(cache, f".helm-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.is_file():
            _build(go, major, version, program)
    return program


def _build(go: str, major: int, version: str, program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        module = f"helm.sh/helm/v{major}/cmd/helm@v{version}"
        environment = {**os.environ, "GOBIN": folder}
        done = subprocess.run([go, "install", module], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"go install {module} failed:\n{done.stderr[-2000:]}")
        Path(folder, "helm").replace(program)


if __name__ == "__main__":
    for wanted in VERSIONS:
        print(find_helm_program(wanted))
