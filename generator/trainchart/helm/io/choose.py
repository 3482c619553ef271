"""Chooses between the two Helm engines.

The SDK (a Python package that bundles Helm 4) is an optional extra; a helm 3 or 4 binary is the other way.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.helm.io.protocol import INSTALL_HINT, HelmEngine

OWN_CHOICES = ("auto", "sdk", "binary")
"""Choices that name no program: the user's own PATH says which."""


def find_engine(choice: str = "auto") -> HelmEngine:
    """Return the engine for `choice`: auto (SDK, else helm on PATH), sdk, binary, or a helm program."""
    if choice == "sdk":
        return _sdk(fallback=None)
    found = shutil.which("helm")
    has_sdk = importlib.util.find_spec("helm_python") is not None
    if choice == "binary" and found is None:
        other = "choose the engine sdk, or " if has_sdk else ""
        raise ToolError("there is no helm program on PATH", hint=f"{other}{INSTALL_HINT}")
    if choice not in OWN_CHOICES:
        return _binary(choice)
    if not has_sdk and found is None:
        raise ToolError(
            "there is no Helm engine: helm-python-sdk is not installed, and there is no helm program on PATH",
            hint=INSTALL_HINT,
        )
    if choice == "binary" or not has_sdk:
        assert found is not None
        return _binary(found)
    return _sdk(fallback=_binary(found) if found else None)


def find_engines(choices: tuple[str, ...]) -> tuple[HelmEngine, ...]:
    """Return the engine for each of `choices`; for auto alone both, where the SDK and a helm on PATH are there.

    Raises:
        ToolError: there is no such engine.
    """
    found = tuple(map(find_engine, choices))
    has_both = choices == ("auto",) and importlib.util.find_spec("helm_python") is not None and shutil.which("helm")
    return (*found, find_engine("binary")) if has_both else found


def engine_program(choice: str) -> str:
    """Return the name or path of the helm program that `choice` may run, beside the SDK."""
    return "helm" if choice in OWN_CHOICES else choice


def _sdk(fallback: HelmEngine | None) -> HelmEngine:
    # Imported when chosen: the library behind it weighs 100 MB.
    from trainchart.helm.io.sdk import SdkEngine

    return SdkEngine(fallback)


def _binary(program: str) -> HelmEngine:
    from trainchart.helm.io.binary import BinaryEngine

    found = shutil.which(program)
    if found is None:
        raise ToolError(
            f"there is no helm program at {program}",
            hint="choose the engine auto, sdk or binary, or give the path of an executable helm",
        )
    # Absolute: of ./helm, a Path keeps the name alone, which would be looked up on PATH.
    return BinaryEngine(Path(found).absolute())
