"""Find the programs that the tests run, building each once a machine: all Kubernetes daemons, CoreDNS, kwok, helm, a
registry.

Those of the Go module beside this package are cached by what they are made of, the others by version. Parallel runs
and other checkouts share them. `python -m tests.cluster.testcluster.programs [NAME…]` builds them ahead of time.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.testcluster.cache_folder import find_cache
from tests.cluster.testcluster.versions import GO_PROGRAMS, KUBERNETES_MODULE, parse_required_version

MODULE = Path(__file__).resolve().parents[1] / "go"
MODULE_PROGRAMS = ("pause", "storage", "networkpolicy", "kubernetes")
"""Folders of the Go module, a program each."""
PROGRAMS = (*GO_PROGRAMS, *MODULE_PROGRAMS)
FLAGS = ("-trimpath", "-buildvcs=false")
STRIP = "-ldflags=-s -w"
SHOWN_LINES = 20
"""How much of a failed build's standard error is told."""


class ProgramError(Exception):
    """A program is not in the cache and could not be built."""


class GoMissingError(ProgramError):
    """There is no Go to build a program with."""


class BuildFailedError(ProgramError):
    """Go could not build a program; the message ends with the last lines that it wrote."""


@dataclass(frozen=True)
class _Build:
    """How a program comes to be: where it is kept, and what `go install` is told."""

    file: str
    """Name in the cache; says everything that the program depends on."""
    arguments: tuple[str, ...]
    binary: str
    """What Go names the program."""


def find_program(name: str, report: Callable[[str], None] = lambda line: None) -> Path:
    """Return one of PROGRAMS, building it into the cache where it is not there yet; ProgramError where that fails.

    `report` gets a line before a build and one after it, and nothing where the cache answers.
    """
    build = _installed(name) if name in GO_PROGRAMS else _compiled(name)
    cache = find_cache(os.environ, "bin")
    program = cache / build.file
    if program.is_file():
        return program
    go = _find_go(name)
    cache.mkdir(parents=True, exist_ok=True)
    with Path(cache, f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.is_file():
            report(f"building {name} ...")
            start = time.monotonic()
            _run_build(go, build, program)
            report(f"built {name} in {time.monotonic() - start:.0f} s")
    return program


def read_kubernetes_version() -> str:
    """Return the version of Kubernetes that the module requires, such as 1.36.3."""
    return parse_required_version((MODULE / "go.mod").read_text(), KUBERNETES_MODULE)


def _installed(name: str) -> _Build:
    program = GO_PROGRAMS[name]
    return _Build(f"{program.binary}-{program.version}", (*FLAGS, STRIP, program.query), program.binary)


def _compiled(name: str) -> _Build:
    arguments = (*FLAGS, STRIP + (_version_stamps() if name == "kubernetes" else ""), f"./{name}")
    digest = hashlib.sha256(f"{_read_go_version(name)} {arguments}".encode())
    sources = sorted(path for path in (MODULE / name).rglob("*") if path.is_file() and "_test." not in path.name)
    for source in (MODULE / "go.mod", MODULE / "go.sum", *sources):
        content = source.read_bytes()
        digest.update(f"\n{source.relative_to(MODULE)} {len(content)}\n".encode() + content)
    return _Build(f"{name}-{digest.hexdigest()[:16]}", arguments, name)


def _version_stamps() -> str:
    # Without these the daemons call themselves v0.0.0-master, which clients take for a Kubernetes without features.
    version = read_kubernetes_version()
    major, minor, _ = version.split(".", 2)
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    return "".join(f" -X k8s.io/component-base/version.{key}={value}" for key, value in stamps.items())


def _run_build(go: str, build: _Build, program: Path) -> None:
    # Beside the cached programs, so that the last step is a rename within one file system: all or nothing.
    with tempfile.TemporaryDirectory(dir=program.parent, prefix=f".{build.file}-") as folder:
        environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": folder}
        command = [go, "install", *build.arguments]
        done = subprocess.run(command, cwd=MODULE, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            last = "\n".join(done.stderr.splitlines()[-SHOWN_LINES:])
            raise BuildFailedError(f"go install {build.arguments[-1]} exited with {done.returncode}:\n{last}")
        Path(folder, build.binary).replace(program)


def _find_go(name: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise GoMissingError(f"{name} is not in the cache, and there is no Go to build it with")
    return go


def _read_go_version(name: str) -> str:
    command = [_find_go(name), "env", "GOVERSION"]
    return subprocess.run(command, cwd=MODULE, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the named programs, or all; print their paths, and on standard error how long each took."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cluster.testcluster.programs", description="Build the programs that the tests run."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(PROGRAMS)}; all of them if none")
    names = parser.parse_args(arguments).names or PROGRAMS
    unknown = sorted(set(names) - set(PROGRAMS))
    if unknown:
        parser.error(f"no such program: {', '.join(unknown)}")
    for name in names:
        print(f"{name} ... ", end="", file=sys.stderr, flush=True)
        start = time.monotonic()
        try:
            program = find_program(name)
        except ProgramError as error:
            print(f"failed\n{error}", file=sys.stderr)
            return 1
        print(f"{time.monotonic() - start:.1f} s", file=sys.stderr)
        print(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
