"""Chart versions. Owner of the library that knows SemVer."""

from __future__ import annotations

from typing import Any

import semver

_LONGEST = 256
_NUMBERS_LIMIT = 2**64


def is_chart_version(text: str) -> bool:
    """Tell whether `text` is a SemVer 2 version that Helm takes: of 256 characters, and numbers of 64 bits."""
    if len(text) > _LONGEST or not semver.Version.is_valid(text):
        return False
    parsed = semver.Version.parse(text)
    before = [int(part) for part in (parsed.prerelease or "").split(".") if part.isdigit()]
    return max(parsed.major, parsed.minor, parsed.patch, *before) < _NUMBERS_LIMIT


def version_key(text: str) -> Any:
    """Return what sorts versions, the oldest first; what only tells builds apart decides last."""
    parsed = semver.Version.parse(text)
    return parsed, parsed.build or ""


def is_pre_release(text: str) -> bool:
    """Tell whether a version comes before the one that its numbers say."""
    return bool(semver.Version.parse(text).prerelease)


def base_version(text: str) -> str:
    """Return a version without pre-release and build."""
    return str(semver.Version.parse(text).finalize_version())


def raise_version(text: str, part: str) -> str:
    """Return the next version with `part` (major, minor or patch) raised.

    A pre-release of such a version is followed by that version itself: 2.0.0-rc.1 by 2.0.0, whatever part is raised,
    as long as its numbers say at least as much.
    """
    return str(semver.Version.parse(text).next_version(part))
