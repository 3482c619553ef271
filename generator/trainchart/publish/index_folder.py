"""Charts in a folder with an index.yaml, which any web server can offer; where the folder is, a `Store` knows.

The archive comes first and the index last, by which a version is published. Both happen under the store's lock.
"""

from __future__ import annotations

import shlex
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from trainchart.archive.chart_file import CREATED_ANNOTATION
from trainchart.archive.pack import open_archive
from trainchart.errors import Problem, PublishError, ToolError, VersionConflict
from trainchart.publish.index import INDEX_FILE, add_entry, find_entries, find_entry, read_entry
from trainchart.publish.index_urls import require_same_as_helm
from trainchart.publish.repository import (
    OWNERS_FILE,
    FetchedArchive,
    PublishedVersion,
    Upload,
    limit_provenance,
    sha256_digest,
)

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_TRIES = 5
"""How often the index is written where nothing locks it and others write it too."""


class Store(Protocol):
    """Files of a folder by name. Whatever goes wrong is a PublishError of the kind that fits."""

    @property
    def url(self) -> str:
        """Return the address as users write it."""

    def read(self, reference: str) -> bytes | None:
        """Return a file, named as the index does: by its path from the folder, or a whole address. None: not there."""

    def write(self, name: str, content: bytes, *, is_new: bool = False) -> None:
        """Put a file there in one step: readers see the old content or the new.

        `is_new` asks a store that can to refuse where another writer was faster.
        """

    def list_archives(self) -> tuple[str, ...]:
        """Return the names of the archives that are there, as far as the store can tell."""

    def locked(self) -> AbstractContextManager[None]:
        """Keep other publishers out, as far as the store can."""


class IndexRepository:
    """A chart repository as Helm first had it."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def url(self) -> str:
        return self._store.url

    def reference(self, name: str, version: str) -> str:
        return f"{self.url}/{name}-{version}.tgz"

    @property
    def has_index(self) -> bool:
        return self._store.read(INDEX_FILE) is not None

    def find_versions(self, name: str) -> tuple[str, ...]:
        return tuple(found.version for found in self.list_versions(name))

    def list_versions(self, name: str) -> tuple[PublishedVersion, ...]:
        return tuple(read_entry(entry) for entry in find_entries(self._read_index(), name))

    def fetch(self, name: str, version: str) -> FetchedArchive | None:
        # Without an index, another publisher may be about to write the first one: `add` looks under its lock.
        text = self._read_index() if self.has_index else ""
        entry = find_entry(text, name, version)
        if entry is None:
            return None
        urls = entry.get("urls")
        if not isinstance(urls, list) or not urls or not isinstance(urls[0], str):
            raise PublishError(f"{INDEX_FILE} of {self.url} does not say where {name} {version} is")
        reference = require_same_as_helm(urls[0], f"read {urls[0]} of {self.url}")
        data = self._store.read(reference)
        if data is None:
            raise PublishError(
                f"{INDEX_FILE} of {self.url} names {reference}, which does not exist",
                hint="restore the archive, or remove its entry from the index",
            )
        digest, said = sha256_digest(data), read_entry(entry).digest
        if said and said != digest:
            raise PublishError(f"{self.url}: {reference} is damaged: listed as {said}, but it is {digest}")
        signature = f"{reference}.prov"
        return FetchedArchive(data, digest, limit_provenance(self._store.read(signature), f"{self.url}: {signature}"))

    def add(self, upload: Upload) -> str:
        archive = upload.archive
        with self._store.locked():
            if find_entry(self._read_index(archive.filename), archive.name, archive.version) is not None:
                return ""
            is_new = self._require_not_taken(upload)
            if upload.provenance is not None:
                self._store.write(f"{archive.filename}.prov", upload.provenance)
            self._store.write(archive.filename, archive.data, is_new=is_new)
            self._add_to_index(upload)
        return ""

    def put_owners(self, content: bytes) -> None:
        """Put OWNERS_FILE beside the index, in place of the one that may be there."""
        with self._store.locked():
            if self._store.read(OWNERS_FILE) != content:
                self._store.write(OWNERS_FILE, content)

    def _add_to_index(self, upload: Upload) -> None:
        """Write the index until it holds the version: where nothing locks, another writer may have changed it."""
        archive = upload.archive
        for _ in range(_TRIES):
            text = self._read_index(archive.filename)
            if find_entry(text, archive.name, archive.version) is not None:
                return
            self._store.write(INDEX_FILE, add_entry(text, archive.name, _entry(upload), upload.created).encode())
        if find_entry(self._read_index(), archive.name, archive.version) is None:
            raise PublishError(
                f"{INDEX_FILE} of {self.url} loses entries: other clients write it at the same time",
                hint="let one job at a time publish there, then run it again",
            )

    def _require_not_taken(self, upload: Upload) -> bool:
        """Tell whether the archive's name is free; refuse where it is another's, though no index names that.

        What a writer that was cut off has left, whole or half, is replaced.
        """
        archive = upload.archive
        there = self._store.read(archive.filename)
        if there is None:
            return True
        try:
            identity = open_archive(there).identity
        except ToolError:
            return False
        if identity != archive.identity:
            raise VersionConflict(
                f"{self.url} holds {archive.filename} with different content, although its index does not list it",
                hint="raise the version; or, if no one can have downloaded that file, remove it and run this again",
                problems=(Problem(f"there sha256:{identity}, here sha256:{archive.identity}"),),
            )
        return False

    def _read_index(self, own: str = "") -> str:
        """Return the index, empty where there is none. Raises PublishError where it is damaged, or was deleted.

        The archive `own` may be there before the index: that of a first publication that was cut off.
        """
        content = self._store.read(INDEX_FILE)
        if content is None:
            archives = tuple(name for name in self._store.list_archives() if name != own)
            if archives:
                # As for an empty one below.
                more = f" and {len(archives) - 1} more" if len(archives) > 1 else ""
                raise PublishError(
                    f"{self.url} has no {INDEX_FILE}, so clients cannot find {archives[0]}{more} there",
                    hint=f"restore the index, or create one from the archives: helm repo index {shlex.quote(self.url)}",
                )
            return ""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            hint = "is it compressed, or not an index at all?"
            raise PublishError(f"{INDEX_FILE} of {self.url} is not UTF-8 text", hint=hint) from error
        if not text.strip():
            # Half a copy, or a write that was cut off: to start over would lose every version that is published.
            raise PublishError(
                f"{INDEX_FILE} of {self.url} is empty",
                hint="run it again, or restore the index; if nothing was ever published there, remove it",
            )
        return text


def _entry(upload: Upload) -> dict[str, object]:
    made = upload.chart.get("annotations", {}).get(CREATED_ANNOTATION, "")
    try:
        is_time = datetime.strptime(made, _TIME).strftime(_TIME) == made
    except ValueError:
        is_time = False  # Helm could not read the index.
    return {
        **upload.chart,
        "created": made if is_time else upload.created,
        "digest": sha256_digest(upload.archive.data).partition(":")[2],
        "urls": [upload.archive.filename],
    }
