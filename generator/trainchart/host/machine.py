"""What this machine is."""

from __future__ import annotations

import platform


def read_platform() -> str:
    """Return this machine's platform for containers, as its kernel names it: on a Mac too they run in a Linux."""
    return f"linux/{platform.machine()}"
