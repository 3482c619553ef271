"""Build hook of the wheel: puts the launcher's zipapp where the installed generator looks for it.

How the zipapp is built is in trainchart_launcher/bundle.py; only the build backend loads this file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_RESOURCE = "trainchart/_resources/launcher.pyz"
_HERE = Path(__file__).resolve().parent


class LauncherBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the zipapp to a wheel. An editable install has the sources instead."""

    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, str(_HERE))
        try:
            from trainchart_launcher.bundle import build_launcher
        finally:
            sys.path.remove(str(_HERE))
        target = Path(self.directory) / "launcher.pyz"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(build_launcher(_HERE, _HERE.parent / "runtime"))
        build_data["force_include"][str(target)] = _RESOURCE

    def finalize(self, version: str, build_data: Dict[str, Any], artifact_path: str) -> None:
        (Path(self.directory) / "launcher.pyz").unlink(missing_ok=True)
