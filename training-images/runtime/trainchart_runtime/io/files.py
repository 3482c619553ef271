"""Open files that others may have put where one is expected: no link is followed, and no pipe or device waited for."""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional, Union

A_LINK = "a link"


class SpecialFileError(OSError):
    """A pipe, a socket or a device, or a link where none is followed."""

    def __init__(self, path: Union[str, os.PathLike[str]], what: str = "neither a file nor a folder") -> None:
        super().__init__(errno.EINVAL, what, str(path))


def open_regular(
    path: Union[str, os.PathLike[str]],
    flags: int = os.O_RDONLY,
    *,
    follow_links: bool = False,
    dir_fd: Optional[int] = None,
) -> int:
    """Open a regular file. Raises OSError for all else, without waiting: to open or to read a pipe may never end.

    What was opened is examined and not the path, which may lead elsewhere a moment later.
    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags, 0o666, dir_fd=dir_fd)
    except OSError as err:
        if err.errno == errno.ELOOP and not follow_links:
            raise SpecialFileError(path, A_LINK) from err
        if err.errno == errno.ENXIO:  # a socket, or a pipe that has no reader
            raise SpecialFileError(path) from err
        raise
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise SpecialFileError(path)
