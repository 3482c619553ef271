"""Finds one file in a layer of an image, in bounded memory: the layer may come from anywhere. Pure.

Python's tarfile is not used to read it: extended attributes and maps of sparse files grow to many times their size
there. Where a layer is, and which layers are read, is decided in io/image.py.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib

from trainchart.errors import PublishError

UNPACKED_LIMIT = 128 * 1024 * 1024
"""Bytes of a layer without compression."""
FILE_LIMIT = 16 * 1024 * 1024
_GZIP = b"\x1f\x8b"
_EXTENSIONS = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
"""Entries that describe the next one."""
_EMPTY = (tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE)
"""Entries without content: a link may state the size of what it leads to."""
_RENAMING = (b" path=", b" size=", b" GNU.sparse.")
"""Extended attributes after which an entry is not what its header states."""


def find_file(layer: bytes, path: str, name: str) -> bytes | None:
    """Return the plain file at `path` in a layer of the image `name`; None where there is none.

    Raises:
        PublishError: the layer is not a tar archive, is damaged, or is larger than the limits.
    """
    try:
        tar = _decompress(layer, name)
        return _find(tar, path, name)
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise PublishError(
            f"a layer of {name} cannot be read: {error}", hint="it is not a tar archive, or is compressed with zstd"
        ) from error


def _decompress(layer: bytes, name: str) -> bytes:
    if not layer.startswith(_GZIP):
        return layer
    with gzip.GzipFile(fileobj=io.BytesIO(layer)) as stream:
        tar = stream.read(UNPACKED_LIMIT + 1)
    if len(tar) > UNPACKED_LIMIT:
        raise PublishError(f"a layer of {name} unpacks to more than {UNPACKED_LIMIT} bytes", hint="do not use it")
    return tar


def _find(tar: bytes, path: str, name: str) -> bytes | None:
    offset = 0
    is_renamed = False
    while any(block := tar[offset : offset + tarfile.BLOCKSIZE]):
        header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        start = offset + tarfile.BLOCKSIZE
        size = 0 if header.type in _EMPTY else header.size
        if size < 0:
            raise PublishError(f"a layer of {name} is damaged: {header.name!r} states a size of {size}")
        if start + size > len(tar):
            raise PublishError(
                f"a layer of {name} is damaged: it is truncated in {header.name!r}", hint="push it again"
            )
        if header.type in _EXTENSIONS:
            is_name = header.type == tarfile.GNUTYPE_LONGNAME
            is_renamed |= is_name or any(tar.find(key, start, start + size) >= 0 for key in _RENAMING)
        elif header.type != tarfile.XGLTYPE:
            is_plain = header.isreg() and header.type != tarfile.GNUTYPE_SPARSE and not is_renamed
            if is_plain and header.name.removeprefix("./").removeprefix("/") == path:
                if size > FILE_LIMIT:
                    raise PublishError(f"{path} of {name} is larger than {FILE_LIMIT} bytes")
                return tar[start : start + size]
            is_renamed = False
        offset = start - -size // tarfile.BLOCKSIZE * tarfile.BLOCKSIZE
    return None
