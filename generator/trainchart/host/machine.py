"""What this machine is, in the words of container images."""

from __future__ import annotations

import platform

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm/v7"}
"""What the kernel calls them to what Go does, where that is another word. Source: github.com/containerd/platforms."""


def read_platform() -> str:
    """Return this machine's platform for containers, such as linux/amd64: on a Mac too they run in a Linux."""
    machine = platform.machine().lower()
    return f"linux/{_ARCHITECTURES.get(machine, machine)}"
