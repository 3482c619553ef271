"""A program without space left is told which file systems of its container are full."""

from __future__ import annotations

import errno

import pytest

from trainchart_launcher import disks, last_words
from trainchart_launcher.attempt import AttemptEnd
from trainchart_launcher.disks import Space, find_full

MIB = 1 << 20
MOUNTS = """overlay / overlay rw,relatime,lowerdir=/var/lib/containerd 0 0
proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0
tmpfs /dev tmpfs rw,nosuid,size=65536k,mode=755 0 0
tmpfs /dev/shm tmpfs rw,relatime,size=65536k 0 0
/dev/sda1 /tmp ext4 rw,relatime 0 0
/dev/sdb1 /with\\040space ext4 rw,relatime 0 0
/dev/loop1 /data ext4 ro,relatime 0 0
storage:/home /checkpoints nfs4 rw,relatime 0 0
/dev/sdc1 /gone xfs rw,relatime 0 0

junk
"""


def measure(full, asked=None):
    def look(path):
        if asked is not None:
            asked.append(path)
        if path == "/gone":
            raise OSError(errno.EIO, "Input/output error")
        return Space(64 * MIB, 4096 if path in full else 40 * MIB)

    return look


@pytest.mark.parametrize("full", [("/dev/shm",), ("/", "/tmp"), ("/with space",), ()])
def test_full_folders_are_found_among_the_mounts(full):
    found = find_full(MOUNTS.splitlines(keepends=True), measure(full))
    assert tuple(path for path, _ in found) == full


def test_file_systems_without_an_inode_left_are_found():
    spaces = {"/tmp": Space(64 * MIB, 40 * MIB, 8192, 0), "/with space": Space(64 * MIB, 40 * MIB, 0, 0)}
    found = find_full(MOUNTS.splitlines(), lambda path: spaces.get(path, Space(64 * MIB, 40 * MIB, 8192, 7)))
    assert [path for path, _ in found] == ["/tmp"], "btrfs counts no inodes: it has 0 of 0"


def test_storage_that_may_not_answer_is_not_asked():
    asked = []
    find_full(MOUNTS.splitlines(), measure((), asked))
    assert not {"/checkpoints", "/proc", "/data"} & set(asked)


NO_INODES = "no inodes are left on "


@pytest.mark.parametrize(
    ("spaces", "remark"),
    [
        ({"/dev/shm": Space(64 * MIB, 0)}, " (full: /dev/shm of 64 MiB)"),
        ({"/tmp": Space(512 * MIB, 400 * MIB, 8192, 0)}, f" ({NO_INODES}/tmp, which has 8192 files and folders)"),
        (
            {"/": Space(64 * MIB, 0, 9, 0), "/tmp": Space(512 * MIB, 400 * MIB, 8192, 0)},
            f" (full: / of 64 MiB; {NO_INODES}/tmp, which has 8192 files and folders)",
        ),
        ({}, ""),
    ],
)
def test_what_is_full_is_described(monkeypatch, tmp_path, spaces, remark):
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    monkeypatch.setattr(disks, "_MOUNTS", str(mounts))
    monkeypatch.setattr(disks, "_measure", lambda path: spaces.get(path, Space(64 * MIB, 40 * MIB, 8192, 7)))
    assert disks.describe_full_disks() == remark


def test_error_without_a_path_names_what_is_full(monkeypatch, tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    monkeypatch.setattr(disks, "_MOUNTS", str(mounts))
    monkeypatch.setattr(disks, "_measure", measure(("/dev/shm",)))
    lines = ("Traceback (most recent call last):", '  File "t.py", line 50, in read_page')
    error = "OSError: [Errno 28] No space left on device"
    end = AttemptEnd(1, None, 0.0, 1.0, 1.0, streams=(*lines, error))
    assert last_words.diagnose(end, ["python"], 0).error == f"{error} (full: /dev/shm of 64 MiB)"
    other = end._replace(streams=(*lines, "ValueError: no"))
    assert last_words.diagnose(other, ["python"], 0).error == "ValueError: no"
