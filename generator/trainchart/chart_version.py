"""Chart versions. Owner of the library that knows SemVer."""

from __future__ import annotations

import semver


def is_chart_version(text: str) -> bool:
    """Tell whether `text` is a SemVer 2 version, as Helm demands of a chart."""
    return semver.Version.is_valid(text)
