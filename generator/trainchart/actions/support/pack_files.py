"""The files of packs on disk. Apart from packs.py: commands that find nothing to do import no more than this."""

from __future__ import annotations

from pathlib import Path

from trainchart.host.files import read_bytes, read_tree

PACK_LOCK_FILE = "packs.lock.yaml"
VENDOR = Path("vendor", "packs")
"""Where a project keeps copies of the packs of repositories."""
SUFFIX = ".tgz"
PACK_LIMIT = 16 * 1024 * 1024
"""Bytes; a pack is a few texts."""


def read_pack_files(path: Path) -> dict[str, bytes]:
    """Return the files of the pack in a folder or archive. Raises ToolError where it cannot be read."""
    if path.suffix == SUFFIX:
        from trainchart.packs.archive import parse_pack_archive

        return parse_pack_archive(read_bytes(path, limit=PACK_LIMIT))
    files = read_tree(path, limit=PACK_LIMIT)
    return {name: content for name, content in files.items() if not name.startswith(".git/")}
