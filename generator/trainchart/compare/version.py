"""The next version of a chart from what changed since the last one: SemVer 2 as a pure function.

What breaks users raises the major number, what can newly be set the minor one, anything else the patch.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable

from trainchart.chart_version import base_version, is_chart_version, raise_version, version_key
from trainchart.errors import UsageError


class Bump(enum.IntEnum):
    none = 0
    patch = 1
    minor = 2
    major = 3


def next_version(last: str, bump: Bump, *, at_least: Bump = Bump.none, pre_release: str = "") -> str:
    """Return the version after `last`; `last` itself where nothing has changed.

    `at_least` raises the bump of what has changed, and never lowers it. `pre_release` (like dev.12+g1a2b3c) gives a
    version before the next one. Raises UsageError where it is not fit to stand in a version.
    """
    if bump is Bump.none:
        return last
    return with_pre_release(raise_version(last, max(bump, at_least).name), pre_release)


def with_pre_release(core: str, pre_release: str) -> str:
    """Return a version before `core`; `core` itself where `pre_release` is empty. Raises UsageError."""
    version = f"{core.partition('+')[0]}-{pre_release}" if pre_release else core
    if not is_chart_version(version):
        raise UsageError(
            f"{pre_release!r} is not a valid pre-release{_explain(pre_release)}",
            hint="use letters, digits, dots and dashes, and a plus sign before what distinguishes builds: "
            "dev.12+g1a2b3c",
        )
    return version


def _explain(pre_release: str) -> str:
    """Return which part of a pre-release is wrong, of those between its dots."""
    numbers, plus, build = pre_release.partition("+")
    unknown = dict.fromkeys(re.findall(r"[^0-9A-Za-z.+-]", pre_release))
    padded = [part for part in numbers.split(".") if re.fullmatch(r"0[0-9]+", part)]
    if unknown:
        return f": it holds {', '.join(map(repr, unknown))}"
    if "" in (*numbers.split("."), *(build.split(".") if plus else ())):
        return ": one of its parts, before, between or after dots, is empty"
    return f": {padded[0]} begins with 0, so write {int(padded[0])}" if padded else ""


def last_version(versions: Iterable[str]) -> str:
    """Return the newest version that is no pre-release; the newest of all where there are only such, "" without any."""
    known = sorted((version for version in versions if is_chart_version(version)), key=version_key)
    stable = [version for version in known if base_version(version) == version.partition("+")[0]]
    return (stable or known or [""])[-1]
