"""Whose checkpoints a folder holds, and which of them can be trusted, with what TensorFlow writes."""

from __future__ import annotations

import json
import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.training.small_training import TRAINING, Settings, Trainer
from trainchart.actions.support.checkpoint_work import verify_folder
from trainchart.cli.app import app
from trainchart_training import Hook, SettingsError
from trainchart_training.place import EVALUATOR
from trainchart_training.roles import _guard, _play
from trainchart_training.saving.origin import Origin

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]

MINE = Origin("mnist", "", "registry.example.com/mnist:1", "exp-7", "team-a", "", 1)


@pytest.fixture
def mine(trainer: Trainer, caplog: pytest.LogCaptureFixture) -> Trainer:
    caplog.set_level(logging.INFO, "trainchart_training")
    trainer.place = replace(trainer.place, origin=MINE)
    return trainer


def read_origin(trainer: Trainer) -> Any:
    return json.loads((trainer.folder / "origin.json").read_text())


def verify(folder: Path) -> tuple[dict[int, str], int | None]:
    found = verify_folder(folder, None, lambda _: None)
    return dict(found.problems), found.restart


def test_the_origin_is_written_before_the_first_checkpoint(mine: Trainer) -> None:
    there: list[bool] = []

    class Watch(Hook):
        def saved(self, step: int, path: str) -> None:
            there.append((mine.folder / "origin.json").exists())

    assert mine.run(replace(TRAINING, hooks=[Watch()])) == 0
    assert there == [True, True, True]
    written = read_origin(mine)
    assert len(written.pop("createdAt")) == len("2026-11-28T07:00:00Z")
    assert written == {
        "format": 1,
        "model": "mnist",
        "strategy": "single",
        "image": "registry.example.com/mnist:1",
        "release": "exp-7",
        "namespace": "team-a",
        "attempt": 1,
    }
    before = (mine.folder / "origin.json").read_bytes()
    mine.place = replace(mine.place, origin=replace(MINE, attempt=2))
    assert mine.run(max_steps=60) == 0
    assert (mine.folder / "origin.json").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "refusal"),
    [({"model": "lstm"}, "belong to the model 'lstm'"), ({"format": 2, "model": ["lstm"]}, "has format 2")],
)
def test_foreign_folders_are_refused_before_all_else(mine: Trainer, change: dict[str, Any], refusal: str) -> None:
    assert mine.run() == 0
    (mine.folder / "origin.json").write_text(json.dumps({**read_origin(mine), **change}))
    before = sorted(mine.folder.iterdir())
    with pytest.raises(SettingsError, match=refusal):
        mine.run()  # the other model's training has ended, which is not the end of this one
    with pytest.raises(SettingsError, match=refusal):
        _play(TRAINING, Settings(), replace(mine.place, task_type=EVALUATOR))
    assert sorted(mine.folder.iterdir()) == before
    assert _guard(TRAINING, Settings(), mine.place) == 2


