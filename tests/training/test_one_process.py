"""What a training does to its checkpoints and says about its errors, in this process: no cluster is needed for that."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.small_training import (
    TRAINING,
    Settings,
    Trainer,
    Weights,
    build_model,
    build_optimizer,
    read_examples,
    square_by_hand,
    write_records,
)
from trainchart_training import Hook, Shard, Training, TrainingError

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]


def test_it_trains_saves_evaluates_and_exports(trainer: Trainer) -> None:
    import numpy as np
    import tensorflow as tf

    assert trainer.run(max_steps=300) == 0
    assert trainer.steps() == [300, 280]
    progress = trainer.progress()
    assert progress["step"] == 300
    assert progress["metrics"]["test_loss"] < 0.5
    served = tf.saved_model.load(str(trainer.folder / "saved_model")).signatures["serving_default"]
    inputs = np.ones((3, 4), "float32")
    assert served(inputs=tf.constant(inputs))["outputs"].shape == (3, 1)
    _check_record(trainer.folder / "saved_model", step=300)
    assert tf.train.latest_checkpoint(str(trainer.folder)) == str(trainer.folder / "ckpt-300")


def test_leader_makes_the_folder_of_the_parts(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there before TensorFlow asks any task to write, and TensorFlow uses it: it removes it when it has saved."""
    from trainchart_training.saving import checkpoints

    found: list[bool] = []
    plan = checkpoints._checkpoint

    def plan_and_look(state: Any) -> Any:
        found.append((trainer.folder / f"ckpt-{int(state.step.numpy())}_temp").is_dir())
        return plan(state)

    monkeypatch.setattr(checkpoints, "_checkpoint", plan_and_look)
    assert trainer.run(max_steps=40) == 0
    assert found == [True, True, True]
    assert not list(trainer.folder.glob("*_temp"))


def _check_record(export: Path, step: int) -> None:
    """Check what an export says of itself: `sha256sum` must find every file of it as listed."""
    subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=export, check=True, stdout=subprocess.DEVNULL
    )
    listed = [line.split("  ", 1)[1] for line in (export / "SHA256SUMS").read_text().splitlines()]
    files = {str(path.relative_to(export)) for path in export.rglob("*") if path.is_file()}
    assert listed == sorted(files - {"SHA256SUMS"})
    record = json.loads((export / "assets.extra" / "export.json").read_text())
    assert record == {"format": 1, "strategy": "single", "step": step}


