"""Pack the launcher, or the run controller, and the runtime package into one runnable file, the same bytes everywhere.

For builders (the wheel's build hook, image builds, local runs); the file itself does not contain this module.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Iterator, Tuple

_SHEBANG = b"#!/usr/bin/env python3\n"
_MAIN = "from {package}.__main__ import main\n\nmain()\n"
_RUNTIME = "trainchart_runtime"
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The first date that a zip file can express."""
_FILE_MODE = 0o100644 << 16


def build_launcher(launcher_sources: Path, runtime_sources: Path) -> bytes:
    """Return the zipapp from the folders that hold trainchart_launcher/ and trainchart_runtime/."""
    return _build("trainchart_launcher", launcher_sources, runtime_sources)


def build_controller(controller_sources: Path, runtime_sources: Path) -> bytes:
    """Return the zipapp from the folders that hold trainchart_controller/ and trainchart_runtime/."""
    return _build("trainchart_controller", controller_sources, runtime_sources)


def build_installed_launcher() -> bytes:
    """Return the zipapp from the packages as they are installed here, or checked out."""
    import trainchart_runtime

    return build_launcher(Path(__file__).parents[1], Path(trainchart_runtime.__file__).parents[1])


def _build(package: str, sources: Path, runtime_sources: Path) -> bytes:
    archive = io.BytesIO()
    archive.write(_SHEBANG)
    # Stored, not compressed: compressors differ between machines, and reading is quicker at every start.
    with zipfile.ZipFile(archive, "a", zipfile.ZIP_STORED) as target:
        members = [("__main__.py", _MAIN.format(package=package).encode())]
        members += _read_package(sources, package)
        members += _read_package(runtime_sources, _RUNTIME)
        for name, content in sorted(members):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.external_attr = _FILE_MODE
            entry.create_system = 3
            target.writestr(entry, content)
    return archive.getvalue()


def _read_package(sources: Path, package: str) -> Iterator[Tuple[str, bytes]]:
    for path in (sources / package).rglob("*.py"):
        if path.name != Path(__file__).name:
            yield path.relative_to(sources).as_posix(), path.read_bytes()
