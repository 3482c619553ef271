"""TensorFlow's index of a checkpoint, `ckpt-<step>.index`: which bytes of which file are a variable, and their CRC-32C.

A table of sorted keys as LevelDB writes it, whose values are protocol buffers:
https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/protobuf/tensor_bundle.proto
Read without TensorFlow, and within bounds: the file may be anyone's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from trainchart.checkpoints.crc32c import extend, mask

_MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
_FOOTER = 48
_TRAILER = 5
"""Bytes behind a block: its compression, and the CRC of block and compression."""
_UNCOMPRESSED = 0
_LONGEST_KEY = 8192
_KEY_BYTES = 256 * 1024 * 1024
"""Of all keys together: each may repeat the one before it in a few bytes."""
_MOST_SHARDS = 100_000
_MOST_DIMENSIONS = 254
"""TensorFlow's own limit, tf.TensorShape."""
_STRING, _VARIANT = 7, 21
_VARINT_BYTES = 10


class BundleError(ValueError):
    """The index is not one that TensorFlow has written, or its bytes have changed since."""


@dataclass(frozen=True)
class Entry:
    """Where one variable lies, and what its bytes add up to."""

    key: str
    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    crc: int
    """As stored: masked."""

    @property
    def is_text(self) -> bool:
        """Whether these are texts, whose CRC counts their lengths in another form than the file has them."""
        return self.dtype == _STRING

    @property
    def is_checkable(self) -> bool:
        return self.dtype != _VARIANT

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Bundle:
    """All variables of one checkpoint."""

    shards: int
    entries: Sequence[Entry] = field(default_factory=tuple)

    def list_by_shard(self) -> Mapping[int, Sequence[Entry]]:
        """Return the entries that have bytes of their own, by the number of their file, in its order."""
        found: dict[int, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.shard, []).append(entry)
        return {shard: sorted(entries, key=lambda entry: entry.offset) for shard, entries in sorted(found.items())}


def shard_name(prefix: str, shard: int, shards: int) -> str:
    """Return the name of one of a checkpoint's data files."""
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


def parse_bundle(content: bytes) -> Bundle:
    """Return what an index file says. Raises BundleError where it is damaged, by its own CRCs among others."""
    try:
        return _parse(content)
    except (IndexError, OverflowError, UnicodeDecodeError) as error:
        raise BundleError("it is damaged") from error


def _parse(content: bytes) -> Bundle:
    footer = content[-_FOOTER:]
    if len(footer) < _FOOTER or footer[-8:] != _MAGIC:
        raise BundleError("it is not a TensorFlow index, or is truncated")
    _, at = _read_handle(footer, 0)
    index, at = _read_handle(footer, at)
    if any(footer[at:-8]):
        raise BundleError("its last bytes have changed")
    metaindex, _ = _read_handle(footer, 0)
    list(_read_block(content, metaindex))
    shards = 0
    entries: list[Entry] = []
    budget = _KEY_BYTES
    end = 0
    for _, entry_of_block in _read_block(content, index):
        handle, _ = _read_handle(entry_of_block, 0)
        if handle[0] < end:
            raise BundleError("its blocks overlap")
        end = sum(handle)
        for key, value in _read_block(content, handle):
            budget -= len(key)
            if budget < 0:
                raise BundleError("its keys are implausibly long")
            if not key:
                shards = _parse_header(value)
            elif (entry := _parse_entry(key, value)) is not None:
                entries.append(entry)
    if not 0 < shards <= _MOST_SHARDS:
        raise BundleError(f"it names {shards} data files")
    if any(not 0 <= entry.shard < shards for entry in entries):
        raise BundleError(f"a variable is in a data file beyond its {shards}")
    return Bundle(shards, entries)


def _read_handle(content: bytes, at: int) -> tuple[tuple[int, int], int]:
    offset, at = _read_varint(content, at)
    size, at = _read_varint(content, at)
    return (offset, size), at