def test_a_training_goes_on_where_it_was_and_not_beyond_its_end(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    steps: list[tuple[str, int]] = []

    class Watch(Hook):
        def begin(self, model: Any, step: int) -> None:
            steps.append(("begin", step))

        def saved(self, step: int, path: str) -> None:
            steps.append(("saved", step))

        def end(self, model: Any, step: int) -> None:
            steps.append(("end", step))

    training = replace(TRAINING, hooks=[Watch()])
    assert trainer.run(training, max_steps=40) == 0
    assert trainer.run(training, max_steps=60) == 0
    assert steps == [
        *[("saved", 0), ("begin", 0), ("saved", 20), ("saved", 40), ("end", 40)],
        *[("begin", 40), ("saved", 60), ("end", 60)],
    ]
    steps.clear()
    assert trainer.run(training, max_steps=60) == 0
    assert steps == []


def test_same_seed_gives_same_weights_and_another_gives_others(tmp_path: Path) -> None:
    def train_in(name: str, seed: int) -> Any:
        (tmp_path / name).mkdir()
        weights = Weights()
        assert Trainer(tmp_path / name).run(replace(TRAINING, hooks=[weights]), max_steps=20, seed=seed) == 0
        return weights.last[0]

    first, second, other = train_in("first", 1), train_in("second", 1), train_in("other", 2)
    assert (first == second).all()
    assert (first != other).any()


def test_a_stop_saves_at_once(trainer: Trainer) -> None:
    class Stop(Hook):
        def logged(self, step: int, values: Any) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    training = replace(TRAINING, hooks=[Stop()])
    assert trainer.run(training, max_steps=1000, checkpoint_steps=500, log_steps=30) == 128 + signal.SIGTERM
    signal.alarm(0)
    assert trainer.steps() == [30, 0]
    assert not (trainer.folder / "saved_model").exists()


def test_a_stop_in_the_last_step_exports_nothing_less(trainer: Trainer) -> None:
    class Stop(Hook):
        def logged(self, step: int, values: Any) -> None:
            os.kill(os.getpid(), signal.SIGTERM)

    assert trainer.run(replace(TRAINING, hooks=[Stop()]), max_steps=20) == 0
    signal.alarm(0)
    assert (trainer.folder / "saved_model").exists()


def test_result_that_was_not_exported_is_exported_next_time(trainer: Trainer) -> None:
    class Die(Hook):
        def saved(self, step: int, path: str) -> None:
            if step == 40:
                raise RuntimeError("died between the last checkpoint and the end")

    with pytest.raises(TrainingError, match=r"Die\.saved failed: RuntimeError: died between"):
        trainer.run(replace(TRAINING, hooks=[Die()]), max_steps=40)
    assert trainer.steps()[0] == 40
    assert not (trainer.folder / "saved_model").exists()
    assert trainer.run(max_steps=40) == 0
    assert (trainer.folder / "saved_model").exists()


@pytest.mark.parametrize("damage", ["cut", "gone", "flipped", "marker"])
def test_a_damaged_checkpoint_is_passed_over(trainer: Trainer, damage: str) -> None:
    assert trainer.run(max_steps=40) == 0
    data, marker = trainer.folder / "ckpt-40.data-00000-of-00001", trainer.folder / "ckpt-40.json"
    content = data.read_bytes()
    if damage == "cut":
        data.write_bytes(content[:-10])
    elif damage == "gone":
        data.unlink()
    elif damage == "flipped":
        middle = len(content) // 2
        data.write_bytes(content[:middle] + bytes(byte ^ 255 for byte in content[middle:]))
    else:
        marker.write_text("{")
    begun: list[int] = []

    class Watch(Hook):
        def begin(self, model: Any, step: int) -> None:
            begun.append(step)

    assert trainer.run(replace(TRAINING, hooks=[Watch()]), max_steps=60) == 0
    assert begun == [20]
    assert trainer.steps() == [60, 40]


@pytest.mark.parametrize("damage", ["", "[1]", "\xff"])
def test_damaged_evaluations_are_begun_anew(trainer: Trainer, damage: str) -> None:
    trainer.folder.mkdir()
    book = trainer.folder / "evaluations.json"
    book.write_text(damage, encoding="latin-1")

    assert trainer.run(max_steps=5) == 0

    assert list(json.loads(book.read_text())) == ["5"]


def test_evaluations_are_json_whatever_is_measured(tmp_path: Path) -> None:
    from trainchart_training.leading.evaluation import EvaluationBook

    book = EvaluationBook(str(tmp_path), "worker")
    metrics = {"loss": math.inf, "gain": -math.inf, "error": math.nan, "accuracy": 0.5}
    book.add(5, metrics)

    assert json.loads((tmp_path / "evaluations.json").read_text(), parse_constant=pytest.fail) == {
        "5": {"loss": "Infinity", "gain": "-Infinity", "error": "NaN", "accuracy": 0.5}
    }
    assert book.read()[5] == pytest.approx(metrics, nan_ok=True)


def test_when_no_checkpoint_can_be_read_nothing_is_overwritten(trainer: Trainer) -> None:
    assert trainer.run(max_steps=40) == 0
    for data in trainer.folder.glob("*.index"):
        data.write_bytes(b"")
    before = sorted(path.name for path in trainer.folder.iterdir())
    with pytest.raises(TrainingError, match=r"none of the 2 checkpoints in .* can be read: repair the storage"):
        trainer.run(max_steps=60)
    assert sorted(path.name for path in trainer.folder.iterdir()) == before


def test_another_models_checkpoint_is_refused(trainer: Trainer) -> None:
    assert trainer.run(max_steps=20) == 0
    with pytest.raises(TrainingError, match=r"belongs to another model: .*kernel is float32 \[4, 9\] here.* \[4, 8\]"):
        trainer.run(max_steps=40, hidden=9)
    assert trainer.run(max_steps=40) == 0


def test_it_ends_early_when_it_gets_no_better(trainer: Trainer) -> None:
    assert trainer.run(max_steps=10_000, learning_rate=0.0, early_stop_evaluations=2) == 0
    assert trainer.steps() == [60, 40]
    # That was the end: a process that is started again does nothing.
    assert trainer.run(max_steps=10_000, learning_rate=0.0, early_stop_evaluations=2) == 0
    assert trainer.steps() == [60, 40]
    # Without early stopping it goes on, and the last step is the end.
    for _ in range(2):
        assert trainer.run(max_steps=80, learning_rate=0.0) == 0
        assert trainer.steps() == [80, 60]


@pytest.mark.parametrize("evaluators", [0, 1])
def test_failed_early_end_is_completed_by_the_next_process(trainer: Trainer, evaluators: int) -> None:
    from trainchart_training.leading.evaluation import EvaluationBook

    trainer.place = replace(trainer.place, evaluators=evaluators)
    settings = {"max_steps": 10_000, "early_stop_evaluations": 2, "learning_rate": 0.0}

    class Upload(Hook):
        def begin(self, model: Any, step: int) -> None:
            self.answers = iter([ConnectionError("no route to the archive")] if step == 0 else [])

        def saved(self, step: int, path: str) -> None:
            if evaluators:
                EvaluationBook(str(trainer.folder), "evaluator").add(step, {"loss": 1.0})

        def end(self, model: Any, step: int) -> None:
            ended.append(step)
            for answer in self.answers:
                raise answer

    ended: list[int] = []
    training = replace(TRAINING, hooks=[Upload()])
    with pytest.raises(TrainingError, match=r"Upload\.end failed: ConnectionError: no route to the archive"):
        trainer.run(training, **settings)
    (stopped,) = ended
    assert make_evaluator(trainer, **settings).look() is False
    for _ in range(2):
        assert trainer.run(training, **settings) == 0
    assert ended == [stopped] * 2
    assert trainer.steps()[0] == stopped
    assert make_evaluator(trainer, **settings).look() is True


def test_a_loss_far_below_one_is_no_zero(trainer: Trainer) -> None:
    """Rounded behind the point, it would end early as one that got no better."""

    def shrink(targets: Any, outputs: Any) -> Any:
        return (targets - outputs) ** 2 * 1e-7

    settings = {"max_steps": 40, "checkpoint_steps": 5, "early_stop_evaluations": 2, "learning_rate": 0.001}
    assert trainer.run(replace(TRAINING, loss=shrink), **settings) == 0
    assert trainer.steps()[0] == 40
    assert 0 < trainer.progress()["metrics"]["test_loss"] < 1e-4


@pytest.mark.parametrize(("mode", "falls"), [("auto", True), ("min", True), ("max", False)])
def test_keras_knows_which_of_its_metrics_shall_fall(mode: str, falls: bool) -> None:
    import keras

    from trainchart_training.leading.evaluation import shall_fall

    training = replace(TRAINING, metrics=lambda: [keras.metrics.BinaryCrossentropy(), keras.metrics.BinaryAccuracy()])
    settings = Settings(early_stop_metric="binary_crossentropy", early_stop_mode=mode)
    assert shall_fall(training, settings) is falls
    if mode == "auto":
        assert shall_fall(training, Settings(early_stop_metric="loss"))
        assert not shall_fall(training, Settings(early_stop_metric="binary_accuracy"))


def test_evaluations_of_a_former_training_in_folder_are_dropped(trainer: Trainer) -> None:
    from trainchart_training.leading.evaluation import EvaluationBook

    trainer.folder.mkdir()
    book = EvaluationBook(str(trainer.folder), "worker")
    for step in (0, 40, 60):
        book.add(step, {"loss": -1.0})
    assert trainer.run(max_steps=40) == 0
    assert [(step, metrics["loss"] > 0) for step, metrics in book.read().items()] == [(40, True)]


def test_evaluator_that_came_first_measures_again_after_a_reset(trainer: Trainer) -> None:
    from trainchart_training.leading.evaluation import EvaluationBook

    trainer.folder.mkdir()
    book = EvaluationBook(str(trainer.folder), "worker")
    book.add(40, {"loss": -1.0})
    evaluator = make_evaluator(trainer, max_steps=40)
    trainer.place = replace(trainer.place, evaluators=1)
    assert trainer.run(max_steps=40) == 0
    assert evaluator.look()
    assert evaluator.last_metrics["loss"] > 0


def test_clipping_bounds_the_step(trainer: Trainer) -> None:
    def build_sgd(settings: Settings) -> Any:
        import keras

        return keras.optimizers.SGD(1.0)

    weights = Weights()
    assert trainer.run(replace(TRAINING, optimizer=build_sgd, hooks=[weights]), max_steps=1, clip_norm=0.001) == 0
    moved = sum(((last - first) ** 2).sum() for first, last in zip(weights.first, weights.last, strict=True)) ** 0.5
    assert moved == pytest.approx(0.001, rel=0.01)


def test_clipping_sums_repeated_rows_of_a_sparse_gradient() -> None:
    import keras
    import tensorflow as tf

    from trainchart_training.strategies.step import clip

    sparse = tf.IndexedSlices(tf.fill([9, 1], 1.0), tf.constant([5, 2, 5, 5, 2, 5, 2, 5, 2]), tf.constant([7, 1]))
    dense = tf.constant([1.0])
    (rows, rest) = clip([sparse, dense], 1.0, keras.optimizers.SGD())
    # Workers in step exchange the same number of rows in each step.
    assert (rows.indices == sparse.indices).numpy().all()
    length = (5**2 + 4**2 + 1**2) ** 0.5
    assert tf.convert_to_tensor(rows)[:, 0].numpy() == pytest.approx([0, 0, 4 / length, 0, 0, 5 / length, 0])
    assert rest.numpy() == pytest.approx([1 / length])


@pytest.mark.parametrize("strategy", ["single", "mirrored"])
def test_another_learning_rate_is_taken_when_a_training_goes_on(trainer: Trainer, strategy: str) -> None:
    def scale(settings: Settings) -> Any:
        import keras

        return keras.optimizers.LossScaleOptimizer(build_optimizer(settings))

    trainer.place = replace(trainer.place, strategy=strategy)
    for optimizer, steps in ((build_optimizer, 20), (scale, 60)):
        shutil.rmtree(trainer.folder, ignore_errors=True)
        weights = Weights()
        training = replace(TRAINING, optimizer=optimizer, hooks=[weights])
        assert trainer.run(training, max_steps=steps) == 0
        assert any((before != after).any() for before, after in zip(weights.first, weights.last, strict=True))
        assert trainer.run(training, max_steps=2 * steps, learning_rate=0.0) == 0
        assert all((before == after).all() for before, after in zip(weights.first, weights.last, strict=True))


def test_half_read_checkpoint_leaves_the_learning_rate_unchanged(trainer: Trainer) -> None:
    import tensorflow as tf

    from trainchart_training.saving.checkpoints import Checkpoints
    from trainchart_training.saving.state import create_state

    assert trainer.run(max_steps=40, learning_rate=0.01) == 0
    marker = trainer.folder / "ckpt-40.json"
    marker.write_text(json.dumps({**json.loads(marker.read_text()), "files": {}}))
    half = create_state(TRAINING, Settings(learning_rate=0.5))
    tf.train.Checkpoint(model=half.model, optimizer=half.optimizer).write(str(trainer.folder / "ckpt-40"))

    state = create_state(TRAINING, Settings(learning_rate=0.25))
    assert Checkpoints(str(trainer.folder)).restore_latest(state) == 20
    assert state.constant_rate.numpy() == 0.25


def test_averages_of_the_weights_are_measured_and_exported(trainer: Trainer) -> None:
    import keras
    import tensorflow as tf

    def average_weights(settings: Settings) -> Any:
        return keras.optimizers.SGD(0.05, use_ema=True, ema_momentum=0.9)

    class Watch(Weights):
        def begin(self, model: Any, step: int) -> None:
            self.trained = model

    weights = Watch()
    training = replace(TRAINING, optimizer=average_weights, hooks=[weights], metrics=list)
    assert trainer.run(training, max_steps=20) == 0
    served = tf.saved_model.load(str(trainer.folder / "saved_model")).signatures["serving_default"]
    inputs = tf.ones((1, 4))
    exported = float(served(inputs=inputs)["outputs"][0, 0])
    assert exported != pytest.approx(float(weights.trained(inputs)[0, 0]), rel=1e-4)
    weights.trained.set_weights(weights.last)
    assert exported == pytest.approx(float(weights.trained(inputs)[0, 0]), rel=1e-5)
    # An evaluator, which sees nothing but checkpoints, measures the same.
    measured = trainer.progress()["metrics"]["test_loss"]
    (trainer.folder / "evaluations.json").unlink()
    from trainchart_training.leading.evaluation import evaluate

    place = replace(trainer.place, task_type="evaluator")
    assert evaluate(training, Settings(max_steps=20), place) == 0
    evaluations = json.loads((trainer.folder / "evaluations.json").read_text())
    assert evaluations["20"]["loss"] == pytest.approx(measured, abs=1e-4)
    # Before the first step there is nothing to average: the weights themselves count.
    assert 0 < evaluations["0"]["loss"] < 100 * measured + 10


def test_a_scale_that_is_too_large_skips_steps_until_it_fits(trainer: Trainer) -> None:
    import keras

    scales: list[Any] = []

    def scale_the_loss(settings: Settings) -> Any:
        # The greatest power of two in float32: gradients beyond 2 overflow.
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.01), initial_scale=2.0**127)
        scales.append(optimizer)
        return optimizer

    assert trainer.run(replace(TRAINING, optimizer=scale_the_loss), max_steps=200, clip_norm=10.0) == 0
    # The first was made to look at the examples.
    assert 0 < float(scales[1].dynamic_scale.numpy()) < 2.0**127
    assert trainer.progress()["metrics"]["test_loss"] < 1.5


