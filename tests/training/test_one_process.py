"""What a training does to its checkpoints and says about its errors, in this process: no cluster is needed for that."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from trainchart_training import Hook, Hyperparameters, Shard, Training, TrainingError
from trainchart_training.place import Place

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]


@dataclass(frozen=True)
class Settings(Hyperparameters):
    max_steps: int = 40
    checkpoint_steps: int = 20
    log_steps: int = 20
    batch_size: int = 16
    keep_checkpoints: int = 2
    hidden: int = 8
    learning_rate: float = 0.01


def build_model(settings: Settings) -> Any:
    import keras

    layers = [keras.Input((4,)), keras.layers.Dense(settings.hidden, "relu"), keras.layers.Dense(1)]
    return keras.Sequential(layers)


def read_examples(split: str, shard: Shard, settings: Settings) -> Any:
    import numpy as np
    import tensorflow as tf

    inputs = np.random.default_rng(len(split)).normal(size=(200, 4)).astype("float32")[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((inputs, inputs.sum(axis=1, keepdims=True)))


def build_optimizer(settings: Settings) -> Any:
    import keras

    return keras.optimizers.Adam(settings.learning_rate)


def measure_square(targets: Any, outputs: Any) -> Any:
    return (targets - outputs) ** 2


TRAINING = Training(build_model, read_examples, build_optimizer, measure_square, hyperparameters=Settings)


class Trainer:
    """Trains in one folder, as a process of the strategy `single` does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkpoints"
        self.place = Place(checkpoints_dir=str(self.folder), log_dir="", progress_file=str(folder / "progress.json"))

    def run(self, training: Training = TRAINING, **settings: Any) -> int:
        from trainchart_training.roles import _compute

        return _compute(training, Settings(**settings), self.place)

    def steps(self) -> list[int]:
        from trainchart_training.checkpoints import Checkpoints

        return Checkpoints(str(self.folder)).steps()

    def progress(self) -> dict[str, Any]:
        return dict(json.loads(Path(self.place.progress_file).read_text()))


@pytest.fixture
def trainer(tmp_path: Path) -> Iterator[Trainer]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield Trainer(tmp_path)
    signal.alarm(0)
    for number, handler in handlers.items():
        signal.signal(number, handler)


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
    assert tf.train.latest_checkpoint(str(trainer.folder)) == str(trainer.folder / "ckpt-300")


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


class Weights(Hook):
    """Keeps the first and the last weights."""

    def begin(self, model: Any, step: int) -> None:
        self.first = model.get_weights()

    def end(self, model: Any, step: int) -> None:
        self.last = model.get_weights()


def test_the_same_seed_gives_the_same_weights_and_another_one_others(tmp_path: Path) -> None:
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


def test_a_result_that_was_not_exported_is_exported_the_next_time(trainer: Trainer) -> None:
    class Die(Hook):
        def saved(self, step: int, path: str) -> None:
            if step == 40:
                raise RuntimeError("died between the last checkpoint and the end")

    with pytest.raises(RuntimeError):
        trainer.run(replace(TRAINING, hooks=[Die()]), max_steps=40)
    assert trainer.steps()[0] == 40
    shutil.rmtree(trainer.folder / "saved_model")
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


def test_clipping_bounds_the_step(trainer: Trainer) -> None:
    def build_sgd(settings: Settings) -> Any:
        import keras

        return keras.optimizers.SGD(1.0)

    weights = Weights()
    assert trainer.run(replace(TRAINING, optimizer=build_sgd, hooks=[weights]), max_steps=1, clip_norm=0.001) == 0
    moved = sum(((last - first) ** 2).sum() for first, last in zip(weights.first, weights.last, strict=True)) ** 0.5
    assert moved == pytest.approx(0.001, rel=0.01)


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
    from trainchart_training.evaluation import evaluate

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


def square_by_hand(model: Any, features: Any, targets: Any) -> tuple[Any, Any]:
    import tensorflow as tf

    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((targets - model(features, training=True)) ** 2)
    return loss, tape.gradient(loss, [item.value for item in model.trainable_variables])


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


def test_where_every_variable_lies_is_told(trainer: Trainer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "trainchart_training")
    assert trainer.run(max_steps=20, log_device_placement=True) == 0
    placed = [record.getMessage() for record in caplog.records if record.getMessage().startswith("placed ")]
    assert any("/kernel on /job:localhost/replica:0/task:0/device:CPU:0" in line for line in placed)
    # Four weights, Adam's two averages of each, its iterations and rate, and the step.
    assert len(placed) == 4 + 8 + 2 + 1


def fail(*_arguments: Any) -> Any:
    raise KeyError("no such column")


def read_nothing(split: str, shard: Shard, settings: Settings) -> Any:
    return read_examples(split, shard, settings).take(0)


def read_triples(split: str, shard: Shard, settings: Settings) -> Any:
    return read_examples(split, shard, settings).map(lambda inputs, targets: (inputs, targets, targets))


def read_wider(split: str, shard: Shard, settings: Settings) -> Any:
    import tensorflow as tf

    return read_examples(split, shard, settings).map(lambda inputs, targets: (tf.concat([inputs, inputs], 0), targets))


def clip_by_itself(settings: Settings) -> Any:
    import keras

    return keras.optimizers.SGD(0.1, clipnorm=1.0)


def overwrite_weights(settings: Settings) -> Any:
    import keras

    return keras.optimizers.SGD(0.1, use_ema=True, ema_overwrite_frequency=5)


def return_one_gradient(model: Any, features: Any, targets: Any) -> Any:
    loss, gradients = square_by_hand(model, features, targets)
    return loss, gradients[:1]


