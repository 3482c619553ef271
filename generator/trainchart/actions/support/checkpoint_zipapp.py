"""Builds the program of helper pods: checkpoint_program.py and the modules that it needs, as one file for python3."""

from __future__ import annotations

import importlib.util
import io
import zipfile
from pathlib import Path

_PROGRAM = "trainchart.actions.support.checkpoint_program"
MODULES = (
    *("trainchart.errors", "trainchart.json_documents", "trainchart.host.files", "trainchart.host.trees"),
    *(f"trainchart.checkpoints.{name}" for name in ("bundle", "crc32c", "listing", "results", "saved_model", "wire")),
    *(
        f"trainchart.actions.support.checkpoint_{name}"
        for name in ("content", "folder", "saved_model", "work", "program")
    ),
    *("trainchart_runtime.io.files", "trainchart_training.saving.catalogue", "trainchart_training.saving.origin"),
)
"""All that the program imports, and they; each needs the standard library only, of Python 3.8 or newer."""


def build_program() -> bytes:
    """Return the program as a zipapp, some 30 KiB."""
    files = {"__main__.py": f"from {_PROGRAM} import main\n\nmain()\n".encode()}
    for module in MODULES:
        found = importlib.util.find_spec(module)
        assert found is not None and found.origin is not None, f"{module} belongs to trainchart"
        parts = module.split(".")
        files[f"{'/'.join(parts)}.py"] = Path(found.origin).read_bytes()
        # Their own load what is not here.
        files.update({f"{'/'.join(parts[:end])}/__init__.py": b"" for end in range(1, len(parts))})
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in sorted(files.items()):
            target.writestr(name, content)
    return archive.getvalue()
