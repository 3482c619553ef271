"""NumPy's files .npy and .npz as plain lists, without NumPy, and without the pickles that could run programs. Pure."""

from __future__ import annotations

import ast
import base64
import io
import itertools
import operator
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

_MAGIC = b"\x93NUMPY"
_HEADER_LIMIT = 10_000
_MOST_DIMENSIONS = 64
_LARGEST_SIZE = 2**63 - 1
_MOST_ENTRIES = 20_000_000
"""Of all lists of a file together, lists in lists included."""
_NUMBERS = {
    **{("f", size): code for size, code in ((2, "e"), (4, "f"), (8, "d"))},
    **{("i", size): code for size, code in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))},
    **{("u", size): code for size, code in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))},
    ("b", 1): "?",
}
"""Kind and size of a type → its letter in `struct`."""
_TYPE = re.compile(r"(?P<order>[<>|=])(?P<kind>[fiubSU])(?P<size>[0-9]{1,9})")
_BAD_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError, struct.error)


def parse_npz(content: bytes, limit: int) -> dict[str, Any]:
    """Return the arrays of a .npz by name; unpacked, they may take `limit` bytes. Raises ValueError."""
    found: dict[str, Any] = {}
    left, entries = limit, 0
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for entry in archive.infolist():
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise ValueError("it is not compressed like a numpy.savez file")
                with archive.open(entry) as file:
                    packed = file.read(left + 1)
                left -= len(packed)
                if left < 0:
                    raise ValueError(f"unpacked, it is larger than {limit} bytes")
                found[entry.filename.removesuffix(".npy")], more = _parse(packed, _MOST_ENTRIES - entries)
                entries += more
    except _BAD_ZIP as error:
        raise ValueError(f"it is not a numpy.savez file: {error}") from error
    if not found:
        raise ValueError("it contains no array")
    return found


def parse_npy(content: bytes) -> Any:
    """Return the array of a .npy as nested lists, bytes that are not text as {"b64": …}. Raises ValueError."""
    return _parse(content, _MOST_ENTRIES)[0]


def _parse(content: bytes, most: int) -> tuple[Any, int]:
    """Return the array, and how many entries its lists have together, of which there may be `most`."""
    header, data = _split(content)
    shape, kind = header.get("shape"), header.get("descr")
    if not isinstance(shape, tuple) or not all(isinstance(size, int) and 0 <= size <= _LARGEST_SIZE for size in shape):
        raise ValueError("its shape is not a valid array shape")
    if len(shape) > _MOST_DIMENSIONS or 0 in shape:
        raise ValueError("it has no values, or too many dimensions")
    counts = list(itertools.accumulate(shape, operator.mul))
    entries = sum(counts)
    # A dimension of size 1 costs as many lists as there are values.
    if entries > most:
        raise ValueError(f"it holds more than {_MOST_ENTRIES} values, counting lists too")
    values = _read_values(kind, data, counts[-1] if counts else 1)
    return _fold(values, shape, is_fortran=header.get("fortran_order") is True), entries


def _split(content: bytes) -> tuple[Mapping[str, Any], bytes]:
    if not content.startswith(_MAGIC) or len(content) < 12:
        raise ValueError("it is not a numpy.save file")
    size_of_length = 2 if content[6] == 1 else 4
    start = 8 + size_of_length
    length = int.from_bytes(content[8:start], "little")
    if length > _HEADER_LIMIT:
        raise ValueError("its header is too long")
    try:
        header = ast.literal_eval(content[start : start + length].decode("utf-8").strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("its header cannot be read") from error
    if not isinstance(header, dict):
        raise ValueError("its header cannot be read")
    return header, content[start + length :]


def _read_values(kind: object, data: bytes, count: int) -> list[Any]:
    found = _TYPE.fullmatch(kind) if isinstance(kind, str) else None
    if found is None or not int(found["size"]):
        advice = "save it as numbers, booleans or strings"
        raise ValueError(f"arrays of the type {str(kind)[:60]} cannot be sent as JSON: {advice}")
    order, size = found["order"].replace("|", "<"), int(found["size"])
    width = size * 4 if found["kind"] == "U" else size
    if len(data) != count * width:
        raise ValueError(f"it holds {len(data)} bytes of values, but its header says {count * width}")
    if found["kind"] in "SU":
        return [_read_text(data[at * width : (at + 1) * width], found["kind"], order) for at in range(count)]
    letter = _NUMBERS.get((found["kind"], size))
    if letter is None:
        raise ValueError(f"numbers of the type {kind} cannot be sent as JSON: save another type")
    return list(struct.unpack(f"{order}{count}{letter}", data))


def _read_text(data: bytes, kind: str, order: str) -> Any:
    if kind == "U":
        try:
            return data.decode("utf-32-le" if order in "<=" else "utf-32-be").rstrip("\0")
        except UnicodeDecodeError as error:
            raise ValueError("its strings are not Unicode") from error
    data = data.rstrip(b"\0")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(data).decode()}


def _fold(values: list[Any], shape: tuple[int, ...], *, is_fortran: bool) -> Any:
    """Return nested lists of the shape. In Fortran's order, the first dimension changes fastest."""
    if is_fortran and len(shape) > 1:
        rest = len(values) // shape[0]
        parts = [[values[at + shape[0] * step] for step in range(rest)] for at in range(shape[0])]
        return [_fold(part, shape[1:], is_fortran=True) for part in parts]
    level = values
    for size in reversed(shape[1:]):
        level = [level[at : at + size] for at in range(0, len(level), size)]
    return level if shape else level[0]
