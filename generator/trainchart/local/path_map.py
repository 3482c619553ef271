"""Container paths in what a container gets, and the paths that stand for them on this machine.

Pure; serves the planning of local runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class PathMap:
    """Container paths and the paths that stand for them here."""

    pairs: tuple[tuple[str, str], ...]

    def translate(self, text: str) -> str:
        """Replace every container path in `text`, longest first, where it is a whole path or a prefix of one.

        `/data` is found in `/data/train`, `--data=/data` and `file:///data`, never in `/database`,
        `s3://bucket/data` or `gs://data`.
        """
        targets = dict(self.pairs)
        if not targets:
            return text
        paths = "|".join(re.escape(path) for path in sorted(targets, key=len, reverse=True))
        pattern = rf"(?:(?<=file://)|(?<![\w.\-/~)}}@%+]))(?:{paths})(?![\w.\-@%+])"
        return re.sub(pattern, lambda match: targets[match[0]], text)

    def with_pairs(self, pairs: Iterable[tuple[str, str]]) -> PathMap:
        return PathMap((*self.pairs, *pairs))
