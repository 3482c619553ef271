"""What is kept of a pod's output, and how it is read again."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from trainchart.local.io.logs import follow_lines, read_lines, stamp_of
from trainchart.local.io.role_log import MAX_LINE_BYTES, RoleLog


def texts(path: Path) -> list[str]:
    return [line.text for line in read_lines({"worker-0": path})]


def test_lines_are_put_together_from_chunks(tmp_path: Path) -> None:
    log = RoleLog(tmp_path / "worker-0.log")
    assert log.feed(b"step 1\nste") == ["step 1"]
    assert log.feed(b"p 2\r\n\xff\n") == ["step 2", "\ufffd"]
    assert log.feed(b"bar 1%\rbar 2%\nend") == ["bar 2%"]
    assert log.finish() == ["end"]
    log.close()
    assert texts(tmp_path / "worker-0.log") == ["step 1", "step 2", "\ufffd", "bar 2%", "end"]


def test_two_streams_never_share_a_line(tmp_path: Path) -> None:
    log = RoleLog(tmp_path / "worker-0.log")
    assert log.feed(b"warning: ", 2) == []
    assert log.feed(b"\rbar 1%\rbar 2%", 1) == []
    assert log.feed(b"slow\n", 2) == ["warning: slow"]
    assert log.feed(b"end", 2) == []
    assert sorted(log.finish()) == ["bar 2%", "end"]


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    log = RoleLog(tmp_path / "worker-0.log")
    lines = log.feed(b"x" * (MAX_LINE_BYTES + 10))
    assert [len(line) for line in lines] == [MAX_LINE_BYTES]
    assert log.finish() == ["x" * 10]


def test_a_full_log_is_rotated_and_only_one_old_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "worker-0.log"
    log = RoleLog(path, max_bytes=200)
    for number in range(50):
        log.feed(f"line {number}\n".encode())
    log.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["worker-0.log", "worker-0.log.1"]
    assert all(file.stat().st_size < 300 for file in tmp_path.iterdir())
    kept = texts(path)
    assert kept[-1] == "line 49"
    assert kept == [f"line {number}" for number in range(50 - len(kept), 50)]


def test_a_full_disk_costs_log_lines_only(tmp_path: Path) -> None:
    log = RoleLog(tmp_path / "worker-0.log")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        assert log.feed(b"step 1\nstep 2\n") == ["step 1", "step 2"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "File too large" in log.failure


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_in_place_of_a_log_is_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "worker-0.log"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        (tmp_path / "precious").write_text("precious")
        path.symlink_to("precious")
    log = RoleLog(path)
    log.feed(b"step 1\n")
    log.close()
    assert texts(path) == ["step 1"]
    assert kind == "pipe" or (tmp_path / "precious").read_text() == "precious"
    log.close()


def test_logs_are_merged_by_time(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"{stamp_of(1)} one\n{stamp_of(3)} three\n")
    (tmp_path / "b.log").write_text(f"{stamp_of(2)} two words\n")
    merged = read_lines({"chief-0": tmp_path / "a.log", "worker-0": tmp_path / "b.log", "ps-0": tmp_path / "none"})
    assert [(line.label, line.text) for line in merged] == [
        ("chief-0", "one"),
        ("worker-0", "two words"),
        ("chief-0", "three"),
    ]


def test_following_sees_what_comes_and_survives_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "worker-0.log"
    path.write_text(f"{stamp_of(1)} old\n")
    steps = iter(
        [
            lambda: None,
            lambda: path.open("a").write(f"{stamp_of(2)} new\n{stamp_of(3)} hal"),
            lambda: path.open("a").write("f\n"),
            lambda: (path.rename(f"{path}.1"), path.write_text(f"{stamp_of(4)} rotated\n")),
        ]
    )

    def is_over() -> bool:
        step = next(steps, None)
        if step is not None:
            step()
        return step is None

    followed = [line.text for line in follow_lines({"worker-0": path}, is_over)]
    assert followed == ["old", "new", "half", "rotated"]


def test_a_log_without_line_breaks_is_read_in_pieces(tmp_path: Path) -> None:
    """A run writes no such file; a program may put one there."""
    path = tmp_path / "worker-0.log"
    path.write_bytes(b"x" * (3 * MAX_LINE_BYTES))
    lines = list(read_lines({"worker-0": path}))
    assert len(lines) == 3
    with path.open("r+b") as file:
        file.truncate(2**33)
        file.seek(0, os.SEEK_END)
        file.write(b"\n2026-01-01T00:00:00.000000Z the end\n")
    # Eight gigabytes of nothing do not fit into memory.
    assert [line.text for line in follow_lines({"worker-0": path}, lambda: True)][-1] == "the end"
