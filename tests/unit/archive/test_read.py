"""Hostile and damaged archives are refused before anything is believed."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from trainchart.archive import read
from trainchart.archive.read import parse_archive
from trainchart.errors import ToolError

CHART = ("mnist/Chart.yaml", b"name: mnist\n")


def archive_of(*entries: tuple[str, bytes | tarfile.TarInfo]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in entries:
            if isinstance(content, tarfile.TarInfo):
                content.name = name
                tar.addfile(content)
            else:
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def special(kind: bytes, target: str = "/etc/passwd") -> tarfile.TarInfo:
    info = tarfile.TarInfo()
    info.type = kind
    info.linkname = target
    return info


def test_files_come_back_without_the_top_folder() -> None:
    data = archive_of(("mnist", special(tarfile.DIRTYPE)), CHART, ("mnist/templates/a.yaml", b"a"))
    unpacked = parse_archive(data)
    assert unpacked.folder == "mnist"
    assert unpacked.files == {"Chart.yaml": b"name: mnist\n", "templates/a.yaml": b"a"}


@pytest.mark.parametrize(
    "name",
    ["/etc/cron.d/x", "../x", "mnist/../../x", "mnist/./x", "mnist//x", "mnist\\..\\x", "C:/x", "mnist/C:/x", "."],
)
def test_paths_that_lead_outside(name: str) -> None:
    with pytest.raises(ToolError, match="unsafe path"):
        parse_archive(archive_of(CHART, (name, b"")))


# The flag of plain files before POSIX: whether it is a folder, Python and Go find out by different names.
@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.AREGTYPE]
)
def test_links_devices_and_old_flags(kind: bytes) -> None:
    with pytest.raises(ToolError, match="not a plain file"):
        parse_archive(archive_of(CHART, ("mnist/x", special(kind))))


def test_a_sparse_file_is_not_unfolded() -> None:
    """It states a size of its own, which no limit of what was unpacked sees."""
    info = special(tarfile.REGTYPE, "")
    info.pax_headers = {f"GNU.sparse.{key}": value for key, value in (("map", "0,1"), ("size", str(2**40)))}
    info.pax_headers |= {"GNU.sparse.major": "0", "GNU.sparse.minor": "1"}
    with pytest.raises(ToolError, match=r"extended attribute 'GNU\.sparse\.map'"):
        parse_archive(archive_of(CHART, ("mnist/x", info)))


def test_headers_before_headers() -> None:
    one = tarfile.TarInfo("././@LongLink")
    one.type, one.size = tarfile.GNUTYPE_LONGNAME, 1
    header = one.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(tarfile.BLOCKSIZE, b"\0")
    with pytest.raises(ToolError, match="which has two names"):
        parse_archive(gzip.compress(header * 5_000 + gzip.decompress(archive_of(CHART))))


def test_two_top_folders_repeated_names_and_no_chart() -> None:
    with pytest.raises(ToolError, match="exactly one folder, found mnist, other"):
        parse_archive(archive_of(CHART, ("other/x", b"")))
    with pytest.raises(ToolError, match="twice"):
        parse_archive(archive_of(CHART, CHART))
    with pytest.raises(ToolError, match=r"no Chart\.yaml"):
        parse_archive(archive_of(("mnist/x", b"")))
    with pytest.raises(ToolError, match="exactly one folder, found none"):
        parse_archive(archive_of())


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("below", ["mnist/a/b", "mnist/a/b/c", "mnist/a"])
def test_a_file_and_a_folder_of_one_name(below: str, first: bool) -> None:
    other = (below, special(tarfile.DIRTYPE) if below == "mnist/a" else b"")
    entries = [("mnist/a.b", b""), ("mnist/a", b""), other]
    with pytest.raises(ToolError, match="'a', which is both a file and a folder"):
        parse_archive(archive_of(CHART, *(entries if first else reversed(entries))))


@pytest.mark.parametrize(
    ("flags", "before"), [(8, b""), (16, b""), (24, b"a.tar\0"), (12, b"\3\0\0ab"), (20, b"\2\0ab")]
)
def test_gzip_with_a_longer_name_than_go_reads(flags: int, before: bytes) -> None:
    tar = archive_of(CHART)
    body = tar[tar.index(b"\0", 10) + 1 :] if tar[3] & 8 else tar[10:]
    for length, is_read in ((511, True), (512, False), (10**6, False)):
        data = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + before + b"x" * length + b"\0" + body
        if is_read:
            assert parse_archive(data).folder == "mnist"
        else:
            with pytest.raises(ToolError, match="longer than 511 bytes"):
                parse_archive(data)
    with pytest.raises(ToolError, match="truncated"):
        parse_archive(b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + before + b"x")


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "UNPACKED_LIMIT", 3 * 1024 * 1024)
    data = archive_of(CHART, ("mnist/zeros", b"\0" * 8 * 1024 * 1024))
    assert len(data) < 20_000
    with pytest.raises(ToolError, match="unpacks to more than"):
        parse_archive(data)
    monkeypatch.setattr(read, "ENTRY_LIMIT", 3)
    with pytest.raises(ToolError, match="more than 3 entries"):
        parse_archive(archive_of(CHART, *((f"mnist/{number}", b"") for number in range(3))))


def test_damaged_archives() -> None:
    data = archive_of(CHART, ("mnist/x", bytes(range(256)) * 40))
    for damaged, message in (
        (b"", "truncated"),
        (data[:-20], "truncated"),
        (b"not gzip at all", "not a gzip archive"),
        (gzip.compress(b"no tar" * 200), "neither POSIX nor GNU"),
        (gzip.compress(gzip.decompress(data)[:1600]), "truncated"),
    ):
        with pytest.raises(ToolError, match=message):
            parse_archive(damaged)
