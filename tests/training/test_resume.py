"""How runs begin in folders that hold checkpoints, with what TensorFlow writes."""

from __future__ import annotations

import itertools
import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

from tests.training.small_training import TRAINING, Settings, Trainer
from trainchart_training import SettingsError, TrainingError
from trainchart_training.place import EVALUATOR
from trainchart_training.roles import _guard
from trainchart_training.saving import run_folder
from trainchart_training.saving.checkpoints import Checkpoints
from trainchart_training.saving.origin import Origin, RunStart, add_run
from trainchart_training.saving.resume import LATEST, NEVER, Wish
from trainchart_training.saving.run_folder import RunFolder

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]

MINE = Origin("mnist", release="exp-7", namespace="team-a", run="1")


@pytest.fixture
def mine(trainer: Trainer, caplog: pytest.LogCaptureFixture) -> Trainer:
    """A release whose first run has trained to step 60, with the checkpoints of steps 20, 40 and 60."""
    caplog.set_level(logging.INFO, "trainchart_training")
    begin(trainer, MINE, Wish(NEVER))
    assert train(trainer, 60) == 0
    return trainer


def begin(trainer: Trainer, origin: Origin, wish: Wish | None, folder: Path | None = None) -> None:
    trainer.folder = folder or trainer.folder
    trainer.place = replace(trainer.place, origin=origin, resume=wish, checkpoints_dir=str(trainer.folder))


def train(trainer: Trainer, max_steps: int) -> int:
    return trainer.run(max_steps=max_steps, keep_checkpoints=3)


