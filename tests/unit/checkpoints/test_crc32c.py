"""CRC-32C in lanes gives what the plain loop gives."""

from __future__ import annotations

import random

import pytest

from trainchart.checkpoints.crc32c import extend, mask


def test_known_sums() -> None:
    # The check value of the polynomial, and the vectors of RFC 3720, B.4.
    assert extend(0, b"123456789") == 0xE3069283
    assert extend(0, bytes(32)) == 0x8A9136AA
    assert extend(0, b"\xff" * 32) == 0x62A8AB43
    assert extend(0, b"") == 0
    assert mask(0xE3069283) == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


@pytest.mark.parametrize("size", [1020, 1021 * 8 - 1, 1021 * 8, 1021 * 8 + 1, 100_003])
def test_sums_do_not_depend_on_how_data_is_cut(size: int) -> None:
    data = random.Random(size).randbytes(size)
    plain = 0
    for start in range(0, size, 1000):  # too short for lanes
        plain = extend(plain, data[start : start + 1000])
    assert extend(0, data) == plain
    assert extend(extend(0, data[: size // 3]), memoryview(data)[size // 3 :]) == plain
