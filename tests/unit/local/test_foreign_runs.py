"""Runs folders that came with the files of others: no link, pipe, device or false lock in one does harm."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.local.io import release_lock
from trainchart.local.io.logs import read_lines
from trainchart.local.io.release_folder import RUN_FILE, read_record, write_record
from trainchart.local.io.release_lock import ask_to_stop, hold_lock, is_running

pytestmark = pytest.mark.timeout(20)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """Give where the lock of the run m-1 lies."""
    path = tmp_path / ".locks" / "m-1.lock"
    path.parent.mkdir()
    return path


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """Give the signals that would be sent, and send none."""
    signals: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda process, number: signals.append((process, number)))
    yield signals


def test_a_lock_that_is_a_link_changes_no_other_file(lock: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    lock.symlink_to(tmp_path / "precious")
    with pytest.raises(ToolError, match="it is a symbolic link"), hold_lock(tmp_path, "m-1"):
        pass
    assert (tmp_path / "precious").read_text() == "precious"
    lock.unlink()
    lock.symlink_to(tmp_path / "new")
    with pytest.raises(ToolError, match="it is a symbolic link"), hold_lock(tmp_path, "m-1"):
        pass
    assert not (tmp_path / "new").exists()


def test_locks_in_a_linked_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / ".locks").symlink_to("other")
    with pytest.raises(ToolError, match="its folder is a symbolic link"), hold_lock(tmp_path, "m-1"):
        pass
    assert not any((tmp_path / "other").iterdir())


def test_a_pipe_in_the_place_of_a_lock_is_refused(lock: Path, tmp_path: Path) -> None:
    os.mkfifo(lock)
    assert not is_running(tmp_path, "m-1")
    with pytest.raises(ToolError, match="not a plain file"), hold_lock(tmp_path, "m-1"):
        pass
    with pytest.raises(ToolError, match="another program"):
        ask_to_stop(tmp_path, "m-1")


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"abc HOST\n", b"9" * 20 + b" HOST\n", b"-1 HOST\n", b"0 HOST\n", b"1 HOST\n", b"4 HOST\n"],
    ids=str,
)
def test_only_the_process_that_holds_the_lock_is_stopped(
    lock: Path, tmp_path: Path, sent: list[tuple[int, int]], content: bytes
) -> None:
    lock.write_bytes(content.replace(b"HOST", platform.node().encode()))
    with lock.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match=rf"holds the lock of m-1 \(process {os.getpid()}\)"):
            ask_to_stop(tmp_path, "m-1")
    assert not sent


def test_the_process_of_a_run_is_stopped(tmp_path: Path, sent: list[tuple[int, int]]) -> None:
    with hold_lock(tmp_path, "m-1"):
        ask_to_stop(tmp_path, "m-1")
    assert sent == [(os.getpid(), signal.SIGTERM)]


def test_the_first_process_of_a_container_is_stopped(
    lock: Path, tmp_path: Path, sent: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock.write_text(f"1 {platform.node()}\n")
    monkeypatch.setattr(release_lock, "find_lock_holders", lambda handle: {1})
    ask_to_stop(tmp_path, "m-1")
    assert sent == [(1, signal.SIGTERM)]


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_records_and_logs_that_never_end_are_not_read(tmp_path: Path, kind: str) -> None:
    for name in (RUN_FILE, "worker-0.log"):
        if kind == "pipe":
            os.mkfifo(tmp_path / name)
        else:
            (tmp_path / name).symlink_to(kind)
    assert read_record(tmp_path / RUN_FILE) == {}
    assert not list(read_lines({"worker-0": tmp_path / "worker-0.log"}))


def test_a_record_is_written_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / f".{RUN_FILE}.new").symlink_to("precious")
    write_record(tmp_path / RUN_FILE, {"release": "m-1"})
    assert (tmp_path / "precious").read_text() == "precious"
    assert read_record(tmp_path / RUN_FILE) == {"release": "m-1"}
