"""Chooses between the two Helm engines.

The SDK (a Python package that bundles Helm 4) is an optional extra; a helm 3 or 4 binary is the other way.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.helm.io.protocol import INSTALL_HINT, HelmEngine


def find_engine(choice: str = "auto") -> HelmEngine:
    """Return the engine for `choice`: auto (SDK, else helm on PATH), sdk, binary, or a helm program."""
    if choice == "sdk":
        return _sdk(fallback=None)
    if choice == "binary":
        return _binary_on_path()
    if choice != "auto":
        return _binary(Path(choice))
    if importlib.util.find_spec("helm_python") is None:
        return _binary_on_path()
    found = shutil.which("helm")
    return _sdk(fallback=_binary(Path(found)) if found else None)


def engine_program(choice: str) -> str:
    """Return the name or path of the helm program that `choice` may run, beside the SDK."""
    return "helm" if choice in ("auto", "sdk", "binary") else choice


def _sdk(fallback: HelmEngine | None) -> HelmEngine:
    # Imported when chosen: the library behind it weighs 100 MB.
    from trainchart.helm.io.sdk import SdkEngine

    return SdkEngine(fallback)


def _binary(path: Path) -> HelmEngine:
    from trainchart.helm.io.binary import BinaryEngine

    if shutil.which(path) is None:
        raise ToolError(
            f"there is no helm program at {path}",
            hint="choose the engine auto, sdk or binary, or give the path of an executable helm",
        )
    return BinaryEngine(path)


def _binary_on_path() -> HelmEngine:
    found = shutil.which("helm")
    if found is None:
        raise ToolError("there is no helm program on PATH", hint=f"choose the engine sdk, or {INSTALL_HINT}")
    return _binary(Path(found))
