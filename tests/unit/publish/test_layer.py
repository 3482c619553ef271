"""One file of an image's layer, which may be packed to fill the memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc

import pytest

from trainchart.errors import PublishError
from trainchart.publish.layer import FILE_LIMIT, UNPACKED_LIMIT, find_file

PATH = "usr/share/sbom.json"


def pack(name: str = PATH, content: bytes = b"{}", *, kind: bytes = tarfile.REGTYPE, **pax: str) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in ("usr", "usr/share"):
            folder = tarfile.TarInfo(path)
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
        entry = tarfile.TarInfo(name)
        entry.size, entry.type, entry.pax_headers = len(content), kind, pax
        archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def header(kind: bytes, size: int) -> bytes:
    """Return the header of an entry that states a size, in binary."""
    entry = tarfile.TarInfo(PATH)
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("name", [PATH, f"./{PATH}", f"/{PATH}"])
def test_file_is_found_plain_and_compressed(name: str) -> None:
    for layer in (pack(name), gzip.compress(pack(name)), pack(name, mtime="1.5", comment="x")):
        assert find_file(layer, PATH, "net") == b"{}"
        assert find_file(layer, "usr/share", "net") is None
        assert find_file(layer, "other", "net") is None


def test_entry_of_another_name_or_kind_is_passed_over() -> None:
    for layer in (pack(path="etc/other"), pack(kind=tarfile.SYMTYPE, content=b"")):
        assert find_file(layer, PATH, "net") is None


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (gzip.compress(bytes(UNPACKED_LIMIT + 1), 1), "unpacks to more than"),
        (gzip.compress(pack())[:-20], "cannot be read"),
        (b"\x28\xb5\x2f\xfd" + bytes(600), "cannot be read"),
        (b"text", "cannot be read"),
        (header(tarfile.REGTYPE, -512) + bytes(1024), "states a size of -512"),
        (header(tarfile.XHDTYPE, -512) + bytes(1024), "states a size of -512"),
        (header(tarfile.XHDTYPE, 2**40) + bytes(1024), "is truncated"),
        (header(tarfile.REGTYPE, 2**40) + bytes(1024), "is truncated"),
        (pack(content=bytes(FILE_LIMIT + 1)), "larger than"),
    ],
    ids=["bomb", "cut", "zstd", "text", "negative", "negative-pax", "large-pax", "large", "large-file"],
)
def test_layer_that_would_fill_the_memory_is_refused(layer: bytes, said: str) -> None:
    with pytest.raises(PublishError, match=said):
        find_file(layer, PATH, "net")


def test_many_extended_attributes_take_no_memory() -> None:
    records = b"".join(b"13 %07d=x\n" % number for number in range(500_000))
    bomb = header(tarfile.XGLTYPE, len(records)) + records + bytes(-len(records) % 512)
    layer = gzip.compress(bomb + pack(), 1)
    tracemalloc.start()
    try:
        assert find_file(layer, PATH, "net") == b"{}"
        assert tracemalloc.get_traced_memory()[1] < UNPACKED_LIMIT + 4 * len(bomb)
    finally:
        tracemalloc.stop()
