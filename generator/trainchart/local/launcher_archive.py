"""Finds what stands for the image's launcher.pyz: the shipped zipapp, or one of the installed packages."""

from __future__ import annotations

from pathlib import Path

from trainchart.errors import ToolError
from trainchart_launcher.bundle import build_installed_launcher

_SHIPPED = Path(__file__).parent.parent / "_resources" / "launcher.pyz"


def place_launcher(folder: Path) -> Path:
    """Return the launcher's zipapp, made in `folder` where none was shipped (an editable installation)."""
    if _SHIPPED.is_file():
        return _SHIPPED
    target = folder / "launcher.pyz"
    try:
        target.write_bytes(build_installed_launcher())
    except OSError as err:
        raise ToolError(f"cannot write {target}: {err.strerror}", hint="choose another --runs-dir") from err
    return target
