"""Build hook of the wheel: adds the zipapps of launcher and run controller to the generator's resources.

How a zipapp is built is in trainchart_launcher/bundle.py; only the build backend loads this file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_RESOURCES = "trainchart/_resources"
_HERE = Path(__file__).resolve().parent


class ZipappBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the zipapps to a wheel. An editable install has the sources instead."""

    def initialize(self, version: str, build_data: Dict[str, Any]) -> None:
        if version == "editable":
            return
        sys.path.insert(0, str(_HERE))
        try:
            from trainchart_launcher.bundle import build_controller, build_launcher
        finally:
            sys.path.remove(str(_HERE))
        images = _HERE.parent
        zipapps = {
            "launcher.pyz": build_launcher(_HERE, images / "runtime"),
            "controller.pyz": build_controller(images / "controller", images / "runtime"),
        }
        Path(self.directory).mkdir(parents=True, exist_ok=True)
        for name, content in zipapps.items():
            target = Path(self.directory) / name
            target.write_bytes(content)
            build_data["force_include"][str(target)] = f"{_RESOURCES}/{name}"

    def finalize(self, version: str, build_data: Dict[str, Any], artifact_path: str) -> None:
        for name in ("launcher.pyz", "controller.pyz"):
            (Path(self.directory) / name).unlink(missing_ok=True)