def _read_block(content: bytes, handle: tuple[int, int]) -> Iterator[tuple[bytes, bytes]]:
    """Yield key and value of every entry of a block, whose CRC is checked first."""
    offset, size = handle
    end = offset + size
    if end + _TRAILER > len(content):
        raise BundleError("it is truncated")
    stored = int.from_bytes(content[end + 1 : end + _TRAILER], "little")
    if mask(extend(0, content[offset : end + 1])) != stored:
        raise BundleError(f"its bytes {offset} to {end + 1} differ from what was written")
    if content[end] != _UNCOMPRESSED:
        raise BundleError("it is compressed, unlike TensorFlow checkpoints")
    block = content[offset:end]
    entries_end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    if entries_end < 0:
        raise BundleError("it is damaged")
    at, key = 0, b""
    while at < entries_end:
        shared, at = _read_varint(block, at)
        unshared, at = _read_varint(block, at)
        length, at = _read_varint(block, at)
        if shared > len(key) or shared + unshared > _LONGEST_KEY or at + unshared + length > entries_end:
            raise BundleError("it is damaged")
        key = key[:shared] + block[at : at + unshared]
        at += unshared
        yield key, block[at : at + length]
        at += length


def _parse_header(value: bytes) -> int:
    numbers = {number: content for number, content in _read_fields(value) if isinstance(content, int)}
    if numbers.get(2, 0):
        raise BundleError("it was written on a machine with another byte order")
    return numbers.get(1, 0)


def _parse_entry(key: bytes, value: bytes) -> Entry | None:
    """Return an entry, None for that of a variable whose parts have entries of their own."""
    numbers: dict[int, int] = {}
    shape: tuple[int, ...] = ()
    for number, content in _read_fields(value):
        if isinstance(content, int):
            numbers[number] = content
        elif number == 2:
            shape = tuple(islice(_parse_shape(content), _MOST_DIMENSIONS + 1))
            if len(shape) > _MOST_DIMENSIONS:
                raise BundleError(f"a variable has more than {_MOST_DIMENSIONS} dimensions")
        elif number == 7:
            return None
    size, offset = numbers.get(5, 0), numbers.get(4, 0)
    return Entry(
        key=key.decode("utf-8", "replace"),
        dtype=numbers.get(1, 0),
        shape=shape,
        shard=numbers.get(3, 0),
        offset=offset,
        size=size,
        crc=numbers.get(6, 0),
    )


def _parse_shape(content: bytes) -> Iterator[int]:
    for number, dimension in _read_fields(content):
        if number == 2 and isinstance(dimension, bytes):
            yield next((size for field, size in _read_fields(dimension) if field == 1 and isinstance(size, int)), 0)


def _read_fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and content of every field of a protocol buffer."""
    at = 0
    while at < len(content):
        tag, at = _read_varint(content, at)
        kind = tag & 7
        if kind == 0:
            value, at = _read_varint(content, at)
            yield tag >> 3, value
        elif kind == 2:
            length, at = _read_varint(content, at)
            if at + length > len(content):
                raise BundleError("it is damaged")
            yield tag >> 3, content[at : at + length]
            at += length
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            if at + width > len(content):
                raise BundleError("it is damaged")
            yield tag >> 3, int.from_bytes(content[at : at + width], "little")
            at += width
        else:
            raise BundleError("it is damaged")


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES):
        byte = content[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte == 0 and place:
            break  # a number that ends with zeros is never written so
        if byte < 0x80:
            return value, at + place + 1
    raise BundleError("it is damaged")


def find_text_damage(entry: Entry, content: bytes) -> bool:
    """Say whether the bytes of an entry of texts are not those that were written."""
    crc, at, total = 0, 0, 0
    try:
        for _ in range(entry.elements):
            length, at = _read_varint(content, at)
            crc = extend(crc, length.to_bytes(4 if length < 2**32 else 8, "little"))
            total += length
    except (BundleError, IndexError, OverflowError):
        return True
    stored = content[at : at + 4]
    if mask(crc).to_bytes(4, "little") != stored or at + 4 + total != len(content):
        return True
    return mask(extend(extend(crc, stored), content[at + 4 :])) != entry.crc
