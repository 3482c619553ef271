"""What the last words of a builder mean, as an error that says what to do next. Pure.

The programs have no other way to tell: exit codes are 1 or 125 for everything. Unknown words are shown as they are.
"""

from __future__ import annotations

import re

from trainchart.errors import RepositoryForbidden, RepositoryUnreachable, ToolError, TrainchartError
from trainchart.images.builders import Step
from trainchart.placeholder import placeholder_hint

_NOT_RUNNING = r"cannot connect to the docker daemon|cannot connect to podman|docker daemon socket|is the docker daemon"
_DISK_FULL = r"no space left on device|disk quota exceeded"
_NO_BUILDX = (
    r"'buildx' is not a docker command|unknown command: docker buildx|buildx component is missing|unknown flag: --load"
)
_DENIED = r"denied|unauthorized|authentication required|forbidden|\b40[13]\b"
_UNREACHABLE = r"no such host|connection refused|i/o timeout|network is unreachable|dial tcp|tls handshake"
_MISSING = r"manifest unknown|not found|does not exist|name unknown|no such image"
_PULLING = r"pull|resolve source metadata|load metadata|initializing source|creating build container|reading manifest"
_UNTRUSTED = r"certificate_verify_failed|certificate verify failed|self[- ]signed certificate"
"""As Python says it; the builders, written in Go, have other words."""
_LINES_OF_ERROR = 3
"""Of the last lines, those that say why it ended: a builder may add some advice, or name several registries."""


def explain_failure(step: Step, exit_code: int, last_lines: tuple[str, ...]) -> TrainchartError:
    """Return the error for a step that ended with `exit_code` and these last lines of output."""
    program = step.argv[0]
    words = "\n".join(last_lines)
    shown = last_lines[-1].strip() if last_lines else "it printed nothing"
    if _says(_DISK_FULL, words):
        return ToolError(f"{program}: the disk is full", hint=f"free some space, for example: {_prune(program)}")
    if _says(_NOT_RUNNING, words):
        return ToolError(f"{program} is installed, but does not run: {shown}", hint=f"start it, then: {program} info")
    if _says(_NO_BUILDX, words):
        return ToolError(
            "docker has no buildx", hint="install docker-buildx-plugin, or use --builder podman or buildah"
        )
    if step.name == "push":
        return _explain_push(shown, words)
    # Earlier lines tell of pulls that went well, and those of pip of connections that did not.
    refusals = [line.strip() for line in last_lines[-_LINES_OF_ERROR:] if _is_about_base(line)]
    if refusals:
        return ToolError(
            f"{program} cannot get the base image: {refusals[-1]}",
            hint="check --base-image, and log in to its registry",
        )
    hint = "its output is above"
    if _says(_UNTRUSTED, words):
        hint = "pip does not trust the index: pass the CA certificates of your network with --ca-bundle"
    return ToolError(f"{program} {step.name} ended with {exit_code}: {shown}", hint=hint)


def _is_about_base(line: str) -> bool:
    return _says(_PULLING, line) and _says(f"{_MISSING}|{_DENIED}|{_UNREACHABLE}", line)


def _explain_push(shown: str, words: str) -> TrainchartError:
    if _says(_DENIED, words):
        return RepositoryForbidden(
            f"the registry refuses the image: {shown}", hint="docker login, podman login, or buildah login"
        )
    if _says(_UNREACHABLE, words):
        return RepositoryUnreachable(
            f"the registry cannot be reached: {shown}",
            hint=placeholder_hint(words) or "check image.repository and the network",
        )
    return ToolError(f"the image cannot be pushed: {shown}", hint="its output is above")


def _prune(program: str) -> str:
    return "buildah rmi --prune" if program == "buildah" else f"{program} system prune"


def _says(pattern: str, words: str) -> bool:
    return re.search(pattern, words, re.IGNORECASE) is not None
