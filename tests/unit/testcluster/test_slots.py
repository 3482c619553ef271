"""Slots: what killed runs, failed starts and earlier lives of the machine left is removed, and nothing else."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.testcluster import slots
from tests.cluster.testcluster.bring_up import Ingredients
from tests.cluster.testcluster.cluster import ClusterError, start_cluster
from tests.cluster.testcluster.config import Programs

NOW = 2_000_000_000
"""When the machine was started, long after any folder here was made."""


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test touch the clusters that run on this machine."""
    monkeypatch.setattr(slots, "_FOLDER", tmp_path / "slots")
    for name in ("remove_interface", "remove_cgroup"):
        monkeypatch.setattr(slots, name, lambda *_: None)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Path]:
    """The folder of a cluster that runs."""
    folder = tmp_path / "clusters" / "running"
    folder.mkdir(parents=True)
    slot = slots.take_slot(folder)
    yield folder
    os.close(slot.descriptor)


def take_and_lose_slot(folder: Path) -> None:
    os.close(slots.take_slot(folder).descriptor)


def test_what_a_killed_run_left_is_removed_once(tmp_path: Path, running: Path) -> None:
    killed = tmp_path / "clusters" / "killed"
    (killed / "etcd").mkdir(parents=True)
    take_and_lose_slot(killed)

    assert slots.find_folders() == [running]
    assert slots.remove_leftovers() == [killed]
    assert slots.remove_leftovers() == []
    assert list((tmp_path / "clusters").iterdir()) == [running]


def test_what_is_killed_may_write_while_its_folder_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "killed"
    (folder / "etcd").mkdir(parents=True)
    take_and_lose_slot(folder)
    remove = shutil.rmtree
    tries = []

    def write_meanwhile(path: Path) -> None:
        tries.append(path)
        if len(tries) < 3:
            raise OSError(errno.ENOTEMPTY, "Directory not empty", str(path))
        remove(path)

    monkeypatch.setattr(slots.shutil, "rmtree", write_meanwhile)

    assert slots.remove_leftovers() == [folder]
    assert tries == [folder] * 3
    assert not folder.exists()


def test_folders_of_an_earlier_life_of_the_machine_are_removed(tmp_path: Path, running: Path) -> None:
    home = running.parent
    for name, made in (("old", NOW - 1), ("new", NOW + 1), ("running", NOW - 1)):
        (home / name).mkdir(exist_ok=True)
        os.utime(home / name, (made, made))

    assert slots.remove_forgotten(home, NOW) == [home / "old"]
    assert {folder.name for folder in home.iterdir()} == {"new", "running"}
    assert slots.remove_forgotten(tmp_path / "nowhere", NOW) == []


def test_slots_that_others_may_write_are_not_believed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    take_and_lose_slot(precious)
    (tmp_path / "slots").chmod(0o777)

    for use in (slots.remove_leftovers, slots.find_folders, lambda: slots.take_slot(tmp_path / "mine")):
        with pytest.raises(slots.NoSlotError, match="slots can be written by others than root"):
            use()
    assert precious.exists()


def test_start_that_may_not_make_namespaces_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setpriv = tmp_path / "bin" / "setpriv"
    setpriv.parent.mkdir()
    setpriv.write_text("#!/bin/sh\necho unshare: not permitted\nexit 1\n")
    setpriv.chmod(0o755)
    monkeypatch.setenv("PATH", f"{setpriv.parent}:{os.environ['PATH']}")

    with pytest.raises(ClusterError, match="namespaces cannot be made here: unshare: not permitted"):
        start_cluster(Ingredients(Programs("", "", "", "", ""), "", "", "", ""), tmp_path / "clusters")

    assert list((tmp_path / "clusters").iterdir()) == []
    assert slots.remove_leftovers() == []
