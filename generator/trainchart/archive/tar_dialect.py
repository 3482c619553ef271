"""Refuses tars that Python and Go may read differently: what is verified here must be what Helm installs.

Helm reads charts with Go's archive/tar, trainchart with Python's tarfile, and each forgives what the other does not:
Python stops at a damaged header without an error, takes the prefix of a header that has none, and applies global
headers; Go takes the kind of a file from its mode. So only what every tool that packs charts writes is let through:
headers of POSIX (ustar, pax) and GNU tar, for plain files and folders, up to the marker of the end. Pure.

Sources: archive/tar/reader.go of Go, Lib/tarfile.py of Python, pkg/chart/loader/archive/archive.go of Helm.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from trainchart.errors import ToolError

_BLOCK = tarfile.BLOCKSIZE
_POSIX, _GNU = b"ustar\x0000", b"ustar  \x00"
_FOLDER = tarfile.DIRTYPE
_LARGEST_EXTENSION = 1024 * 1024
"""Bytes; Go refuses a longer name or a longer list of extended attributes."""
_OCTAL = re.compile(rb" *[0-7]+[ \0]*|[ \0]*")
_UNUSED_NUMBERS = ((108, 8), (116, 8), (136, 12), (329, 8), (337, 8))
"""Where owner, group, time and device stand: a chart has no use for them, but a malformed one ends Python's reading."""
_KIND = 0o170000
_KINDS = {tarfile.REGTYPE: (0, 0o100000), tarfile.DIRTYPE: (0, 0o040000)}
"""Type flag → the kinds that a mode may state: Go believes the mode. The flag of tars before POSIX is not among them: a
name that ends in a slash makes a folder of it, and Python goes by the header's name, Go by the extended attributes."""
_LARGEST_BINARY = 2**62
_RECORD = re.compile(rb"([1-9][0-9]{0,6}) ([^=\n\0]+)=")
_KEYS = re.compile(rb"path|[acm]time|[ug]id|[ug]name|comment|LIBARCHIVE\..+|SCHILY\.(?:dev|ino|nlink|xattr\..+)")
"""Extended attributes that change nothing of a chart but a file's name."""
_VALUES = {
    **dict.fromkeys((b"mtime", b"atime", b"ctime"), re.compile(rb"-?[0-9]{1,18}(?:\.[0-9]*)?")),
    **dict.fromkeys((b"uid", b"gid"), re.compile(rb"[0-9]{1,18}")),
    **dict.fromkeys((b"uname", b"gname"), re.compile(rb"[^\0]*")),
    b"path": re.compile(rb"[^\0]+"),
}
"""What both read: of other numbers Go refuses the whole archive, and Python makes 0."""


@dataclass(frozen=True)
class _Header:
    """One block of the tar that begins an entry."""

    block: bytes
    name: str
    size: int = 0
    mode: int = 0

    @property
    def kind(self) -> bytes:
        return self.block[156:157]


def count_plain_entries(tar: bytes) -> int:
    """Return the number of files and folders in `tar`. Raises ToolError where not all tools read it alike."""
    entries = 0
    extensions: set[bytes] = set()
    for header, content in _walk(tar):
        if header.kind == tarfile.XGLTYPE:
            # git archive writes the commit here. Whatever else stands there, Python believes and Go does not. A name
            # that came before goes to the next file in Python, and is forgotten in Go.
            if extensions:
                raise _refuse(header, "comes between a name and its file")
            _require_attributes(header, content, only=b"comment")
        elif header.kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME):
            if extensions:
                raise _refuse(header, "has two names")
            extensions.add(header.kind)
            if header.kind == tarfile.XHDTYPE:
                _require_attributes(header, content)
        elif header.kind in _KINDS:
            entries += 1
            extensions.clear()
            if header.mode & _KIND not in _KINDS[header.kind]:
                raise _refuse(header, f"states the mode {header.mode:o}, which is another kind of file")
            if header.kind == _FOLDER and header.size:
                raise _refuse(header, "is a folder with content")
        else:
            raise _refuse(header, "is not a plain file or folder")
    return entries


def _walk(tar: bytes) -> Iterator[tuple[_Header, bytes]]:
    """Yield each header with what follows it, up to the end marker. Raises ToolError where there is none."""
    offset = 0
    while True:
        block = tar[offset : offset + _BLOCK]
        if not any(block):
            break
        header = _parse_header(block)
        offset += _BLOCK
        content = tar[offset : offset + header.size]
        if len(content) < header.size:
            break
        end = offset + -(-header.size // _BLOCK) * _BLOCK
        if header.kind not in _KINDS and any(tar[offset + header.size : end]):
            # Python reads names and attributes up to the end of the block, Go as far as the size says.
            raise _refuse(header, "has data after its end")
        yield header, content
        offset = end
    rest = tar[offset:]
    if len(rest) < 2 * _BLOCK or any(rest):
        raise ToolError("the archive is truncated, or has data after its end", hint="fetch or pack it again")


def _parse_header(block: bytes) -> _Header:
    name = block[:100].split(b"\0")[0].decode(errors="replace")
    header = _Header(block, name)
    if len(block) < _BLOCK or block[257:265] not in (_POSIX, _GNU):
        raise _refuse(header, "has a header that is neither POSIX nor GNU")
    if any(block[500:]) or (block[257:265] == _GNU and any(block[345:500])):
        raise _refuse(header, "has a header with fields of another format")
    for start, length in _UNUSED_NUMBERS:
        if block[start] != 0x80:  # the mark of a number in binary
            _read_number(header, start, length)
        elif int.from_bytes(block[start + 1 : start + length], "big") >= _LARGEST_BINARY:
            raise _refuse(header, "has a header with a number that is too large")
    total = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if _read_number(header, 148, 8) != total:
        raise _refuse(header, "has a header with a wrong checksum")
    size = _read_number(header, 124, 12)
    mode = _read_number(header, 100, 8)
    if header.kind != tarfile.REGTYPE and size > _LARGEST_EXTENSION:
        raise _refuse(header, f"has a header of {size} bytes")
    return _Header(block, name, size, mode)


def _read_number(header: _Header, start: int, length: int) -> int:
    field = header.block[start : start + length]
    if not _OCTAL.fullmatch(field):
        raise _refuse(header, f"has a header with the number {field!r}")
    return int(field.strip(b" \0") or b"0", 8)


def _require_attributes(header: _Header, content: bytes, only: bytes = b"") -> None:
    """Raise ToolError where extended attributes are malformed, repeated, or could mean another file."""
    seen: set[bytes] = set()
    while content:
        found = _RECORD.match(content)
        length = int(found[1]) if found else 0
        record, content = content[:length], content[length:]
        if found is None or len(record) < length or length <= found.end() or not record.endswith(b"\n"):
            raise _refuse(header, "has malformed extended attributes")
        key, value = found[2], record[found.end() : -1]
        if key in seen or not (key == only if only else _KEYS.fullmatch(key)):
            raise _refuse(header, f"has the extended attribute {key.decode(errors='replace')!r}")
        if (allowed := _VALUES.get(key)) and not allowed.fullmatch(value):
            shown = value[:40].decode(errors="replace")
            raise _refuse(header, f"has the value {shown!r} for the extended attribute {key.decode()}")
        seen.add(key)


def _refuse(header: _Header, fault: str) -> ToolError:
    return ToolError(f"the archive holds {header.name[:60]!r}, which {fault}", hint="pack the chart with: helm package")
