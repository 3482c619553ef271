"""Where the tests keep what takes long to build: one folder of the user's, for all checkouts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def find_cache(environment: Mapping[str, str], part: str) -> Path:
    """Return the folder of a part of the cache; it may not exist yet."""
    caches = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home(), ".cache")
    return Path(caches, "trainchart", part)
