"""What an export says of itself: where it is from, and its files by SHA-256.

Both lie in the SavedModel's folder, where TensorFlow passes over them: copied together, an export and its record
cannot be taken apart.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import tensorflow as tf

from trainchart_training.saving.origin import Origin, build_object

RECORD = "assets.extra/export.json"
"""The origin, as in origin.json, with the step. In TensorFlow's folder for files that no graph reads."""
SUMS = "SHA256SUMS"
"""Every other file, as `sha256sum` writes it and `sha256sum -c` checks it, in the order of the paths' bytes. Its own
SHA-256 stands for the whole content."""
_CHUNK_BYTES = 8 * 1024 * 1024


def write_record(folder: str, origin: Origin, step: int) -> None:
    """Complete an export: its record first, then the list of its files. Raises what TensorFlow's file systems raise."""
    path = f"{folder}/{RECORD}"
    tf.io.gfile.makedirs(path.rpartition("/")[0])
    _write(path, json.dumps({**build_object(origin), "step": step}, indent=1) + "\n")
    lines = [f"{_hash(f'{folder}/{name}')}  {name}\n" for name in sorted(_list_files(folder), key=str.encode)]
    _write(f"{folder}/{SUMS}", "".join(lines))


def _list_files(folder: str) -> list[str]:
    found = []
    for root, _, names in tf.io.gfile.walk(folder):
        inner = root[len(folder) :].strip("/")
        found += [f"{inner}/{name}" if inner else name for name in names]
    return found


def _hash(path: str) -> str:
    """Return the SHA-256 of a file, read back from the storage that was told to keep it."""
    digest: Any = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    found: str = digest.hexdigest()
    return found


def _write(path: str, text: str) -> None:
    with tf.io.gfile.GFile(path, "w") as file:
        file.write(text)
