"""Small files on a volume that other pods write too: whatever lies there, no reader hangs or reads without end."""

from __future__ import annotations

import contextlib
import errno
import os
import stat


class SpecialFileError(OSError):
    """A link, pipe, socket or device lies where a launcher keeps a file."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EINVAL, "a link, pipe, socket or device, not a regular file", path)


def read_file(path: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a regular file."""
    with open(path, "rb", opener=_open_regular) as file:
        return file.read(limit)


def overwrite_file(path: str, content: bytes) -> None:
    """Write a regular file in place, where nothing can be put in its place."""
    with open(path, "wb", opener=_open_regular) as file:
        file.write(content)


def _open_regular(path: str, flags: int) -> int:
    try:
        handle = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)
    except OSError as err:
        # What the system says of a link, of a socket, and of a pipe without a reader.
        if err.errno in (errno.ELOOP, errno.ENXIO):
            raise SpecialFileError(path) from err
        raise
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise SpecialFileError(path)


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
