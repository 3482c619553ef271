"""NumPy's files are read without NumPy: what NumPy writes comes back as its own `tolist` says it."""

from __future__ import annotations

import contextlib
import io
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.serving.numpy_files import parse_npy, parse_npz

LIMIT = 1_000_000


def dump(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def dump_all(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


KINDS = ["f2", "f4", ">f8", "i1", "<i2", ">i4", "i8", "u1", "u2", "u4", "u8", "?"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_come_back(kind: str, shape: tuple[int, ...], order: Any) -> None:
    array = np.arange(int(np.prod(shape)), dtype="i8").reshape(shape).astype(kind, order=order)
    assert parse_npy(dump(array)) == array.tolist()


def test_strings_come_back() -> None:
    assert parse_npy(dump(np.array(["a", "long ä", ""]))) == ["a", "long ä", ""]
    assert parse_npy(dump(np.array([b"a", b"\xff"]))) == ["a", {"b64": "/w=="}]


def test_arrays_of_an_archive_have_names() -> None:
    assert parse_npz(dump_all(a=np.ones(2), b=np.zeros((1, 1))), LIMIT) == {"a": [1.0, 1.0], "b": [[0.0]]}


def with_shape(shape: bytes) -> bytes:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + b"}"
    return b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a numpy.save file"),
        (dump(np.zeros(2))[:-1], "15 bytes of values, but its header says 16"),
        (dump(np.array([{}], dtype=object), allow_pickle=True), "of the type |O cannot be sent as JSON"),
        (dump(np.zeros(2, np.complex64)), "of the type <c8 cannot be sent"),
        (dump(np.zeros(2, np.longdouble)), "numbers of the type <f16 cannot be sent"),
        (dump(np.zeros(2, [("a", "f4")])), "cannot be sent as JSON"),
        (dump(np.zeros((0, 3))), "it has no values"),
        (dump(np.zeros(2)).replace(b"(2,)", b"(9,)"), "its header says 72"),
        (dump(np.zeros(2)).replace(b"{", b"("), "header cannot be read"),
        (with_shape(b"(-1,)"), "its shape is not a valid"),
        (with_shape(b"(" + b"9" * 4000 + b"," + b"9" * 4000 + b",)"), "its shape is not a valid"),
        (dump(np.zeros((400_000,) + (1,) * 63, "u1")), "more than 20000000 values, counting lists too"),
        (with_shape(b"(9223372036854775807,)").replace(b"<f4", b"|S0"), "more than 20000000 values"),
    ],
)
def test_what_json_cannot_hold_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("|", r"\|")):
        parse_npy(content)


def test_an_archive_that_unpacks_to_too_much_is_refused() -> None:
    with pytest.raises(ValueError, match="unpacked, it is larger than 1000000 bytes"):
        parse_npz(dump_all(a=np.zeros(LIMIT)), LIMIT)


def test_the_arrays_of_an_archive_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainchart.serving.numpy_files._MOST_ENTRIES", 100)
    wide = np.zeros((10, 1, 1, 1, 1, 1))
    assert parse_npz(dump_all(a=wide), LIMIT)
    with pytest.raises(ValueError, match="more than 100 values, counting lists too"):
        parse_npz(dump_all(a=wide, b=wide), LIMIT)


def test_an_archive_without_arrays_is_refused() -> None:
    file = io.BytesIO()
    zipfile.ZipFile(file, "w").close()
    with pytest.raises(ValueError, match="contains no array"):
        parse_npz(file.getvalue(), LIMIT)


SAVED = {"npy": dump(np.ones((2, 3))), "npz": dump_all(a=np.ones((2, 3)))}


@given(st.data())
@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_a_damaged_file_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    content = bytearray(SAVED[kind])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        parse_npy(bytes(content)) if kind == "npy" else parse_npz(bytes(content), LIMIT)
