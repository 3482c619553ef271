"""Platforms of images: operating system and architecture, in the words of image indexes. Pure."""

from __future__ import annotations

import re

from trainchart.errors import UsageError

_PLATFORM = re.compile(r"linux/([a-z0-9_]+)(?:/(v[0-9]+))?")
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64/v8": "arm64", "armv7l": "arm/v7"}
"""What kernels and people call them, to their one name. Source: github.com/containerd/platforms."""


def parse_platform(text: str) -> str:
    """Return a platform such as linux/amd64 by its one name, whatever the case and the name. Raises UsageError."""
    match = _PLATFORM.fullmatch(text.strip().lower())
    if not match:
        raise UsageError(
            f"{text!r} is no platform that an image can be for", hint="one of Linux, such as linux/amd64 or linux/arm64"
        )
    name = "/".join(part for part in match.groups() if part)
    return f"linux/{_ARCHITECTURES.get(name, name)}"
