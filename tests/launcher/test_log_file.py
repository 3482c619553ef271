"""The volume `logs` keeps the whole output of every pod, and never costs a training anything."""

from __future__ import annotations

import os
import threading

import pytest

from trainchart_launcher import log_file
from trainchart_runtime import contract


@pytest.fixture
def volume(tmp_path):
    folder = tmp_path / "volume"
    folder.mkdir()
    return folder


@pytest.fixture
def pod(make_pod, volume):
    return make_pod(variables={contract.LOGS_DIR: str(volume), contract.POD_UID: "uid-7", contract.MAX_RESTARTS: "1"})


def test_all_output_is_kept_over_several_containers(pod, volume):
    pod.run("for number in range(5000): print('step', number)\nraise ValueError('no data')")
    pod.run("print('again')")
    lines = (volume / "output" / "exp-worker-1.log").read_text().splitlines()
    assert [line for line in lines if line.startswith("step ")] == [f"step {number}" for number in range(5000)] * 2
    assert lines.count("ValueError: no data") == 2
    starts = [line for line in lines if line.startswith("--- ")]
    assert len(starts) == 2 and all("Z exp-worker-1 uid-7 on " in line for line in starts)
    assert any("attempt 2 of " in line for line in lines)


def end_thread():
    for thread in threading.enumerate():
        if thread.name == "log-file":
            thread.join(10)


def test_full_volume_is_reported_once(volume, monkeypatch):
    told = []
    monkeypatch.setattr(log_file, "print_line", told.append)
    monkeypatch.setattr(log_file, "open_regular", lambda path, flags, dir_fd: os.open("/dev/full", flags))
    file = log_file.LogFile(str(volume), "pod.log")
    for _ in range(3):
        file.add(b"a line\n")
        end_thread()
    assert len(told) == 1 and "No space left on device" in told[0]


def test_silent_volume_does_not_block_the_program(volume, monkeypatch):
    (volume / "output").mkdir()
    # Nobody reads: whoever opens it for writing hangs.
    os.mkfifo(volume / "output" / "pod.log")
    monkeypatch.setattr(log_file, "open_regular", os.open)
    file = log_file.LogFile(str(volume), "pod.log")
    for _ in range(20):
        file.add(b"x" * (1 << 20))
    file.drain(0.1)
    assert file._left_out_bytes == 12 << 20


def put_link(path):
    path.with_name("model").write_bytes(b"weights")
    path.symlink_to("model")


def test_folder_that_is_a_link_gets_no_log(pod, volume, tmp_path):
    (tmp_path / "checkpoints").mkdir()
    (volume / "output").symlink_to(tmp_path / "checkpoints")
    code, stdout, stderr = pod.run("print('step')")
    assert (code, stdout.count("step")) == (0, 1)
    assert stderr.count("cannot keep the log in ") == 1
    assert not [*(tmp_path / "checkpoints").iterdir()]


@pytest.mark.parametrize(("put", "told"), [(put_link, "a link"), (os.mkfifo, "neither a file nor a folder")])
def test_what_others_put_in_place_of_the_log_is_left_alone(pod, volume, put, told):
    path = volume / "output" / "exp-worker-1.log"
    path.parent.mkdir()
    put(path)
    before = [each.read_bytes() for each in path.parent.glob("model")]
    code, stdout, stderr = pod.run("for number in range(5000): print('step', number)")
    assert (code, stdout.count("step")) == (0, 5000)
    assert stderr.count(f"cannot keep the log in {path}: {told}") == 1
    assert [each.read_bytes() for each in path.parent.glob("model")] == before


@pytest.mark.parametrize("folder", ["{tmp_path}/elsewhere", "gs://bucket/logs"])
def test_a_pod_without_the_volume_keeps_nothing(pod, tmp_path, folder):
    pod.variables[contract.LOGS_DIR] = folder.format(tmp_path=tmp_path)
    code, _, stderr = pod.run("print('done')")
    assert code == 0 and "cannot keep" not in stderr
    assert not (tmp_path / "elsewhere").exists() and not (pod.folder / "gs:").exists()


def test_lines_a_slow_volume_cannot_take_are_dropped_and_counted(volume, monkeypatch):
    (volume / "output").mkdir()
    path = volume / "output" / "pod.log"
    os.mkfifo(path)
    monkeypatch.setattr(log_file, "open_regular", os.open)
    monkeypatch.setattr(log_file, "_BACKLOG_BYTES", 10)
    file = log_file.LogFile(str(volume), "pod.log")
    file.add(b"12345678\n")
    file.add(b"lost\n")
    file.add(b"lost too\n")
    with path.open("rb") as reader:
        assert reader.readline() == b"12345678\n"
        file.drain(10)
        file.add(b"on\n")
        assert [reader.readline() for _ in range(3)] == [
            b"\n",
            b"[14 bytes are missing: the volume was too slow]\n",
            b"on\n",
        ]
