"""A folder of checkpoints belongs to one local run at a time."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.local.io.release_lock import hold_checkpoints


def test_two_runs_do_not_share_a_folder_of_checkpoints(tmp_path: Path) -> None:
    folder = tmp_path / "claim" / "checkpoints"
    with hold_checkpoints(str(folder)):
        with (
            pytest.raises(ToolError, match="another run writes its checkpoints to") as caught,
            hold_checkpoints(str(folder)),
        ):
            pass
        assert "its own claim" in caught.value.hint
    with hold_checkpoints(str(folder)):
        assert not list(folder.iterdir())


def test_other_folders_and_addresses_are_free(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        for folder in (str(tmp_path / "a"), str(tmp_path / "b"), "gs://bucket/run", "gs://bucket/run", ""):
            stack.enter_context(hold_checkpoints(folder))


def test_a_folder_that_cannot_be_made_is_left_to_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with hold_checkpoints(str(tmp_path / "file" / "checkpoints")):
        pass