@pytest.mark.parametrize("content", [b"", b"\xff", b"{}", b"[" * 100_000, b" " * 100_000])
def test_an_unreadable_origin_is_replaced_while_nothing_is_lost(
    mine: Trainer, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    mine.folder.mkdir()
    (mine.folder / "origin.json").write_bytes(content)
    assert mine.run() == 0
    assert read_origin(mine)["release"] == "exp-7"
    assert "origin.json cannot be read and is rewritten" in caplog.text
    (mine.folder / "origin.json").write_bytes(content)
    assert mine.run(max_steps=60) == 0
    assert (mine.folder / "origin.json").read_bytes() == content
    assert "so whose checkpoints these are is not known" in caplog.text
    assert mine.steps() == [60, 40]


def test_a_pipe_in_place_of_the_origin_is_not_waited_for(mine: Trainer) -> None:
    mine.folder.mkdir()
    os.mkfifo(mine.folder / "origin.json")
    assert mine.run() == 0
    assert read_origin(mine)["release"] == "exp-7"


def test_an_old_folder_without_an_origin_gets_one(mine: Trainer) -> None:
    assert mine.run() == 0
    (mine.folder / "origin.json").unlink()
    assert mine.run(max_steps=60) == 0
    assert read_origin(mine)["release"] == "exp-7"
    assert mine.steps() == [60, 40]


def test_going_on_from_another_release_is_logged(mine: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    assert mine.run() == 0
    mine.place = replace(mine.place, origin=replace(MINE, release="exp-8"))
    assert mine.run(max_steps=60) == 0
    assert "were written by release exp-7 in namespace team-a: continuing from them" in caplog.text
    assert read_origin(mine)["release"] == "exp-7"


def test_an_end_that_another_release_has_reached_is_named(mine: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    assert mine.run() == 0
    assert mine.run() == 0
    assert "is the end of the training" in caplog.text and "exp-7" not in caplog.text
    mine.place = replace(mine.place, origin=replace(MINE, release="exp-8"))
    assert mine.run() == 0
    assert "is the end of the training that release exp-7 in namespace team-a has begun there" in caplog.text


def test_a_flipped_byte_is_found_and_the_restart_passes_over_it(
    mine: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    assert mine.run(max_steps=80, keep_checkpoints=5) == 0
    assert verify(mine.folder) == ({80: "", 60: "", 40: "", 20: "", 0: ""}, 80)
    data = mine.folder / "ckpt-80.data-00000-of-00001"
    content = bytearray(data.read_bytes())
    content[100] ^= 4
    data.write_bytes(content)
    (mine.folder / "ckpt-60.index").write_bytes((mine.folder / "ckpt-60.index").read_bytes()[:-20] + bytes(20))
    problems, restart = verify(mine.folder)
    assert restart == 40
    assert problems[80].startswith("ckpt-80.data-00000-of-00001: the bytes ")
    assert problems[60].startswith("ckpt-60.index: ")
    assert mine.run(max_steps=100, keep_checkpoints=5) == 0
    assert "the checkpoint of step 80 is damaged" in caplog.text
    assert "the checkpoint of step 60 is damaged" in caplog.text
    assert f"restored step 40 from {mine.folder}/ckpt-40" in caplog.text
    assert verify(mine.folder)[1] == 100


def test_what_tensorflow_refuses_to_read_is_found(mine: Trainer) -> None:
    """What it reads in spite of a change, such as bytes that it never looks at, is found, too."""
    import tensorflow as tf

    assert mine.run(max_steps=20) == 0
    refused = 0
    for name in ("ckpt-20.data-00000-of-00001", "ckpt-20.index"):
        path = mine.folder / name
        content = path.read_bytes()
        for place in range(0, len(content), 97):
            path.write_bytes(content[:place] + bytes([content[place] ^ 16]) + content[place + 1 :])
            try:
                reader = tf.train.load_checkpoint(str(mine.folder / "ckpt-20"))
                for key in reader.get_variable_to_shape_map():
                    reader.get_tensor(key)
            except (tf.errors.OpError, RuntimeError, ValueError):
                refused += 1
            problem = verify(mine.folder)[0][20]
            assert problem.startswith(f"{name}: "), (name, place)
        path.write_bytes(content)
    assert refused > 30 and verify(mine.folder)[1] == 20


def test_shards_of_several_tasks_are_verified(tmp_path: Path) -> None:
    """As parameter servers write them: one data file each, and one index that joins them."""
    import tensorflow as tf

    values = {f"part-{number}": tf.random.normal((50, number + 1)) for number in range(3)}
    prefixes = [str(tmp_path / f"ckpt-20_temp/part-{number}") for number in range(3)]
    (tmp_path / "ckpt-20_temp").mkdir()
    for prefix, (key, value) in zip(prefixes, values.items(), strict=True):
        tf.raw_ops.SaveV2(prefix=prefix, tensor_names=[key], shape_and_slices=[""], tensors=[value])
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=str(tmp_path / "ckpt-20"))
    files = {path.name: path.stat().st_size for path in tmp_path.glob("ckpt-20.*")}
    assert len(files) == 4
    (tmp_path / "ckpt-20.json").write_text(json.dumps({"step": 20, "ending": "", "files": files, "variables": []}))
    assert verify(tmp_path) == ({20: ""}, 20)
    second = tmp_path / "ckpt-20.data-00001-of-00003"
    second.write_bytes(second.read_bytes()[:-1] + b"\x99")
    assert verify(tmp_path)[0][20].startswith("ckpt-20.data-00001-of-00003: ")


def test_an_exported_checkpoint_starts_another_run(mine: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    assert mine.run() == 0
    start = mine.folder.parent / "start"
    done = CliRunner().invoke(app, ["checkpoints", "export", str(mine.folder), "20", str(start)])
    assert done.exit_code == 0, done.exception
    import tensorflow as tf

    assert tf.train.latest_checkpoint(str(start)) == str(start / "ckpt-20")
    shutil.rmtree(mine.folder)
    other = replace(mine.place, checkpoints_dir=str(start), origin=replace(MINE, release="exp-8"))
    mine.place, mine.folder = other, start
    assert mine.run() == 0
    assert f"restored step 20 from {start}/ckpt-20" in caplog.text
    assert read_origin(mine)["release"] == "exp-7"
