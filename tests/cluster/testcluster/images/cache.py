"""The cache of built images: finished folders by name, one lock, and nothing half done under a final name.

Folders are filled under a name of their own and renamed when complete, so a killed build leaves only what the next
one removes. Results are given out as copies or hard links, so removing an old one harms nobody who uses it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.testcluster.cache_folder import find_cache

_UNFINISHED = ".new-"
_KEPT = 3
"""Results of one kind that stay: those of a few branches or of a change and its undoing."""


@dataclass(frozen=True)
class ImageCache:
    folder: Path

    def entry(self, kind: str, key: str) -> Path:
        """Return where the result of that kind and key is, or will be."""
        return self.folder / f"{kind}-{key}"

    def find(self, kind: str, key: str) -> Path | None:
        """Return a finished result and note its use."""
        entry = self.entry(kind, key)
        try:
            os.utime(entry)
        except FileNotFoundError:
            return None
        return entry

    def build(self, kind: str, key: str, fill: Callable[[Path], None]) -> Path:
        """Return the result, letting `fill` write it into a new folder where there is none. Needs the lock."""
        found = self.find(kind, key)
        if found:
            return found
        unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
        unfinished.chmod(0o755)
        try:
            fill(unfinished)
            unfinished.replace(self.entry(kind, key))
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        self._remove_old(kind)
        return self.entry(kind, key)

    def remove_full(self, kind: str) -> bool:
        """Remove all results of a kind of which there is no room for another one. Needs the lock."""
        entries = list(self.folder.glob(f"{kind}-*"))
        if len(entries) < _KEPT:
            return False
        self._remove(entries)
        return True

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Let one process build at a time; remove what a killed one has left."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("w") as lock:
            os.set_inheritable(lock.fileno(), True)
            fcntl.flock(lock, fcntl.LOCK_EX)
            for leftover in self.folder.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(leftover)
            yield

    def _remove_old(self, kind: str) -> None:
        entries = sorted(self.folder.glob(f"{kind}-*"), key=lambda entry: entry.stat().st_mtime, reverse=True)
        self._remove(entries[_KEPT:])

    def _remove(self, entries: list[Path]) -> None:
        for entry in entries:
            dying = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.folder))
            entry.rename(dying / entry.name)
            shutil.rmtree(dying)


def open_cache(environment: Mapping[str, str]) -> ImageCache:
    """Return the user's cache of images."""
    return ImageCache(find_cache(environment, "images"))
