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


def test_an_index_that_is_cut_off_is_refused() -> None:
    for length in range(len(INDEX)):
        with pytest.raises(BundleError):
            parse_bundle(INDEX[:length])
