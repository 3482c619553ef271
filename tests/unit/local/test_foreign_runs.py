"""Runs folders that came with the files of others: no link, pipe, device or false lock in one does harm."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainchart.actions.support.local_logs import read_local_logs
from trainchart.actions.support.log_filter import LogsFilter
from trainchart.errors import ToolError
from trainchart.local.io import release_lock
from trainchart.local.io.logs import read_lines
from trainchart.local.io.release_folder import (
    RESULT_FILE,
    RUN_FILE,
    STATE_FILE,
    holds_run,
    read_record,
    read_told,
    write_record,
)
from trainchart.local.io.release_lock import ask_to_stop, hold_lock, is_running
from trainchart.local.io.run_report import read_report

pytestmark = pytest.mark.timeout(20)


def make_run(runs: Path, label: object, state: str = "") -> Path:
    """Make the folder of the run m-1 with one pod."""
    folder = runs / "m-1"
    folder.mkdir(parents=True, exist_ok=True)
    pod = {"label": label, "name": "m-1-worker-0", "role": "worker", "state": state}
    write_record(folder / RUN_FILE, {"release": "m-1", "chart": "m-1", "deciding": [label], "pods": [pod]})
    return folder


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
    with pytest.raises(ToolError, match="a program other than"):
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


def test_records_and_logs_are_read_through_no_link(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "worker-0")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "worker-0.log").write_text("0 secret\n")
    for name in (RUN_FILE, RESULT_FILE, STATE_FILE):
        (elsewhere / name).write_text('{"release": "m-1"}')
        (tmp_path / name).symlink_to(elsewhere / name)
        assert read_record(tmp_path / name) == {}
    (folder / "logs").mkdir()
    (folder / "logs" / "worker-0.log").symlink_to(elsewhere / "worker-0.log")
    notes: list[str] = []
    assert not list(read_local_logs(folder, LogsFilter(), notes.append))
    assert [note.partition(" in ")[0] for note in notes] == ["note: no log of worker-0"]
    (folder / "logs" / "worker-0.log").unlink()
    (folder / "logs").rmdir()
    (folder / "logs").symlink_to(elsewhere)
    with pytest.raises(ToolError, match="logs is a link"):
        read_local_logs(folder, LogsFilter(), notes.append)


@pytest.mark.parametrize("label", ["../../elsewhere/x", "/etc/x-0", "x", "", ".-0\n", 5])
def test_a_record_with_a_false_label_is_damaged(tmp_path: Path, label: object) -> None:
    assert holds_run(make_run(tmp_path, "ps-10"))
    assert not holds_run(make_run(tmp_path, label))


def test_progress_is_read_in_the_folder_of_the_run_only(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "progress.json").write_text('{"step": 7}')
    folder = make_run(tmp_path / "runs", "worker-0", state=str(elsewhere))
    assert read_report(folder).progress.step is None
    (folder / "link").symlink_to(elsewhere)
    assert read_report(make_run(tmp_path / "runs", "worker-0", state=str(folder / "link"))).progress.step is None
    assert read_report(make_run(elsewhere, "worker-0", state=str(elsewhere / "m-1"))).progress.step is None
    (elsewhere / "m-1" / "progress.json").write_text('{"step": 7}')
    assert read_report(elsewhere / "m-1").progress.step == 7


def test_a_pipe_that_appears_after_a_check_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    monkeypatch.setattr(Path, "is_fifo", lambda self: False)
    assert read_told(tmp_path / "pipe") == ""
    assert read_record(tmp_path / "pipe") == {}
    assert not list(read_lines({"worker-0": tmp_path / "pipe"}))


def test_a_record_is_written_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / f".{RUN_FILE}.new").symlink_to("precious")
    write_record(tmp_path / RUN_FILE, {"release": "m-1"})
    assert (tmp_path / "precious").read_text() == "precious"
    assert read_record(tmp_path / RUN_FILE) == {"release": "m-1"}
