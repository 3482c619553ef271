"""What this machine is."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

_GPUS = ("nvidia[0-9]*", "kfd", "dxg", "accel[0-9]*", "accel/accel[0-9]*")
"""Devices of NVIDIA, AMD, GPUs under WSL, and TPUs, below /dev."""


def read_platform() -> str:
    """Return this machine's platform for containers, as its kernel names it: on a Mac too they run in a Linux."""
    return f"linux/{platform.machine()}"


def has_gpu() -> bool:
    """Say whether this machine has a GPU or the like, as far as its devices tell; a Mac always has one."""
    return sys.platform == "darwin" or any(True for pattern in _GPUS for _ in Path("/dev").glob(pattern))
