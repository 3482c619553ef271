"""Finds what stands for the image's launcher.pyz: the shipped zipapp, or one of the installed packages."""

from __future__ import annotations

from pathlib import Path

from trainchart.errors import ToolError
from trainchart_launcher.bundle import build_installed_launcher

_SHIPPED = Path(__file__).parents[2] / "_resources" / "launcher.pyz"


def find_launcher(release_folder: Path) -> Path:
    """Return the shipped zipapp; an editable installation has none, its place is in the release's folder."""
    return _SHIPPED if _SHIPPED.is_file() else release_folder / "launcher.pyz"


def ensure_launcher(path: Path) -> None:
    """Make the zipapp at `path` unless it is the shipped one."""
    if path == _SHIPPED:
        return
    try:
        path.write_bytes(build_installed_launcher())
    except OSError as err:
        raise ToolError(f"cannot write {path}: {err.strerror}", hint="choose another --runs-dir") from err
