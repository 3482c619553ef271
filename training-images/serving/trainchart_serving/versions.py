"""Which versions of a model must be served: the newest ones, or pinned ones. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

_NUMBER = re.compile(r"[0-9]{1,19}")
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class VersionPolicy:
    """The newest `latest` versions that load, or exactly the pinned ones."""

    latest: int = 1
    pinned: tuple[int, ...] = ()
    content: Mapping[int, str] = field(default_factory=dict)
    """The content hash that a version must have."""


def parse_version(name: str) -> int | None:
    """Return the version that a folder called `name` holds; None for other folders, as TensorFlow Serving sees it."""
    return int(name) if _NUMBER.fullmatch(name) and int(name) <= _LARGEST else None


def list_versions(names: Iterable[str]) -> dict[int, str]:
    """Return the folder of each version by its number, newest first.

    Of folders with the same number (3 and 003), the shorter name counts.
    """
    found: dict[int, str] = {}
    for name in sorted(names, key=len, reverse=True):
        if (version := parse_version(name)) is not None:
            found[version] = name
    return dict(sorted(found.items(), reverse=True))


def choose_next(
    found: Iterable[int], available: Collection[int], broken: Collection[int], policy: VersionPolicy
) -> int | None:
    """Return the version to load next, or None where all that can be served is."""
    for version in _choose(found, broken, policy):
        if version not in available:
            return version
    return None


def choose_retired(
    found: Collection[int], available: Collection[int], broken: Collection[int], policy: VersionPolicy
) -> list[int]:
    """Return the versions to unload; none while one to be served instead is missing.

    A version whose folder is gone stays as long as no other takes its place: an empty folder may be a claim that was
    not mounted.
    """
    wanted = _choose(found, broken, policy)
    if not wanted or not set(wanted) <= set(available):
        return []
    return sorted(set(available) - set(wanted))


def _choose(found: Iterable[int], broken: Collection[int], policy: VersionPolicy) -> list[int]:
    good = [version for version in sorted(found, reverse=True) if version not in broken]
    if policy.pinned:
        return [version for version in good if version in policy.pinned]
    return good[: policy.latest]
