"""Faults of the shared volumes. Pure."""

from __future__ import annotations

from ..components import VOLUMES
from .fault import Change, Fault, Inside

FILLER = f"{VOLUMES}/.trainchart-fault"
"""Takes all the room; the file system of the volumes is one of its own."""


def fill_disk() -> Fault:
    """Let every write to a volume fail with ENOSPC, by root too. Files that exist can still be read and removed."""
    # Asking for more than there is takes what there is, and fails.
    fill = Inside(("sh", "-c", f"! fallocate --length 1T {FILLER} 2>/dev/null"))
    return Fault("volumes full", (Change(fill, (Inside(("rm", FILLER)),)),))