def read_runs(folder: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads((folder / "origin.json").read_text())["runs"]
    assert all(run.pop("startedAt") for run in runs)
    return runs


def test_a_new_run_starts_over_and_keeps_the_earlier_one(mine: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    before = {path.name: path.read_bytes() for path in mine.folder.glob("ckpt-*")}
    begin(mine, replace(MINE, run="2"), Wish(NEVER))
    assert train(mine, 40) == 0
    assert mine.steps() == [40, 20, 0]
    aside = mine.folder / "earlier" / "1"
    assert {path.name: path.read_bytes() for path in aside.glob("ckpt-*")} == before
    assert f"moved the checkpoints of steps 20 to 60, written by an earlier run, to {aside}" in caplog.text
    # Measured again, although the earlier run has measured checkpoints of these steps.
    assert list(json.loads((mine.folder / "evaluations.json").read_text())) == ["40"]
    assert list(json.loads((aside / "evaluations.json").read_text())) == ["60"]
    # The folder is one of checkpoints by itself.
    assert read_runs(aside) == [{"release": "exp-7", "namespace": "team-a", "run": "1"}]
    assert [run["run"] for run in read_runs(mine.folder)] == ["1", "2"]


def test_a_restart_goes_on_whatever_the_run_began_with(mine: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    for wish in (Wish(NEVER), Wish(20), Wish(LATEST, "/nothing", "exp-6")):
        begin(mine, MINE, wish)
        assert mine.run(max_steps=mine.steps()[0] + 20, keep_checkpoints=3) == 0
    assert mine.steps() == [120, 100, 80]
    assert not (mine.folder / "earlier").exists()
    assert len(read_runs(mine.folder)) == 1


def test_a_run_goes_back_to_a_step(mine: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    begin(mine, replace(MINE, run="2"), Wish(20))
    assert train(mine, 40) == 0
    assert f"restored step 20 from {mine.folder}/ckpt-20" in caplog.text
    assert mine.steps() == [40, 20]
    assert sorted(path.name for path in (mine.folder / "earlier/1").glob("*.json")) == [
        "ckpt-40.json",
        "ckpt-60.json",
        "evaluations.json",
        "origin.json",
    ]
    assert read_runs(mine.folder)[-1] == {"release": "exp-7", "namespace": "team-a", "run": "2", "step": 20}


def test_a_step_that_cannot_be_read_is_no_reason_to_take_another(mine: Trainer) -> None:
    data = next(mine.folder.glob("ckpt-40.data-*"))
    data.write_bytes(bytes(len(data.read_bytes())))
    (mine.folder / "ckpt-40.index").write_bytes(bytes((mine.folder / "ckpt-40.index").stat().st_size))
    begin(mine, replace(MINE, run="2"), Wish(40))
    for _ in range(2):
        with pytest.raises(TrainingError, match=r"none of the 1 checkpoints in .* from step 40 on can be read"):
            train(mine, 80)
    assert mine.steps() == [40, 20]


def test_another_release_is_refused_unless_it_is_told(mine: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    before = sorted(mine.folder.iterdir())
    begin(mine, replace(MINE, release="exp-8"), Wish(NEVER))
    with pytest.raises(
        SettingsError, match=r"resume is never, and .* release exp-7 in namespace team-a, up to step 60"
    ):
        train(mine, 80)
    begin(mine, replace(MINE, release="exp-8"), Wish(40))
    with pytest.raises(SettingsError, match="which are not this release's to move"):
        train(mine, 80)
    assert sorted(mine.folder.iterdir()) == before
    assert _guard(TRAINING, Settings(max_steps=80), mine.place) == 2
    begin(mine, replace(MINE, release="exp-8"), Wish(LATEST))
    assert train(mine, 80) == 0
    assert f"restored step 60 from {mine.folder}/ckpt-60" in caplog.text
    assert [run["release"] for run in read_runs(mine.folder)] == ["exp-7", "exp-8"]


@pytest.mark.parametrize(("resume", "step"), [(LATEST, 60), (40, 40)])
def test_a_release_begins_from_another_one(
    mine: Trainer, tmp_path: Path, resume: str | int, step: int, caplog: pytest.LogCaptureFixture
) -> None:
    source, target = mine.folder, tmp_path / "target"
    before = {path: path.read_bytes() for path in source.rglob("*") if path.is_file()}
    begin(mine, replace(MINE, release="exp-8"), Wish(resume, str(source), "exp-7"), target)
    assert train(mine, 80) == 0
    assert f"restored step {step} from {target}/ckpt-{step}" in caplog.text
    assert {path: path.read_bytes() for path in source.rglob("*") if path.is_file()} == before
    run = {"release": "exp-8", "namespace": "team-a", "run": "1", "source": "exp-7", "step": step}
    assert read_runs(target) == [run]
    # Later starts need the source no more.
    mine.place = replace(mine.place, resume=Wish(resume, "/gone", "exp-7"))
    assert train(mine, 100) == 0
    assert f"restored step 80 from {target}/ckpt-80" in caplog.text


def test_a_damaged_checkpoint_of_another_release_is_passed_over(
    mine: Trainer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    next(mine.folder.glob("ckpt-60.data-*")).write_bytes(b"short")
    source, target = mine.folder, tmp_path / "target"
    begin(mine, replace(MINE, release="exp-8"), Wish(60, str(source), "exp-7"), target)
    with pytest.raises(SettingsError, match=r"no checkpoint of step 60 that can be used .*there are steps 20, 40, 60"):
        train(mine, 80)
    begin(mine, replace(MINE, release="exp-8"), Wish(LATEST, str(source), "exp-7"), target)
    assert train(mine, 80) == 0
    assert f"restored step 40 from {target}/ckpt-40" in caplog.text


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"model": "lstm"}, "run.resumeRelease: the checkpoints belong to the model 'lstm'"),
        ({"format": 2}, "has format 2"),
    ],
)
def test_a_release_of_another_model_is_no_source(
    mine: Trainer, tmp_path: Path, change: dict[str, Any], refusal: str
) -> None:
    origin = mine.folder / "origin.json"
    origin.write_text(json.dumps({**json.loads(origin.read_text()), **change}))
    begin(mine, replace(MINE, release="exp-8"), Wish(LATEST, str(mine.folder), "exp-7"), tmp_path / "target")
    with pytest.raises(SettingsError, match=refusal):
        train(mine, 80)
    assert not list((tmp_path / "target").glob("ckpt-*"))


def test_a_source_whose_origin_cannot_be_read_is_none(mine: Trainer, tmp_path: Path) -> None:
    (mine.folder / "origin.json").write_text("{")
    begin(mine, replace(MINE, release="exp-8"), Wish(LATEST, str(mine.folder), "exp-7"), tmp_path / "target")
    with pytest.raises(TrainingError, match=r"origin\.json cannot be read"):
        train(mine, 80)
    assert not list((tmp_path / "target").glob("ckpt-*"))


def test_a_release_without_checkpoints_is_no_source(trainer: Trainer, tmp_path: Path) -> None:
    begin(trainer, MINE, Wish(LATEST, str(tmp_path / "nothing"), "exp-6"))
    with pytest.raises(SettingsError, match=r"release exp-6 has no checkpoint that can be used .*where there are none"):
        train(trainer, 20)


def test_a_beginning_that_was_cut_short_is_done_again(mine: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    moved: list[str] = []
    rename = tf.io.gfile.rename

    def fail_later(source: str, target: str, overwrite: bool = False) -> None:
        if "earlier" in target:
            moved.append(source)
        if len(moved) == 4:
            raise OSError(5, "Input/output error")
        rename(source, target, overwrite)

    begin(mine, replace(MINE, run="2"), Wish(NEVER))
    monkeypatch.setattr(tf.io.gfile, "rename", fail_later)
    with pytest.raises(TrainingError, match=r"the run cannot begin in .*Input/output error"):
        train(mine, 40)
    monkeypatch.setattr(tf.io.gfile, "rename", rename)
    assert train(mine, 40) == 0
    assert mine.steps() == [40, 20, 0]
    aside = Trainer(mine.folder)
    aside.folder = mine.folder / "earlier" / "1"
    assert aside.steps() == [60, 40, 20]


@pytest.mark.parametrize("wish", [Wish(LATEST), Wish(NEVER), Wish(40)])
def test_others_wait_until_the_leader_has_begun(
    mine: Trainer, wish: Wish, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run_folder, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(run_folder, "_PATIENCE_SECONDS", 0.0)
    begin(mine, replace(MINE, run="2"), wish)
    evaluator = RunFolder(replace(mine.place, task_type=EVALUATOR))
    begun: list[int] = []
    waiting = threading.Thread(target=lambda: begun.append(evaluator.begin()))
    waiting.start()
    wait_for(lambda: "waiting until the leading task has begun the run" in caplog.text)
    assert not begun
    assert RunFolder(mine.place).begin() == (40 if wish == Wish(40) else 0)
    waiting.join(30)
    assert begun == [40 if wish == Wish(40) else 0]


def test_nothing_is_waited_for_in_an_empty_folder(trainer: Trainer) -> None:
    begin(trainer, MINE, Wish(NEVER))
    assert RunFolder(replace(trainer.place, task_type=EVALUATOR)).begin() == 0


def test_an_origin_that_cannot_be_read_decides_nothing(mine: Trainer) -> None:
    (mine.folder / "origin.json").write_text("{")
    before = sorted(mine.folder.iterdir())
    for wish in (Wish(NEVER), Wish(LATEST), Wish(40)):
        begin(mine, MINE, wish)
        with pytest.raises(TrainingError, match=r"origin.json cannot be read: .*; restore it, or remove it"):
            train(mine, 80)
    assert sorted(mine.folder.iterdir()) == before


def wait_for(condition: Callable[[], bool]) -> None:
    done = threading.Event()
    for _ in range(3000):
        if condition():
            return
        done.wait(0.01)
    raise AssertionError("not in time")


class Killed(BaseException):
    pass


@pytest.mark.parametrize("wish", [Wish(NEVER), Wish(20)])
@pytest.mark.parametrize("moved", range(6))
def test_set_aside_goes_on_after_a_stop_anywhere(
    mine: Trainer, wish: Wish, moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in mine.folder.glob("ckpt-[46]*")}
    begin(mine, replace(MINE, run="2"), wish)
    rename, count = tf.io.gfile.rename, itertools.count()

    def stop(source: str, target: str, overwrite: bool = False) -> None:
        if "/earlier/" in target and next(count) == moved:
            raise Killed
        rename(source, target, overwrite=overwrite)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(tf.io.gfile, "rename", stop)
        RunFolder(mine.place).begin()
    RunFolder(mine.place).begin()
    aside = mine.folder / "earlier" / "1"
    assert {path.name: path.read_bytes() for path in aside.glob("ckpt-[46]*")} == before
    assert (aside / "origin.json").exists() and (aside / "evaluations.json").exists()
    assert [path.name for path in (mine.folder / "earlier").iterdir()] == ["1"]


def test_what_is_set_aside_stays_after_many_runs(mine: Trainer) -> None:
    origin = json.loads((mine.folder / "origin.json").read_text())
    origin["runs"] = [{**origin["runs"][0], "run": str(number)} for number in range(50)]
    (mine.folder / "origin.json").write_text(json.dumps(origin))
    for run in ("51", "52"):
        begin(mine, replace(MINE, run=run), Wish(NEVER))
        train(mine, 20)
    earlier = {path.name: Checkpoints(str(path)).steps() for path in (mine.folder / "earlier").iterdir()}
    assert earlier == {"50": [60, 40, 20], "51": [20, 0]}


def test_a_copy_is_made_again_after_a_stop(mine: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(mine, replace(MINE, release="exp-8"), Wish(LATEST, str(mine.folder), "exp-7"), tmp_path / "target")

    def stop(origin: Origin, run: RunStart) -> Origin:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(run_folder, "add_run", stop)
        RunFolder(mine.place).begin()
    assert mine.steps() == [60]
    assert RunFolder(mine.place).begin() == 60


def test_others_wait_between_the_copy_and_its_origin(
    mine: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(mine, replace(MINE, release="exp-8"), Wish(LATEST, str(mine.folder), "exp-7"), tmp_path / "target")
    seen: list[int] = []

    def look(origin: Origin, run: RunStart) -> Origin:
        waiting = threading.Thread(
            target=lambda: seen.append(RunFolder(replace(mine.place, task_type=EVALUATOR)).begin())
        )
        waiting.start()
        waiting.join(1)
        assert not seen and waiting.is_alive()
        return add_run(origin, run)

    monkeypatch.setattr(run_folder, "add_run", look)
    assert RunFolder(mine.place).begin() == 60
