"""What trainchart reads from a chart archive is what Helm installs from it, whatever somebody did to the bytes."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import helm_python
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.archive.pack import open_archive
from trainchart.archive.read import parse_archive
from trainchart.errors import ToolError

pytestmark = pytest.mark.helm

BLOCK = tarfile.BLOCKSIZE
CHART = b"apiVersion: v2\nname: mnist\nversion: 0.1.0\n"
LONG = "templates/" + "a" * 120 + ".yaml"
FILES = {"Chart.yaml": CHART, "templates/a.yaml": b"a: 1\n", LONG: b"b: 2\n", "templates/networkpolicy.yaml": b"c: 3\n"}
EVIL = b"d: 4\n"


def tar_of(files: dict[str, bytes], fmt: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=fmt) as tar:
        for path, content in files.items():
            tar.addfile(entry(path, content), io.BytesIO(content))
    return buffer.getvalue()


def entry(path: str, content: bytes = b"") -> tarfile.TarInfo:
    info = tarfile.TarInfo(f"mnist/{path}")
    info.size = len(content)
    return info


def seen_by_helm(archive: bytes) -> dict[str, str]:
    """Every template, and every other file but Chart.yaml, by its path."""
    chart = helm_python.Chart.load_archive(archive)
    return {file["name"]: file["data"] for file in (*chart.templates, *chart.files)}


def seen_here(archive: bytes) -> dict[str, str]:
    files = parse_archive(archive).files
    return {path: content.decode(errors="replace") for path, content in files.items() if path != "Chart.yaml"}


def checked(block: bytes) -> bytes:
    """A header with the checksum that it should have."""
    blank = block[:148] + b" " * 8 + block[156:]
    return block[:148] + b"%06o\0 " % sum(blank) + block[156:]


def find_header(tar: bytes, name: str) -> int:
    wanted = f"mnist/{name}".encode()
    return next(at for at in range(0, len(tar), BLOCK) if tar[at : at + 100].split(b"\0")[0] == wanted)


def patched(tar: bytes, name: str, at: int, content: bytes) -> bytes:
    start = find_header(tar, name)
    block = tar[start : start + BLOCK]
    return tar[:start] + checked(block[:at] + content + block[at + len(content) :]) + tar[start + BLOCK :]


def pax(kind: bytes, content: bytes) -> bytes:
    info = tarfile.TarInfo("mnist/pax")
    info.type, info.size = kind, len(content)
    padding = b"\0" * (-len(content) % BLOCK)
    return checked(info.tobuf(tarfile.USTAR_FORMAT)) + content + padding


def padded_with(header: bytes, size: int, more: bytes) -> bytes:
    """An extended header of so many bytes with more in its padding, behind what its size says."""
    end = BLOCK + size
    return header[:end] + more[: len(header) - end] + header[end + len(more) :]


def two_names(seen: str, hidden: str) -> bytes:
    content, more = a_record("path", f"mnist/{seen}"), a_record("path", f"mnist/{hidden}")
    return padded_with(pax(b"x", content), len(content), more)


def long_name(name: str, size: int) -> bytes:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, size
    return checked(info.tobuf(tarfile.GNU_FORMAT)) + f"mnist/{name}".encode().ljust(BLOCK, b"\0")


def without_end(tar: bytes) -> bytes:
    content = tar.rstrip(b"\0")
    return content + b"\0" * (-len(content) % BLOCK)


def a_record(key: str, value: str) -> bytes:
    text = f" {key}={value}\n".encode()
    length = len(text) + 2
    return f"{length if length < 100 else length + 1}".encode() + text


PLAIN = tar_of(FILES, tarfile.GNU_FORMAT)
USTAR = tar_of({path: content for path, content in FILES.items() if path != LONG}, tarfile.USTAR_FORMAT)
FAR = find_header(USTAR, "templates/networkpolicy.yaml")
ATTACKS: dict[str, Callable[[], bytes]] = {
    # Go reads on after the first gzip member.
    "a second gzip member": lambda: (
        gzip.compress(without_end(tar_of(FILES))) + gzip.compress(tar_of({"templates/evil.yaml": EVIL}))
    ),
    "bytes after the gzip stream": lambda: gzip.compress(USTAR) + b"more",
    "a mode that says folder": lambda: gzip.compress(patched(USTAR, "templates/networkpolicy.yaml", 100, b"0040644\0")),
    "a mode that says link": lambda: gzip.compress(patched(USTAR, "templates/networkpolicy.yaml", 100, b"0120644\0")),
    "a header of 1979 with a prefix": lambda: gzip.compress(
        patched(patched(USTAR, "templates/a.yaml", 257, b"\0" * 8), "templates/a.yaml", 345, b"mnist/templates")
    ),
    "a tar without its end": lambda: gzip.compress(USTAR[:FAR]),
    "a damaged header in the middle": lambda: gzip.compress(USTAR[:FAR] + b"x" * BLOCK + USTAR[FAR:]),
    "an end in the middle": lambda: gzip.compress(USTAR[:FAR] + b"\0" * 2 * BLOCK + USTAR[FAR:]),
    "a large extended header": lambda: gzip.compress(
        USTAR[:FAR] + pax(b"x", a_record("comment", "x" * 2_000_000)) + USTAR[FAR:]
    ),
    "a global name": lambda: gzip.compress(pax(b"g", a_record("path", "mnist/templates/b.yaml")) + USTAR),
    "a global header after a name": lambda: gzip.compress(
        USTAR[:FAR]
        + pax(b"x", a_record("path", "mnist/CHANGELOG.md"))
        + pax(b"g", a_record("comment", "0" * 40))
        + USTAR[FAR:]
    ),
    "a name in the padding of another": lambda: gzip.compress(
        USTAR[:FAR] + two_names("templates/evil.yaml", "CHANGELOG.md") + USTAR[FAR:]
    ),
    "a long name that ends in the padding": lambda: gzip.compress(
        USTAR[:FAR] + long_name("templates/networkpolicy.yaml", len("mnist/templates/net")) + USTAR[FAR:]
    ),
    "a size beside the size": lambda: gzip.compress(USTAR[:FAR] + pax(b"x", a_record("size", "0")) + USTAR[FAR:]),
    "a device number in the wrong base": lambda: gzip.compress(patched(USTAR, "templates/a.yaml", 329, b"\x81")),
    "a name in another encoding": lambda: gzip.compress(patched(USTAR, "templates/a.yaml", 6, b"\x80")),
    "a time that is no number": lambda: gzip.compress(pax(b"x", a_record("mtime", "abc")) + USTAR),
    "an owner above all numbers": lambda: gzip.compress(pax(b"x", a_record("uid", "9" * 30)) + USTAR),
    "an owner's name with a null character": lambda: gzip.compress(pax(b"x", a_record("uname", "a\0b")) + USTAR),
    "a time above all numbers": lambda: gzip.compress(patched(USTAR, "Chart.yaml", 136, b"\x80" + b"\xff" * 11)),
    "a number with an underline": lambda: gzip.compress(patched(USTAR, "templates/a.yaml", 124, b"0000000_5 \0\0")),
    "a file that .helmignore drops": lambda: gzip.compress(
        tar_of({**FILES, ".helmignore": b"evil*\n", "evil.yaml": EVIL})
    ),
    "a hidden template": lambda: gzip.compress(tar_of({**FILES, "templates/.evil.yaml": EVIL})),
    "a file over Helm's limit": lambda: gzip.compress(tar_of({**FILES, "data.bin": bytes(5 * 1024 * 1024 + 1)})),
    "a name that begins with two dots": lambda: gzip.compress(tar_of({**FILES, "..data/x": EVIL})),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_may_be_read_in_two_ways_is_refused(attack: str) -> None:
    with pytest.raises(ToolError):
        open_archive(ATTACKS[attack]())


@pytest.mark.parametrize("fmt", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_common_format_is_read_as_helm_does(fmt: int) -> None:
    files = {path: content for path, content in FILES.items() if fmt != tarfile.USTAR_FORMAT or path != LONG}
    archive = gzip.compress(tar_of({**files, "README.md": "größer".encode()}, fmt))
    assert seen_here(archive) == seen_by_helm(archive)
    assert seen_here(archive)["README.md"] == "größer"


@pytest.mark.parametrize("program", ["helm3", "helm4", "tar"])
def test_what_other_programs_pack_is_accepted(program: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    chart = tmp_path / "mnist"
    for path, content in FILES.items():
        (chart / path).parent.mkdir(parents=True, exist_ok=True)
        (chart / path).write_bytes(content)
    packed = tmp_path / "mnist-0.1.0.tgz"
    command = [shutil.which("tar") or "tar", "-czf", str(packed), "-C", str(tmp_path), "mnist"]
    if program != "tar":
        command = [str(request.getfixturevalue(program)), "package", str(chart), "-d", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    assert seen_here(packed.read_bytes()) == seen_by_helm(packed.read_bytes())


DAMAGE = st.tuples(
    st.integers(0, 40),  # which block
    st.sampled_from(["byte", "byte", "field", "cut", "twice", "blank"]),
    st.integers(0, BLOCK - 1),
    st.binary(min_size=12, max_size=12),
    st.booleans(),  # whether the checksum is put right
)
FIELDS = ((100, 8), (108, 8), (116, 8), (124, 12), (136, 12), (156, 1), (257, 8), (329, 8), (337, 8), (345, 12))


def damaged(tar: bytes, damage: tuple[int, str, int, bytes, bool]) -> bytes:
    block, action, number, content, is_checked = damage
    start = block * BLOCK % (len(tar) or 1)
    before, hit, after = tar[:start], tar[start : start + BLOCK], tar[start + BLOCK :]
    if action == "cut":
        return before
    if action == "twice":
        return before + hit + hit + after
    at, length = (number, 1) if action == "byte" else FIELDS[number % len(FIELDS)]
    changed = bytes(BLOCK) if action == "blank" else hit[:at] + content[:length] + hit[at + length :]
    return before + (checked(changed) if is_checked else changed) + after


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["gnu", "ustar", "pax"]), st.lists(DAMAGE, max_size=3))
def test_a_damaged_archive_is_read_as_helm_does_or_refused(
    format_: str, damages: list[tuple[int, str, int, bytes, bool]]
) -> None:
    tar = {"gnu": PLAIN, "ustar": USTAR, "pax": tar_of(FILES)}[format_]
    for damage in damages:
        tar = damaged(tar, damage)
    require_same_reading(tar)


ATTRIBUTE = st.tuples(
    st.sampled_from(["mtime", "atime", "ctime", "uid", "gid", "uname", "gname", "path", "comment", "SCHILY.dev"]),
    st.text("0123456789.-+_eax \0", max_size=22) | st.text(st.characters(codec="utf-8"), max_size=9),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(ATTRIBUTE, min_size=1, max_size=2), st.lists(ATTRIBUTE, max_size=1))
def test_extended_attributes_are_read_as_helm_does_or_refused(
    attributes: list[tuple[str, str]], hidden: list[tuple[str, str]]
) -> None:
    content, more = (b"".join(a_record(key, value) for key, value in each) for each in (attributes, hidden))
    require_same_reading(USTAR[:FAR] + padded_with(pax(b"x", content), len(content), more) + USTAR[FAR:])


def require_same_reading(tar: bytes) -> None:
    archive = gzip.compress(tar, compresslevel=1)
    try:
        here = seen_here(archive)
    except ToolError:
        return
    try:
        there = seen_by_helm(archive)
    except helm_python.HelmError as error:
        # Damaged files of a chart are refused elsewhere, but an archive that nobody can unpack is never published.
        assert "tar" not in str(error)
        return
    assert here == there