@pytest.fixture
def float32_again() -> Iterator[None]:
    import keras

    yield
    keras.mixed_precision.set_global_policy("float32")


def test_float16_step_that_overflows_is_skipped(trainer: Trainer, float32_again: None) -> None:
    import keras
    import numpy as np

    scales: list[Any] = []
    models: list[Any] = []

    def build_in_half(settings: Settings) -> Any:
        keras.mixed_precision.set_global_policy("mixed_float16")
        models.append(build_model(settings))
        return models[-1]

    def scale_the_loss(settings: Settings) -> Any:
        # The greatest float16 is less than 2**16: the gradients of some steps do not fit.
        scales.append(keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(0.02), initial_scale=2.0**24))
        return scales[-1]

    class Watch(Weights):
        def logged(self, step: int, values: Any) -> None:
            # The first model was made to look at the examples.
            seen.append((step, float(scales[1].dynamic_scale.numpy()), models[1].get_weights()))

    seen: list[tuple[int, float, Any]] = []
    weights = Watch()
    loss = keras.losses.MeanSquaredError()
    training = replace(TRAINING, model=build_in_half, optimizer=scale_the_loss, loss=loss, hooks=[weights])

    assert trainer.run(training, max_steps=200, log_steps=1) == 0

    assert {(layer.compute_dtype, layer.variable_dtype) for layer in models[1].layers} == {("float16", "float32")}
    step, scale, skipped = seen[0]
    assert (step, scale) == (1, 2.0**23)
    assert all((before == after).all() for before, after in zip(weights.first, skipped, strict=True))
    assert seen[-1][1] < 2.0**20
    assert all(np.isfinite(array).all() for array in weights.last)
    assert trainer.progress()["metrics"]["test_loss"] < 1.0