@pytest.mark.parametrize(
    ("part", "function", "message"),
    [
        ("model", fail, "the program's function model failed: KeyError: 'no such column'"),
        ("examples", fail, "the program's function examples failed: KeyError"),
        ("examples", read_nothing, "no training examples in shard 1 of 1: use fewer workers"),
        ("examples", read_triples, r"an example is a pair \(features, targets\), not"),
        ("examples", read_wider, r"model and examples do not fit together: .*features float32 \[2, 8\]"),
        ("loss", fail, "model and examples do not fit together: KeyError"),
        ("optimizer", clip_by_itself, "the program's optimizer clips gradients itself"),
        ("optimizer", overwrite_weights, "the program's optimizer overwrites the weights with their moving averages"),
        ("step", fail, "model and examples do not fit together: KeyError"),
        ("step", return_one_gradient, "the program's step returned 1 gradients for 4 trainable variables"),
    ],
)
def test_a_wrong_program_is_told_what_is_wrong_before_anything_is_saved(
    trainer: Trainer, part: str, function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TrainingError, match=message):
        trainer.run(replace(TRAINING, **{part: function}))
    assert trainer.steps() == []


def test_a_loss_that_is_no_number_ends_the_training_and_is_never_saved(trainer: Trainer) -> None:
    import tensorflow as tf

    assert trainer.run(max_steps=20) == 0

    def explode(targets: Any, outputs: Any) -> Any:
        return tf.reduce_mean(outputs) / 0.0

    with pytest.raises(TrainingError, match=r"the loss is (nan|inf|-inf) at step 40: try a smaller learning rate"):
        trainer.run(replace(TRAINING, loss=explode), max_steps=40)
    assert trainer.steps() == [20, 0]
    assert trainer.run(max_steps=40) == 0


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file, so that even root cannot make a folder here")
    with pytest.raises(TrainingError, match=rf"cannot save step 0 in {tmp_path}/checkpoints: .*none"):
        Trainer(tmp_path).run()


def test_a_full_disk_leaves_the_checkpoint_before_it_whole(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    assert trainer.run(max_steps=20) == 0
    # A limit on the size of files stands for a full disk: it holds for root as well.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    class Fill(Hook):
        def logged(self, step: int, values: Any) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))

    try:
        with pytest.raises(TrainingError, match=r"cannot save step 40 .*last complete checkpoint: step 20"):
            trainer.run(replace(TRAINING, hooks=[Fill()]), max_steps=60)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert trainer.steps() == [20, 0]
    assert trainer.run(max_steps=40) == 0


def test_the_evaluator_measures_every_checkpoint_and_ends_with_the_last(trainer: Trainer, tmp_path: Path) -> None:
    from trainchart_training.evaluation import evaluate

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


def write_records(folder: Path, files: int, records: int) -> str:
    import tensorflow as tf

    for number in range(files):
        with tf.io.TFRecordWriter(str(folder / f"train-{number}.tfrecord")) as writer:
            for value in range(records):
                writer.write(f"{number}.{value}".encode())
    return f"{folder}/train-*.tfrecord"


@pytest.mark.parametrize(("files", "shards"), [(4, 2), (3, 2), (1, 3), (2, 2)])
def test_every_record_goes_to_one_shard(tmp_path: Path, files: int, shards: int) -> None:
    from trainchart_training.records import read_tfrecords

    pattern = write_records(tmp_path, files, 5)
    found = [[*read_tfrecords(pattern, Shard(index, shards)).as_numpy_iterator()] for index in range(shards)]
    assert all(found)
    assert sorted(record for part in found for record in part) == sorted(
        f"{file}.{n}".encode() for file in range(files) for n in range(5)
    )


def test_records_that_are_not_there_are_named(tmp_path: Path) -> None:
    from trainchart_training.records import read_tfrecords

    with pytest.raises(TrainingError, match=f"no file matches {tmp_path}/train-"):
        read_tfrecords(f"{tmp_path}/train-*", Shard(0, 1))


def test_a_damaged_record_ends_the_training_in_one_line_that_names_the_role(
    trainer: Trainer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import tensorflow as tf

    from trainchart_training.records import read_tfrecords
    from trainchart_training.roles import _guard

    pattern = write_records(tmp_path, 1, 300)

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        dataset = read_tfrecords(pattern, shard).map(tf.strings.to_number)
        return dataset.map(lambda number: (tf.fill([4], number), tf.fill([1], number)))

    assert _guard(replace(TRAINING, examples=read), Settings(max_steps=20, shuffle_buffer=0), trainer.place) == 0
    path = tmp_path / "train-0.tfrecord"
    content = bytearray(path.read_bytes())
    content[-9] ^= 255
    path.write_bytes(content)
    caplog.clear()
    assert _guard(replace(TRAINING, examples=read), Settings(max_steps=60, shuffle_buffer=0), trainer.place) == 1
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert line.startswith("error: worker 0: the training data is damaged: ")
    assert "corrupted record at" in line
    assert trainer.steps()[0] == 20


def test_another_process_that_went_away_is_no_fault_of_this_one(
    trainer: Trainer, caplog: pytest.LogCaptureFixture
) -> None:
    import tensorflow as tf

    from trainchart_training.roles import _guard

    class Lose(Hook):
        def logged(self, step: int, values: Any) -> None:
            raise tf.errors.UnavailableError(None, None, "Connection reset by peer")

    assert _guard(replace(TRAINING, hooks=[Lose()]), Settings(), trainer.place) == 75
    assert "worker 0 cannot go on, it lost a ps, and the variables with it: Connection reset by peer" in caplog.text
