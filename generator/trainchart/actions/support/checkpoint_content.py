"""Reads all bytes of a checkpoint and finds those that have changed since TensorFlow wrote them, without TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from trainchart.checkpoints.bundle import BundleError, Entry, find_text_damage, parse_bundle, shard_name
from trainchart.checkpoints.crc32c import CHUNK, extend, mask
from trainchart.checkpoints.listing import Checkpoint
from trainchart.errors import ToolError
from trainchart.host.files import read_bytes
from trainchart_runtime.io.files import SpecialFileError, open_regular
from trainchart_training.saving import catalogue

_INDEX_LIMIT = 64 * 1024 * 1024
_TEXT_LIMIT = 256 * 1024 * 1024


def find_content_damage(folder: Path, checkpoint: Checkpoint) -> str:
    """Read all bytes of a checkpoint and return which file is damaged, and how; "" where none is.

    TensorFlow's index has a CRC of every variable, and of itself.
    """
    if checkpoint.problem:
        return checkpoint.problem
    prefix = catalogue.prefix(checkpoint.step)
    index_name = f"{prefix}.index"
    if checkpoint.marker is None or index_name not in checkpoint.marker.files:
        return f"{index_name} is missing from the marker"
    try:
        bundle = parse_bundle(read_bytes(folder / index_name, limit=_INDEX_LIMIT, follow_links=False))
    except BundleError as error:
        return f"{index_name}: {error}"
    except ToolError as error:
        return error.message
    for shard, entries in bundle.list_by_shard().items():
        name = shard_name(prefix, shard, bundle.shards)
        if name not in checkpoint.marker.files:
            return f"{name} is missing from the marker"
        problem = _find_shard_damage(folder / name, entries)
        if problem:
            return f"{name}: {problem}"
    return ""


def _find_shard_damage(path: Path, entries: Sequence[Entry]) -> str:
    try:
        handle = open_regular(path)
    except SpecialFileError as error:
        return error.strerror or "not a file"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    with os.fdopen(handle, "rb", buffering=0):
        size = os.fstat(handle).st_size
        end = 0
        for entry in entries:
            if entry.offset < end or entry.offset + entry.size > size:
                return f"variable {entry.key} lies outside the file, or overlaps another variable"
            end = entry.offset + entry.size
            try:
                is_damaged = entry.is_checkable and _is_damaged(handle, entry)
            except OSError as error:
                return (error.strerror or str(error)).lower()
            if is_damaged:
                return f"the bytes {entry.offset} to {end} differ from what was written: variable {entry.key}"
    return ""


def _is_damaged(handle: int, entry: Entry) -> bool:
    if entry.is_text:
        if entry.size > _TEXT_LIMIT:
            return True  # longer than any program's texts
        return find_text_damage(entry, _read_at(handle, entry.offset, entry.size))
    crc, at, end = 0, entry.offset, entry.offset + entry.size
    while at < end:
        part = _read_at(handle, at, min(CHUNK, end - at))
        if not part:
            return True  # cut off while it was read
        crc = extend(crc, part)
        at += len(part)
    return mask(crc) != entry.crc


def _read_at(handle: int, offset: int, size: int) -> bytes:
    """Return the bytes there, fewer at the end of the file."""
    parts = []
    while size > 0:
        part = os.pread(handle, min(size, CHUNK), offset)
        if not part:
            break
        parts.append(part)
        offset, size = offset + len(part), size - len(part)
    return b"".join(parts)