def test_a_step_of_the_programs_own_does_what_the_librarys_does(tmp_path: Path) -> None:
    def train_in(name: str, **parts: Any) -> Any:
        (tmp_path / name).mkdir()
        weights = Weights()
        assert Trainer(tmp_path / name).run(replace(TRAINING, hooks=[weights], **parts), max_steps=20) == 0
        return weights.last

    own, plain = train_in("own", step=square_by_hand), train_in("plain")
    assert all(mine == pytest.approx(theirs, abs=1e-6) for mine, theirs in zip(own, plain, strict=True))


def test_histograms_show_weights_and_gradients(trainer: Trainer, tmp_path: Path) -> None:
    import tensorflow as tf

    trainer.place = replace(trainer.place, log_dir=str(tmp_path / "logs"))
    assert trainer.run(max_steps=40, histogram_steps=15) == 0
    (events,) = (tmp_path / "logs" / "worker").glob("events.*")
    found: dict[tuple[int, str], Any] = {}
    for record in tf.data.TFRecordDataset(str(events)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            if value.metadata.plugin_data.plugin_name == "histograms":
                found[event.step, value.tag] = tf.make_ndarray(value.tensor)
    assert {step for step, _ in found} == {15, 30}
    assert {name.split("/")[0] for _, name in found} == {"weights", "gradients"}
    kernel = next(shown for (_, name), shown in found.items() if name.startswith("gradients/") and "kernel" in name)
    assert kernel.shape == (30, 3)
    assert kernel[:, 2].sum() in (4 * 8, 8)
    assert kernel[0, 0] < kernel[-1, 1]


def test_the_graph_of_a_step_is_written_once(trainer: Trainer, tmp_path: Path) -> None:
    import tensorflow as tf

    trainer.place = replace(trainer.place, log_dir=str(tmp_path / "logs"))
    assert trainer.run(max_steps=20) == 0
    assert trainer.run(max_steps=40) == 0
    graphs = []
    for events in (tmp_path / "logs" / "worker").glob("events.*"):
        for record in tf.data.TFRecordDataset(str(events)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            if event.graph_def:
                graphs.append(tf.compat.v1.GraphDef.FromString(event.graph_def))
    (graph,) = graphs
    operations = [node.op for node in graph.node]
    # Forwards through two layers; and backwards, but for the gradient of the examples.
    assert operations.count("MatMul") == 2 + 3
    assert "Relu" in operations
    features, _ = [node for node in graph.node if node.op == "Placeholder" and node.name in ("features", "targets")]
    assert [size.size for size in features.attr["shape"].shape.dim] == [16, 4]


def test_the_graph_asks_for_no_examples_of_other_workers() -> None:
    from trainchart_training.leading.model_views import trace_gradients

    asked = []

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        asked.append((split, shard))
        return read_examples(split, shard, settings)

    graph = trace_gradients(replace(TRAINING, examples=read), Settings(), Shard(0, 3))
    assert asked == [("train", Shard(0, 3))]
    assert any(node.type == "MatMul" for node in graph.get_operations())


def test_where_every_variable_lies_is_told(trainer: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "trainchart_training")
    assert trainer.run(max_steps=20, log_device_placement=True) == 0
    placed = [record.getMessage() for record in caplog.records if record.getMessage().startswith("placed ")]
    assert any("/kernel on /job:localhost/replica:0/task:0/device:CPU:0" in line for line in placed)
    # Four weights, Adam's two averages of each, its iterations and rate, and the step.
    assert len(placed) == 4 + 8 + 2 + 1


def test_evaluator_measures_all_checkpoints_and_ends_with_last(trainer: Trainer, tmp_path: Path) -> None:
    from trainchart_training.leading.evaluation import evaluate

    ended: list[int] = []
    place = replace(trainer.place, task_type="evaluator", progress_file=str(tmp_path / "evaluator.json"))
    settings = Settings(max_steps=60, keep_checkpoints=10)
    evaluator = threading.Thread(target=lambda: ended.append(evaluate(TRAINING, settings, place)), daemon=True)
    trainer.place = replace(trainer.place, evaluators=1)
    assert trainer.run(max_steps=40, keep_checkpoints=10) == 0
    evaluator.start()
    assert trainer.run(max_steps=60, keep_checkpoints=10) == 0
    evaluator.join(60)
    assert ended == [0]
    evaluations = json.loads((trainer.folder / "evaluations.json").read_text())
    assert list(evaluations) == ["0", "20", "40", "60"]
    assert evaluations["60"]["loss"] < evaluations["0"]["loss"]
    assert json.loads((tmp_path / "evaluator.json").read_text())["step"] == 60


def test_damaged_checkpoint_does_not_displace_earlier_ones(trainer: Trainer) -> None:
    assert trainer.run(max_steps=40) == 0
    (trainer.folder / "ckpt-40.index").write_bytes(b"cut")

    class Killed(Hook):
        def logged(self, step: int, values: Any) -> None:
            if step >= 35:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trainer.run(
            replace(TRAINING, hooks=[Killed()]), max_steps=60, checkpoint_steps=10, log_steps=5, keep_checkpoints=1
        )
    assert trainer.steps() == [40, 30]


def serve(trainer: Trainer, training: Training, features_of: Callable[[Any], Any]) -> tuple[set[str], dict[str, Any]]:
    """Train a while on examples with `features_of` theirs; return names of the result's inputs and its outputs."""
    import tensorflow as tf

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        return read_examples(split, shard, settings).map(lambda inputs, targets: (features_of(inputs), targets))

    assert trainer.run(replace(training, examples=read), max_steps=5) == 0
    signature = tf.saved_model.load(str(trainer.folder / "saved_model")).signatures["serving_default"]
    inputs = signature.structured_input_signature[1]
    return set(inputs), signature(**{name: tf.ones([3, *spec.shape[1:]]) for name, spec in inputs.items()})


def build_from_two(settings: Settings) -> Any:
    import keras

    parts = [keras.Input((2,), name="front"), keras.Input((2,), name="back")]
    return keras.Model(parts, keras.layers.Dense(1)(keras.layers.Concatenate()(parts)))


def test_features_may_be_a_tuple(trainer: Trainer) -> None:
    names, outputs = serve(trainer, replace(TRAINING, model=build_from_two), lambda item: (item[:2], item[2:]))
    assert names == {"inputs_0", "inputs_1"}
    assert outputs["outputs"].shape == (3, 1)


FEATURES = ("length (cm)", "2nd", "class", "self", "name", "function")


def test_features_may_have_any_names(trainer: Trainer) -> None:
    def build(settings: Settings) -> Any:
        import keras

        parts = {name: keras.Input((1,), name=name) for name in FEATURES}
        return keras.Model(parts, keras.layers.Dense(1)(keras.layers.Concatenate()(list(parts.values()))))

    names, outputs = serve(
        trainer,
        replace(TRAINING, model=build),
        lambda item: dict.fromkeys(FEATURES, item[:1]),
    )
    assert names == {"length__cm_", "arg_2nd", "arg_class", "arg_self", "name", "function"}
    assert outputs["outputs"].shape == (3, 1)


def test_features_of_an_unknown_rank_are_served(trainer: Trainer) -> None:
    import tensorflow as tf

    def forget(item: Any) -> Any:
        return tf.numpy_function(lambda value: value, [item], tf.float32)

    def reshape(model: Any, features: Any) -> Any:
        return {"sums": model(tf.reshape(features, [-1, 4]))}

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        return read_examples(split, shard, settings).map(lambda inputs, targets: (forget(inputs), targets))

    def give_shape(features: Any, targets: Any) -> Any:
        return tf.reshape(features, [-1, 4]), targets

    training = replace(TRAINING, examples=read, serve=reshape, augment=give_shape)
    assert trainer.run(replace(training, metrics=tuple), max_steps=5) == 0


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda outputs: [outputs, outputs * 2.0], {"outputs_0", "outputs_1"}),
        (lambda outputs: {"sum": outputs, "double": outputs * 2.0}, {"sum", "double"}),
    ],
)
def test_all_outputs_of_a_model_are_served(trainer: Trainer, make: Callable[[Any], Any], names: set[str]) -> None:
    import tensorflow as tf

    def build(settings: Settings) -> Any:
        import keras

        inputs = keras.Input((4,))
        return keras.Model(inputs, make(keras.layers.Dense(1)(inputs)))

    def measure_first(targets: Any, outputs: Any) -> Any:
        return (targets - tf.nest.flatten(outputs)[0]) ** 2

    training = replace(TRAINING, model=build, loss=measure_first)
    _, outputs = serve(trainer, training, lambda item: item)
    assert set(outputs) == names


