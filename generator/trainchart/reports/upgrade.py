"""What an upgrade of a release changed. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Upgrade:
    """A revision of a release, and how it differs from the one before."""

    revision: int
    before: int
    """The revision that it is compared with."""
    at: float
    """Unix seconds at which it was made."""
    changes: tuple[str, ...]
    """Such as: image.tag from "1.0" to "1.1"."""
    source: str = ""
    """Where its values come from, if not from who upgraded, such as: Rollback to 1."""
    dropped: tuple[str, ...] = ()
    """Values that were given before, such as by -f, and were not given again: the chart's own apply."""
    newest: int = 0
    """The last revision that changed anything; another than this where one came after the failure."""
