"""From the bytes of a chart archive to its files, trusting nothing inside.

An archive may come from anywhere, so whatever could write outside a folder or eat the memory is refused:
absolute and parent paths, links and devices, several top folders, repeated names, and decompression bombs.
So is what Helm would read differently (tar_dialect.py), or not at all.
"""

from __future__ import annotations

import bisect
import io
import re
import tarfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainchart.archive.ignore import drop_ignored
from trainchart.archive.tar_dialect import count_plain_entries
from trainchart.errors import ToolError

UNPACKED_LIMIT = 100 * 1024 * 1024
"""Bytes; Helm's own limit of a decompressed chart."""
FILE_LIMIT = 5 * 1024 * 1024
"""Bytes; Helm's own limit of one file in it."""
ENTRY_LIMIT = 10_000
_GZIP_HEADER = 10
_GZIP_NAME_LIMIT = 511
"""Bytes that Go reads of a name: compress/gzip/gunzip.go."""
_DRIVE = re.compile(r"[A-Za-z]:/")
"""Helm takes it for a path of Windows that leads outside, also below the chart's folder."""
_CHUNK = 1024 * 1024


@dataclass(frozen=True)
class UnpackedChart:
    """The files of an archive by their path inside the chart folder, which is called `folder`."""

    folder: str
    files: Mapping[str, bytes]


def parse_archive(data: bytes) -> UnpackedChart:
    """Return the files of the .tgz `data`. Raises ToolError for what is damaged, hostile or not a chart."""
    tar = _decompress(data)
    entries = count_plain_entries(tar)
    folders: set[str] = set()
    folders_below: set[str] = set()
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(tar), mode="r:") as archive:
            for number, entry in enumerate(archive):
                if number >= ENTRY_LIMIT:
                    raise ToolError(f"the archive holds more than {ENTRY_LIMIT} entries")
                folder, path = _safe_path(entry.name)
                folders.add(folder)
                if entry.isdir():
                    folders_below.add(path)
                    continue
                # A sparse file would unfold to whatever size it states.
                is_plain = entry.isreg() and not entry.issparse() and not entry.name.endswith("/")
                content = archive.extractfile(entry) if is_plain else None
                if content is None:
                    raise ToolError(f"the archive holds {entry.name!r}, which is not a plain file")
                if not path or path in files:
                    raise ToolError(f"the archive holds {entry.name!r} twice, or outside a chart folder")
                if entry.size > FILE_LIMIT:
                    raise ToolError(f"the archive holds {entry.name!r}, larger than Helm's limit of {FILE_LIMIT} bytes")
                files[path] = content.read()
            if len(archive.getmembers()) != entries:
                raise ToolError("the archive is damaged: a header of it cannot be read", hint="pack it again")
    except (tarfile.TarError, EOFError, ValueError, RecursionError) as error:
        raise ToolError(f"the archive is damaged: {error}") from error
    if len(folders) != 1:
        found = ", ".join(sorted(folders)) or "none"
        raise ToolError(f"a chart archive holds exactly one folder, found {found}")
    _require_one_kind(files, folders_below)
    if "Chart.yaml" not in files:
        raise ToolError("the archive is not a chart: it holds no Chart.yaml")
    return UnpackedChart(folders.pop(), dict(sorted(files.items())))


def _require_one_kind(files: Mapping[str, bytes], folders: Iterable[str]) -> None:
    """Refuse a file that is a folder, too: no disk holds both, so that Helm cannot unpack it."""
    paths = sorted({*files, *(f"{folder}/" for folder in folders)})
    for path in files:
        # The first one that is below it, if any is.
        place = bisect.bisect_left(paths, f"{path}/")
        if place < len(paths) and paths[place].startswith(f"{path}/"):
            raise ToolError(f"the archive holds {path!r}, which is both a file and a folder")


def parse_packed_chart(data: bytes) -> UnpackedChart:
    """Return the files of a .tgz whose content is to be compared: one that .helmignore has been applied to.

    Helm applies .helmignore to folders only, so it would install what a comparison passes over.

    Raises ToolError for files that its .helmignore leaves out, and as parse_archive does.
    """
    chart = parse_archive(data)
    ignored = sorted(chart.files.keys() - drop_ignored(chart.files).keys())
    if ignored:
        raise ToolError(
            f"the archive holds {ignored[0]!r}, which its .helmignore leaves out", hint="pack it with: helm package"
        )
    return chart


def _decompress(data: bytes) -> bytes:
    """Undo gzip in steps, so that a bomb is noticed before it fills the memory."""
    _require_short_names(data)
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    parts: list[bytes] = []
    size = 0
    pending = data
    try:
        while pending and not stream.eof:
            part = stream.decompress(pending, _CHUNK)
            pending = stream.unconsumed_tail
            size += len(part)
            if size > UNPACKED_LIMIT:
                raise ToolError(f"the archive unpacks to more than {UNPACKED_LIMIT} bytes")
            parts.append(part)
    except zlib.error as error:
        raise ToolError(f"not a gzip archive, or a damaged one: {error}") from error
    if not stream.eof:
        raise ToolError("the archive is truncated", hint="fetch or pack it again")
    # Go reads a second gzip member as more of the same tar.
    if pending or stream.unused_data:
        raise ToolError("the archive has data after its end", hint="fetch or pack it again")
    return b"".join(parts)


def _require_short_names(data: bytes) -> None:
    """Refuse a name or a comment before compressed data that Go does not read."""
    flags = data[3] if len(data) > _GZIP_HEADER else 0
    start = _GZIP_HEADER
    if flags & 4:  # extra fields, behind their length
        start += 2 + int.from_bytes(data[start : start + 2], "little")
    for _ in range((flags >> 3 & 1) + (flags >> 4 & 1)):
        end = data.find(b"\0", start, start + _GZIP_NAME_LIMIT + 1)
        if end == -1 and len(data) <= start + _GZIP_NAME_LIMIT:
            return  # cut off
        if end == -1:
            raise ToolError(
                f"its gzip header has a name longer than {_GZIP_NAME_LIMIT} bytes", hint="pack it again: helm package"
            )
        start = end + 1


def is_safe_name(path: str) -> bool:
    """Say whether every reader makes the same file of a path, and none that lies outside."""
    # Python and Go make different names of bytes that are no text.
    return path.isprintable() and "\\" not in path and not {"", ".", ".."} & {*path.split("/")}


def _safe_path(name: str) -> tuple[str, str]:
    """Split an entry's name into top folder and path below it; ToolError where it could lead outside."""
    parts = name.rstrip("/").split("/")
    # Helm takes whatever begins with two dots for a path that leads outside.
    if (
        not is_safe_name("/".join(parts))
        or "/".join(parts[1:]).startswith("..")
        or (len(parts[0]) > 1 and parts[0][1] == ":")
        or _DRIVE.match("/".join(parts[1:]))
    ):
        raise ToolError(f"the archive holds the unsafe path {name!r}")
    return parts[0], "/".join(parts[1:])