def test_model_with_seeded_recurrent_dropout_is_served(trainer: Trainer) -> None:
    def build(settings: Settings) -> Any:
        import keras

        steps = keras.layers.Reshape((4, 1))
        return keras.Sequential([keras.Input((4,)), steps, keras.layers.LSTM(4, dropout=0.1), keras.layers.Dense(1)])

    _, outputs = serve(trainer, replace(TRAINING, model=build), lambda item: item)
    assert outputs["outputs"].shape == (3, 1)


def build_with_lists(settings: Settings) -> Any:
    """Return a model with variables and tables in lists and dictionaries of a layer, as a residual block has them."""
    import keras
    import tensorflow as tf

    class Block(keras.layers.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.parts = [keras.layers.Dense(4) for _ in range(2)]
            self.norms = {"front": keras.layers.BatchNormalization(), "back": keras.layers.BatchNormalization()}
            self.dropout = keras.layers.Dropout(0.1)
            self.lookups = {"sign": keras.layers.IntegerLookup(vocabulary=[-1, 0, 1])}
            entries = tf.lookup.KeyValueTensorInitializer([1, 2, 3], [1.0, 2.0, 3.0], tf.int64, tf.float32)
            self.tables = [tf.lookup.StaticHashTable(entries, 0.0)]

        def build(self, shape: Any) -> None:
            for part, norm in zip(self.parts, self.norms.values(), strict=True):
                part.build((None, 4))
                norm.build((None, 4))

        def call(self, inputs: Any, training: bool = False) -> Any:
            signs = self.lookups["sign"](tf.cast(tf.sign(inputs), tf.int64))
            features = inputs + self.tables[0].lookup(tf.cast(signs, tf.int64))
            for part, norm in zip(self.parts, self.norms.values(), strict=True):
                features = norm(part(features), training=training)
            return self.dropout(features, training=training)

    return keras.Sequential([keras.Input((4,)), Block(), keras.layers.Dense(1)])


def test_what_layers_keep_in_lists_is_restored_and_exported(trainer: Trainer) -> None:
    import tensorflow as tf

    from trainchart_training.saving.checkpoints import Checkpoints
    from trainchart_training.saving.state import create_state

    def decay(settings: Settings) -> Any:
        import keras

        return keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, 100), use_ema=True)

    training = replace(TRAINING, model=build_with_lists, optimizer=decay)
    _, outputs = serve(trainer, training, lambda item: item)
    assert outputs["outputs"].shape == (3, 1)

    first, second = (create_state(training, Settings()) for _ in range(2))
    for number, variable in enumerate(first.saved_variables):
        variable.assign(tf.cast(tf.fill(variable.shape, number), variable.dtype))
    Checkpoints(str(trainer.folder)).save(first)
    assert Checkpoints(str(trainer.folder)).restore(second, int(first.step.numpy())) == ""
    for number, variable in enumerate(second.saved_variables):
        assert (variable.numpy() == number).all(), number


