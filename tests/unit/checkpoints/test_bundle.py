"""TensorFlow's index, read without TensorFlow: the fixture is what TensorFlow 2.21 has written."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainchart.checkpoints.bundle import BundleError, find_text_damage, parse_bundle, shard_name
from trainchart.checkpoints.crc32c import extend, mask

FOLDER = Path(__file__).parents[2] / "fixtures" / "checkpoints"
INDEX = (FOLDER / "ckpt-20.index").read_bytes()
DATA = (FOLDER / "ckpt-20.data-00000-of-00001").read_bytes()


def test_every_byte_of_the_data_belongs_to_a_variable() -> None:
    bundle = parse_bundle(INDEX)
    assert bundle.shards == 1
    assert shard_name("ckpt-20", 0, bundle.shards) == "ckpt-20.data-00000-of-00001"
    entries = bundle.list_by_shard()[0]
    ends = [entry.offset + entry.size for entry in entries]
    assert [entry.offset for entry in entries] == [0, *ends[:-1]]
    assert ends[-1] == len(DATA)
    kernel = next(entry for entry in entries if entry.shape == (4, 8))
    assert kernel.size == 4 * 8 * 4


def test_sums_are_those_of_tensorflow() -> None:
    texts = 0
    for entry in parse_bundle(INDEX).entries:
        content = DATA[entry.offset : entry.offset + entry.size]
        if entry.is_text:
            texts += 1
            assert not find_text_damage(entry, content)
            for place in range(0, len(content), 7):
                assert find_text_damage(entry, content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
            assert find_text_damage(entry, content[:-1])
        else:
            assert mask(extend(0, content)) == entry.crc
    assert texts == 1


@pytest.mark.parametrize("bit", [1, 128])
def test_no_changed_bit_of_an_index_goes_unnoticed(bit: int) -> None:
    for place in range(len(INDEX)):
        changed = bytearray(INDEX)
        changed[place] ^= bit
        with pytest.raises(BundleError):
            parse_bundle(bytes(changed))


def number(value: int) -> bytes:
    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])


def make_block(*entries: tuple[bytes, bytes]) -> bytes:
    """Return a block of LevelDB with its trailer."""
    body = b"".join(b"\0" + number(len(key)) + number(len(value)) + key + value for key, value in entries)
    body += (0).to_bytes(4, "little") + (1).to_bytes(4, "little") + b"\0"
    return body + mask(extend(0, body)).to_bytes(4, "little")


def make_index(block: bytes, times: int) -> bytes:
    """Return an index that names its one block of variables several times."""
    meta = make_block()
    handles = make_block(*[(b"", number(0) + number(len(block) - 5))] * times)
    content = block + meta + handles
    footer = number(len(block)) + number(len(meta) - 5) + number(len(block + meta)) + number(len(handles) - 5)
    return content + footer.ljust(40, b"\0") + INDEX[-8:]


def make_variable(dimensions: int) -> bytes:
    size = b"\x12\x02\x08\x01"
    return b"\x08\x07\x12" + number(len(size) * dimensions) + size * dimensions


def test_a_block_is_read_once() -> None:
    """Each time its sum would be computed again: a small file would take hours."""
    block = make_block((b"", b"\x08\x01"), (b"v", make_variable(2)))
    assert [entry.shape for entry in parse_bundle(make_index(block, 1)).entries] == [(1, 1)]
    with pytest.raises(BundleError, match="its blocks overlap"):
        parse_bundle(make_index(block, 2))


def test_a_variable_has_as_many_dimensions_as_tensorflow_allows() -> None:
    for dimensions in (254, 255):
        block = make_block((b"", b"\x08\x01"), (b"v", make_variable(dimensions)))
        if dimensions == 254:
            assert parse_bundle(make_index(block, 1)).entries[0].elements == 1
        else:
            with pytest.raises(BundleError, match="more than 254 dimensions"):
                parse_bundle(make_index(block, 1))


def test_an_index_that_is_cut_off_is_refused() -> None:
    for length in range(len(INDEX)):
        with pytest.raises(BundleError):
            parse_bundle(INDEX[:length])
