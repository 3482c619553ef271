"""Small files on a volume that other pods write too: whatever lies there, no reader hangs or reads without end."""

from __future__ import annotations

import contextlib
import os

from trainchart_runtime.io.files import open_regular


def read_file(path: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a regular file."""
    with open(path, "rb", opener=open_regular) as file:
        return file.read(limit)


def overwrite_file(path: str, content: bytes) -> None:
    """Write a regular file in place, where nothing can be put in its place."""
    with open(path, "wb", opener=open_regular) as file:
        file.write(content)


def replace_file(path: str, content: bytes) -> None:
    """Put a file in the place of whatever lies there, whole or not at all."""
    # A name that cannot be guessed, so that nothing lies there already.
    temporary = f"{path}.{os.urandom(8).hex()}.new"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