def test_a_variable_is_exported_once(trainer: Trainer) -> None:
    import tensorflow as tf

    assert trainer.run(max_steps=20) == 0
    exported = tf.train.list_variables(str(trainer.folder / "saved_model" / "variables" / "variables"))
    shapes = [shape for name, shape in exported if name.endswith("VARIABLE_VALUE")]
    assert sorted(shapes) == [[1], [4, 8], [8], [8, 1]]


def test_several_outputs_are_measured() -> None:
    import tensorflow as tf

    from trainchart_training.leading.evaluation import Measure

    def both(features: Any, training: bool) -> dict[str, Any]:
        return {"sum": tf.reduce_sum(features, -1, keepdims=True), "first": features[:, :1]}

    measure = Measure(replace(TRAINING, loss=lambda targets, outputs: targets - outputs["sum"]), Settings(), both)
    assert abs(measure()["loss"]) < 1e-3
    assert measure.examples == 200


@pytest.fixture
def damaged(trainer: Trainer) -> Trainer:
    """A training with an evaluator that has ended at step 40, whose checkpoint was cut short an hour ago."""
    trainer.place = replace(trainer.place, evaluators=1)
    assert trainer.run(max_steps=40, keep_checkpoints=10) == 0
    data = trainer.folder / "ckpt-40.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-10])
    for path in trainer.folder.glob("ckpt-40.*"):
        os.utime(path, (path.stat().st_mtime - 3600,) * 2)
    return trainer


def make_evaluator(trainer: Trainer, **settings: Any) -> Any:
    from trainchart_training.leading.evaluation import Evaluator

    return Evaluator(TRAINING, Settings(**settings), replace(trainer.place, task_type="evaluator"))


