"""A disk that fails in the middle of a training: the error names path, fault and cause; the checkpoint before is whole.

Each fault is a real one, of a file system that is mounted for the test. Shared storage is in
tests/cluster/test_storage_servers.py, damaged files are in test_one_process.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.training.small_training import TRAINING, Settings, Trainer, Weights
from trainchart_runtime.classify import Ending, classify
from trainchart_training import Hook

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]

NOBODY = 65534
WRITE_SECONDS = 0.3
SLOW = "the storage is slow, and the training waits for it"
SLOW_VOLUME = """
volume files
  type storage/posix
  option directory {folder}/files
  option volume-id {id}
end-volume
volume slow
  type debug/delay-gen
  option delay-percentage 100
  option delay-duration {microseconds:.0f}
  option enable write
  subvolumes files
end-volume
"""


def call(*argv: str | Path) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{argv[0]} {argv[1]} needs root: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, which any user may reach."""
    folder = tmp_path / "disk"
    folder.mkdir()
    call("mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", folder)
    for parent in (*folder.parents,)[:-2]:
        if parent.stat().st_uid == os.geteuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 512)


class Fault(NamedTuple):
    cause: str
    words: str
    inflict: Callable[[Path], Any]
    mend: Callable[[Path], Any]


FAULTS = (
    Fault("disk-full", "No space left on device", fill, lambda disk: (disk / "ballast").unlink()),
    Fault(
        "read-only",
        "Read-only file system",
        lambda disk: call("mount", "-o", "remount,ro", disk),
        lambda disk: call("mount", "-o", "remount,rw", disk),
    ),
    Fault("permission-denied", "Permission denied", lambda _: os.seteuid(NOBODY), lambda _: os.seteuid(0)),
)


class Strike(Hook):
    """Calls `act` when a step is reported."""

    def __init__(self, step: int, act: Callable[[], object]) -> None:
        self._step, self._act = step, act

    def logged(self, step: int, values: Any) -> None:
        if step == self._step:
            self._act()


def assert_it_goes_on(trainer: Trainer, saved: Weights) -> None:
    """Train on from step 20, and compare each bit of the weights with those that were saved there."""
    restored = Weights()
    assert trainer.run(replace(TRAINING, hooks=[restored]), max_steps=21) == 0
    assert [weight.tobytes() for weight in restored.first] == [weight.tobytes() for weight in saved.last]


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.cause for fault in FAULTS])
def test_a_fault_is_named_and_the_checkpoint_before_restores(
    disk: Path, fault: Fault, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    from trainchart_training.roles import _guard

    trainer, saved = Trainer(disk), Weights()
    trainer.place = replace(trainer.place, progress_file="")
    assert trainer.run(replace(TRAINING, hooks=[saved]), max_steps=20) == 0
    strike = Strike(40, lambda: fault.inflict(disk))

    try:
        assert _guard(replace(TRAINING, hooks=[strike]), Settings(max_steps=60), trainer.place) == 1
    finally:
        fault.mend(disk)

    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert line.startswith(f"error: worker 0: cannot save step 40 in {trainer.folder}: ")
    assert fault.words in line
    assert line.endswith("(last complete checkpoint: step 20)")
    printed = capfd.readouterr().err.splitlines()
    found = classify(Ending(1, None, [*printed, line], (sys.executable, "train.py")))
    assert (found.cause.name, found.error) == (fault.cause, line)
    assert_it_goes_on(trainer, saved)


class SlowDisk(NamedTuple):
    """A file system of GlusterFS, with one brick and no server, on which each write takes its time."""

    mount: Path
    client: subprocess.Popen[bytes]


@pytest.fixture
def slow_disk(tmp_path: Path) -> Iterator[SlowDisk]:
    if shutil.which("glusterfs") is None:
        pytest.skip("Debian's glusterfs-server is not installed")
    folder, name = tmp_path / "slow", uuid.uuid4()
    for part in ("files", "mount"):
        (folder / part).mkdir(parents=True)
    call("setfattr", "-n", "trusted.glusterfs.volume-id", "-v", f"0x{name.hex}", folder / "files")
    volume = SLOW_VOLUME.format(folder=folder, id=name, microseconds=WRITE_SECONDS * 1e6)
    (folder / "volume").write_text(volume)
    argv = ["glusterfs", "--no-daemon", "-f", folder / "volume", "-l", folder / "log", folder / "mount"]
    with subprocess.Popen(argv) as client:
        deadline = time.monotonic() + 20
        while not (folder / "mount").is_mount():
            assert client.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield SlowDisk(folder / "mount", client)
        subprocess.run(["umount", "--lazy", str(folder / "mount")], check=True)
        client.wait(20)


def test_saves_that_take_seconds_are_told_and_whole(
    slow_disk: SlowDisk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainchart_training.saving import checkpoints

    monkeypatch.setattr(checkpoints, "_SLOW_SECONDS", 2 * WRITE_SECONDS)
    trainer, saved = Trainer(slow_disk.mount), Weights()
    trainer.place = replace(trainer.place, progress_file="")
    caplog.set_level("WARNING")
    assert trainer.run(replace(TRAINING, hooks=[saved]), max_steps=20, checkpoint_steps=20) == 0
    said = [record.getMessage() for record in caplog.records if " took " in record.getMessage()]
    found = [
        re.fullmatch(rf"saving step (\d+) in {trainer.folder} took (\d+) s for 0\.0 MB: (.*)", each) for each in said
    ]
    assert [each and (each[1], each[3]) for each in found] == [("0", SLOW), ("20", SLOW)]
    assert_it_goes_on(trainer, saved)


def test_a_mount_whose_client_has_died_is_named(
    slow_disk: SlowDisk, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    from trainchart_training.roles import _guard

    trainer = Trainer(slow_disk.mount)
    trainer.place = replace(trainer.place, progress_file="")
    strike = Strike(20, lambda: (slow_disk.client.kill(), slow_disk.client.wait()))
    assert _guard(replace(TRAINING, hooks=[strike]), Settings(), trainer.place) == 1
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert line.startswith(f"error: worker 0: cannot save step 20 in {trainer.folder}: ")
    assert "Transport endpoint is not connected" in line
    assert line.endswith("(last complete checkpoint: unknown)")
    printed = capfd.readouterr().err.splitlines()
    found = classify(Ending(1, None, [*printed, line], (sys.executable, "train.py")))
    assert (found.cause.name, found.error) == ("storage-failed", line)
