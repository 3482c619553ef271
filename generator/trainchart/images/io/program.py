"""Runs the programs that build images, in a build context that is gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.images.builders import BUILDERS, Builder, Step
from trainchart.images.choices import BuilderName
from trainchart.images.failures import explain_failure
from trainchart.images.inputs import ContextFile

_LINES_KEPT = 30
_PROBE_SECONDS = 10.0
_GRACE_SECONDS = 10.0
"""A builder that works on for longer after SIGTERM is killed."""


def find_builder(name: BuilderName | None, environment: Mapping[str, str]) -> Builder:
    """Return the builder called `name`, or else the first one on PATH that works. Raises ToolError without any."""
    wanted = (name,) if name else tuple(BuilderName)
    found = [program for program in wanted if shutil.which(program, path=environment.get("PATH"))]
    if not found:
        raise ToolError(
            f"{name} is not on PATH" if name else f"none of {', '.join(wanted[:-1])} and {wanted[-1]} is on PATH",
            hint="install docker with buildx, podman or buildah; --builder NAME --dry-run shows the steps without it",
        )
    # Where none works, the first one says why as soon as it is to build.
    return BUILDERS[name or next((program for program in found if _works(BUILDERS[program], environment)), found[0])]


def _works(builder: Builder, environment: Mapping[str, str]) -> bool:
    return all(_succeeds(probe, environment) for probe in builder.probes)


def _succeeds(probe: tuple[str, ...], environment: Mapping[str, str]) -> bool:
    try:
        done = subprocess.run(
            probe,
            check=False,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


@contextmanager
def build_context(files: tuple[ContextFile, ...]) -> Iterator[Path]:
    """Give a folder with exactly `files`, for as long as the build takes.

    Owner, age and umask leave no trace, so that the same files are the same layer.
    """
    with tempfile.TemporaryDirectory(prefix="trainchart-image-") as name:
        folder = Path(name)
        for file in files:
            path = folder / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            path.chmod(0o755 if file.is_executable else 0o644)
            os.utime(path, (0, 0))
        for parent in sorted(folder.rglob("*"), reverse=True):
            if parent.is_dir():
                parent.chmod(0o755)
                os.utime(parent, (0, 0))
        yield folder


def run_step(step: Step, environment: Mapping[str, str], report: Callable[[str], None]) -> None:
    """Run a command to its end, `report` getting each line of its output. Raises TrainchartError where it fails.

    An exception, such as that of Ctrl-C, ends the command first: it must not work on in a context that is gone.
    """
    lines: deque[str] = deque(maxlen=_LINES_KEPT)
    try:
        process = subprocess.Popen(
            step.argv,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise ToolError(
            f"{step.argv[0]} does not run: {error.strerror}", hint="install it, or use --builder"
        ) from error
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                report(line.rstrip("\n"))
                if line.strip():
                    lines.append(line)
        except BaseException:
            process.terminate()
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    if process.returncode != 0:
        raise explain_failure(step, process.returncode, tuple(lines))
