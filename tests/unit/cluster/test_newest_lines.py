"""The newest lines of a log: however its bytes are cut, and however much a program prints."""

from __future__ import annotations

import pytest

from trainchart.cluster.io.newest_lines import NewestLines
from trainchart_runtime.log_text import hide_credentials


def keep(body: bytes, piece: int, most: int = 100_000) -> list[str]:
    log = NewestLines(most)
    for begin in range(0, len(body), piece):
        log.add(body[begin : begin + piece])
    return log.take()


@pytest.mark.parametrize("piece", [1, 3, 1_000_000])
@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (b"", []),
        (b"T a", ["T a"]),
        (b"T a\n", ["T a"]),
        ("T \U0001f600\n\nT b\n\n".encode(), ["T \U0001f600", "", "T b", ""]),
        (b"T \xff", ["T \ufffd"]),
    ],
)
def test_lines_are_those_of_the_log(piece: int, body: bytes, lines: list[str]) -> None:
    assert keep(body, piece) == lines


def test_oldest_lines_of_a_long_log_go() -> None:
    lines = keep(b"".join(b"T %08d\n" % number for number in range(100_000)), 4096, 110)
    assert lines == [f"T {number:08d}" for number in range(99_990, 100_000)]


@pytest.mark.parametrize("end", ["", "\nT next\n"])
def test_middle_of_a_long_line_is_cut(end: str) -> None:
    line = "T ValueError: " + "\U0001f600" * 300_000 + " step 9"
    found = keep(f"T before\n{line}{end}".encode(), 4096)
    cut = found[1]
    assert cut.startswith("T ValueError: ") and "…" in cut and cut.endswith(" step 9") and len(cut) == 2000
    assert [found[0], *found[2:]] == ["T before", *(["T next"] if end else [])]


@pytest.mark.parametrize(
    "line",
    [
        "a: Authorization: Bearer " + "S" * 4000 + " end",
        "x " * 2000 + "https://me:" + "S" * 1500 + "@example.com/ " + "y " * 100,
        "x " * 40_000 + "https://me:" + "S" * 40_000 + "@example.com the end of this line",
        "x " * 40_000 + "Authorization: Bearer " + "S" * 30_000,
        "x " * 40_000 + "Authorization: Bearer " + "S" * 900 + " y" * 8192,
    ],
    ids=["bearer", "address", "long", "end", "cut"],
)
@pytest.mark.parametrize("size", [101, 4096, 1_000_000])
def test_credentials_in_a_line_that_is_cut_stay_hidden(line: str, size: int) -> None:
    shown = keep(f"{line}\n".encode(), size)
    assert "SSSS" not in hide_credentials(" ".join(shown))