@pytest.mark.parametrize("damage", ["cut", "marker"])
def test_evaluator_skips_damaged_checkpoint_until_rewritten(
    damaged: Trainer, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    if damage == "marker":
        (damaged.folder / "ckpt-40.json").write_text("{")
    evaluator = make_evaluator(damaged, max_steps=60)
    book = damaged.folder / "evaluations.json"

    assert not evaluator.look()
    assert not evaluator.look()

    assert list(json.loads(book.read_text())) == ["0", "20"]
    told = [record.getMessage() for record in caplog.records if "damaged" in record.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("the checkpoint of step 40 is damaged and was not evaluated: ")
    assert damaged.run(max_steps=60, keep_checkpoints=10) == 0
    assert evaluator.look()
    assert list(json.loads(book.read_text())) == ["0", "20", "40", "60"]


def test_the_evaluator_measures_anew_what_the_leader_made_anew(damaged: Trainer) -> None:
    from trainchart_training.leading.evaluation import EvaluationBook

    book = EvaluationBook(str(damaged.folder), "worker")
    book.add(40, {"loss": -1.0})
    evaluator = make_evaluator(damaged, max_steps=60)
    assert not evaluator.look()
    assert evaluator.last_metrics == {"loss": -1.0}

    assert damaged.run(max_steps=60, keep_checkpoints=10) == 0
    # Measured when the leader had just begun.
    book.add(40, {"loss": -1.0})

    assert evaluator.look()
    assert [metrics["loss"] > 0 for metrics in book.read().values()] == [True] * 4
    assert damaged.progress()["step"] == 60
    assert evaluator.last_metrics["loss"] > 0


def test_a_marker_under_way_makes_no_checkpoint_anew(trainer: Trainer) -> None:
    trainer.place = replace(trainer.place, evaluators=1)
    assert trainer.run(max_steps=20) == 0
    evaluator = make_evaluator(trainer, max_steps=40)
    assert not evaluator.look()
    book = trainer.folder / "evaluations.json"
    marked = {**json.loads(book.read_text()), "20": {"loss": -1.0}}
    book.write_text(json.dumps(marked))
    # As the leader writes it while it notes the end.
    (trainer.folder / "ckpt-20.json.draft").write_text("{")
    assert not evaluator.look()
    assert json.loads(book.read_text()) == marked


def test_the_evaluator_does_not_end_without_the_last_checkpoint(damaged: Trainer) -> None:
    from trainchart_training.saving.catalogue import EARLY
    from trainchart_training.saving.checkpoints import Checkpoints

    evaluator = make_evaluator(damaged, max_steps=60, early_stop_evaluations=2)
    assert not evaluator.look()
    Checkpoints(str(damaged.folder)).mark_ending(40, EARLY)
    with pytest.raises(TrainingError, match=r"the last checkpoint, step 40 in .*, cannot be read: .* bytes instead of"):
        evaluator.look()


def test_the_evaluator_refuses_another_models_checkpoint(trainer: Trainer) -> None:
    assert trainer.run(max_steps=20) == 0
    (trainer.folder / "evaluations.json").unlink()
    with pytest.raises(TrainingError, match="belongs to another model"):
        make_evaluator(trainer, max_steps=20, hidden=9).look()


def test_unreadable_marker_of_measured_checkpoint_is_logged_once(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    trainer.place = replace(trainer.place, evaluators=1)
    assert trainer.run(max_steps=20) == 0
    evaluator = make_evaluator(trainer, max_steps=40)
    assert not evaluator.look()
    (trainer.folder / "ckpt-20.json").write_text("{")
    assert not evaluator.look()
    assert not evaluator.look()
    assert [record.getMessage() for record in caplog.records if "cannot read the marker" in record.getMessage()] == [
        "cannot read the marker of step 20: JSONDecodeError: Expecting property name enclosed in double quotes:"
        " line 1 column 2 (char 1)"
    ]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator waits no time for a marker that cannot be read to be written again."""
    from trainchart_training.leading import evaluation

    monkeypatch.setattr(evaluation, "DOUBT_SECONDS", 0.0)


def test_evaluator_gives_up_on_a_damaged_last_marker(damaged: Trainer, hasty: None) -> None:
    (damaged.folder / "ckpt-40.json").write_text("{")
    assert not make_evaluator(damaged, max_steps=60).look(), "not the last one"
    said = r"the last checkpoint, step 40 in .*, cannot be read: .*; repair the storage"
    with pytest.raises(TrainingError, match=said):
        make_evaluator(damaged, max_steps=40).look()


def test_evaluator_ends_with_a_measured_last_checkpoint(trainer: Trainer, hasty: None) -> None:
    trainer.place = replace(trainer.place, evaluators=1)
    assert trainer.run(max_steps=20) == 0
    (trainer.folder / "ckpt-20.json").write_text("{")
    evaluator = make_evaluator(trainer, max_steps=20)
    # Of the evaluator before this one.
    evaluator._book.add(20, {"loss": 1.0})
    assert evaluator.look()


@pytest.mark.parametrize(("losses", "is_last"), [((2.0, 1.0, 1.0), True), ((3.0, 2.0, 1.0), False)])
def test_evaluator_knows_an_early_end_from_the_results(
    damaged: Trainer, hasty: None, losses: Sequence[float], is_last: bool
) -> None:
    (damaged.folder / "ckpt-40.json").write_text("{")
    evaluator = make_evaluator(damaged, max_steps=60, early_stop_evaluations=1)
    for step, loss in zip((0, 20, 40), losses, strict=True):
        evaluator._book.add(step, {"loss": loss})
    assert evaluator.look() == is_last


def test_a_marker_that_may_be_written_again_is_waited_for(damaged: Trainer) -> None:
    (damaged.folder / "ckpt-40.json").write_text("{")
    evaluator = make_evaluator(damaged, max_steps=40)
    assert not evaluator.look()
    assert damaged.run(max_steps=40, keep_checkpoints=10) == 0
    assert evaluator.look()


def test_another_strategy_goes_on_with_the_same_checkpoint(trainer: Trainer) -> None:
    weights = Weights()
    assert trainer.run(replace(TRAINING, hooks=[weights]), max_steps=20) == 0
    last = weights.last
    trainer.place = replace(trainer.place, strategy="mirrored")
    assert trainer.run(replace(TRAINING, hooks=[weights]), max_steps=40) == 0
    assert all((before == after).all() for before, after in zip(last, weights.first, strict=True))
    assert trainer.steps() == [40, 20]


def test_a_folder_that_was_copied_elsewhere_can_be_restored(trainer: Trainer, tmp_path: Path) -> None:
    assert trainer.run(max_steps=20) == 0
    import tensorflow as tf

    moved = Trainer(tmp_path / "moved")
    shutil.copytree(trainer.folder, moved.folder)
    shutil.rmtree(trainer.folder)
    assert tf.train.latest_checkpoint(str(moved.folder)) == str(moved.folder / "ckpt-20")
    assert moved.run(max_steps=40) == 0
    assert moved.steps() == [40, 20]


@pytest.mark.parametrize(("files", "shards"), [(4, 2), (3, 2), (1, 3), (2, 2)])
def test_every_record_goes_to_one_shard(tmp_path: Path, files: int, shards: int) -> None:
    from trainchart_training.records import read_tfrecords

    pattern = write_records(tmp_path, files, 5)
    found = [[*read_tfrecords(pattern, Shard(index, shards)).as_numpy_iterator()] for index in range(shards)]
    assert all(found)
    assert sorted(record for part in found for record in part) == sorted(
        f"{file}.{n}".encode() for file in range(files) for n in range(5)
    )


def test_device_feeds_are_not_freed_before_the_process_ends(trainer: Trainer) -> None:
    """Where TensorFlow prefetches to devices, each of them has a tuner that could be asleep then."""

    def count() -> int:
        gc.collect()
        return sum(type(item).__name__ == "OwnedIterator" for item in gc.get_objects())

    before = count()
    assert trainer.run() == 0
    assert count() == before + 1


@pytest.mark.parametrize("is_wanted", [True, False])
def test_tuner_that_delays_the_end_is_off_unless_program_sets_it(is_wanted: bool) -> None:
    import tensorflow as tf

    from trainchart_training.strategies.batches import build_batches, build_test_batches

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        options = tf.data.Options()
        options.deterministic = False
        if is_wanted:
            options.autotune.enabled = True
        return TRAINING.examples(split, shard, settings).with_options(options)

    training = replace(TRAINING, examples=read)
    for batches in (build_batches(training, Settings(), Shard(0, 1), seed=1), build_test_batches(training, Settings())):
        assert batches.options().autotune.enabled is is_wanted
        assert batches.options().deterministic is False


def test_records_that_are_not_there_are_named(tmp_path: Path) -> None:
    from trainchart_training.records import read_tfrecords

    with pytest.raises(TrainingError, match=f"no file matches {tmp_path}/train-"):
        read_tfrecords(f"{tmp_path}/train-*", Shard(0, 1))


_STORE = "Error executing an HTTP request: libcurl code 7 when reading metadata of gs://bucket/run"
_EVENTS = (
    "{{function_node __wrapped__FlushSummaryWriter_device_/job:localhost/replica:0/task:0/device:CPU:0}} All 10 retry"
    " attempts failed. The last failure: Error executing an HTTP request: HTTP response code 503\n\t when initiating an"
    " upload to gs://bucket/run/logs/events.v2\n\tFailed to flush 2 events to gs://bucket/run/logs/events.v2\n\tCould"
    " not flush events file. [Op:FlushSummaryWriter] name: "
)


@pytest.mark.parametrize(
    ("strategy", "error", "code", "words"),
    [
        (
            "parameter-server",
            "no connection",
            75,
            "cannot continue: it lost a ps, and the variables with it: no connection",
        ),
        ("single", "no connection", 1, "error: worker 0: no connection"),
        ("parameter-server", _STORE, 1, f"error: worker 0: {_STORE}"),
        (
            "parameter-server",
            _EVENTS,
            1,
            "error: worker 0: All 10 retry attempts failed. The last failure: Error executing an HTTP request: HTTP"
            " response code 503 when initiating an upload to gs://bucket/run/logs/events.v2",
        ),
        ("parameter-server", "/checkpoints/ckpt-20.index; Host is down", 1, "error: worker 0: /checkpoints/ckpt-20"),
        (
            "multi-worker-mirrored",
            "Collective ops is aborted by: Shape mismatch in the collective instance 7",
            1,
            "error: worker 0: the workers' models or examples have different shapes: Collective ops",
        ),
        (
            "in-graph",
            "ValueError: Could not find callback with key=pyfunc_9 in the registry.",
            1,
            "error: worker 0: a Python function or generator of the examples cannot be called from another process",
        ),
        ("parameter-server", "from /job:ps/task:0; Socket closed", 75, "cannot continue: it lost a ps"),
    ],
)
def test_losing_a_needed_process_is_not_this_ones_fault(
    trainer: Trainer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
    error: str,
    code: int,
    words: str,
) -> None:
    import tensorflow as tf

    from trainchart_training import roles

    def lose(*_: object) -> int:
        raise tf.errors.UnavailableError(None, None, error)

    monkeypatch.setattr(roles, "_play", lose)
    assert roles._guard(TRAINING, Settings(), replace(trainer.place, strategy=strategy)) == code
    assert words in caplog.text
