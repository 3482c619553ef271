"""What a training says about a wrong program, damaged data and a folder that takes nothing more, in one line each.

The line names the role. Whatever was saved before is as it was, byte by byte, and can be gone on with.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
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
    read_examples,
    square_by_hand,
    write_records,
)
from trainchart_training import Hook, Shard, Training, TrainingError
from trainchart_training.errors import EXIT_BAD_SETTINGS, EXIT_FAILED
from trainchart_training.place import BETWEEN_GRAPH_ASYNC, PS, WORKER, Place

pytestmark = [pytest.mark.tensorflow, pytest.mark.timeout(120)]

NOBODY = 65534
"""A user that may write nowhere but where all may."""


class Lines:
    """Trains until it fails, and tells what the log says of it."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def fail(self, place: Place, training: Training, *, code: int = EXIT_FAILED, **settings: Any) -> str:
        """Return the line with which a process ends that cannot go on; it is the only one of its kind."""
        from trainchart_training.roles import _guard

        self._caplog.clear()
        assert _guard(training, Settings(**settings), place) == code
        (line,) = [record.getMessage() for record in self._caplog.records if record.levelname == "ERROR"]
        return str(line)


class Watch(Hook):
    """Remembers where the training went on, and calls `act` at every report."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.begun: list[int] = []
        self.reported: list[int] = []
        self._act = act

    def begin(self, model: Any, step: int) -> None:
        self.begun.append(step)

    def logged(self, step: int, values: Any) -> None:
        self.reported.append(step)
        self._act()


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    return Lines(caplog)


@pytest.fixture(scope="module")
def trained_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint folder with steps 0 and 20, the result, and what was measured."""
    trainer = Trainer(tmp_path_factory.mktemp("trained"))
    assert trainer.run(max_steps=20) == 0
    return trainer.folder


@pytest.fixture
def trainer(trainer: Trainer, trained_folder: Path) -> Trainer:
    """A training that has come to step 20 before."""
    shutil.copytree(trained_folder, trainer.folder)
    return trainer


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def go_on(trainer: Trainer) -> None:
    """Train on with the right program: from step 20."""
    watch = Watch()
    assert trainer.run(replace(TRAINING, hooks=[watch]), max_steps=40) == 0
    assert watch.begun == [20]


def fail(*_arguments: Any) -> Any:
    raise KeyError("no such column")


def read_nothing(split: str, shard: Shard, settings: Settings) -> Any:
    return read_examples(split, shard, settings).take(0)


def read_triples(split: str, shard: Shard, settings: Settings) -> Any:
    return read_examples(split, shard, settings).map(lambda inputs, targets: (inputs, targets, targets))


def read_wider(split: str, shard: Shard, settings: Settings) -> Any:
    import tensorflow as tf

    return read_examples(split, shard, settings).map(lambda inputs, targets: (tf.concat([inputs, inputs], 0), targets))


def return_nothing(*_arguments: Any) -> None:
    pass


def only_test(change: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a function that reads examples, those of the split "test" with a `change`."""

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        examples = read_examples(split, shard, settings)
        return change(examples) if split == "test" else examples

    return read


def build_frozen(settings: Settings) -> Any:
    model = build_model(settings)
    model.trainable = False
    return model


def build_table() -> Any:
    import tensorflow as tf

    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0, 1], ["low", "high"]), "unknown")


def name_by_a_table_outside(model: Any, features: Any) -> Any:
    import tensorflow as tf

    return {"names": OUTSIDE[0].lookup(tf.cast(model(features) > 0, tf.int32))}


OUTSIDE: list[Any] = []
"""A table that is no part of a model."""


def measure_twice() -> list[Any]:
    import keras

    return [keras.metrics.MeanSquaredError("error"), keras.metrics.MeanAbsoluteError("error")]


def clip_by_itself(settings: Settings) -> Any:
    import keras

    return keras.optimizers.SGD(0.1, clipnorm=1.0)


def accumulate_by_itself(settings: Settings) -> Any:
    import keras

    return keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1, gradient_accumulation_steps=2))


def overwrite_weights(settings: Settings) -> Any:
    import keras

    return keras.optimizers.SGD(0.1, use_ema=True, ema_overwrite_frequency=5)


def return_the_loss_alone(model: Any, features: Any, targets: Any) -> Any:
    return square_by_hand(model, features, targets)[0]


def augment_by_numpy(features: Any, targets: Any) -> Any:
    return features.numpy() + 1.0, targets


def augment_features_alone(features: Any, targets: Any) -> Any:
    return features + 1.0


def count_errors(targets: Any, outputs: Any) -> Any:
    import tensorflow as tf

    return tf.reduce_sum(tf.cast(targets != outputs, tf.int32))


def subtract_all(targets: Any, outputs: Any) -> Any:
    """Each target from the outputs of all examples."""
    return (targets - outputs[:, 0]) ** 2


def return_seven(targets: Any, outputs: Any) -> Any:
    import tensorflow as tf

    return tf.zeros(7) * outputs[0]


def read_an_array(split: str, shard: Shard, settings: Settings) -> Any:
    import numpy as np

    return np.zeros((9, 4))


def read_texts(split: str, shard: Shard, settings: Settings) -> Any:
    import tensorflow as tf

    return read_examples(split, shard, settings).map(
        lambda features, targets: (tf.strings.as_string(features), targets)
    )


def scale_by_a_factor(settings: Settings) -> Any:
    import keras

    return keras.optimizers.SGD(0.1, loss_scale_factor=8.0)


def return_one_gradient(model: Any, features: Any, targets: Any) -> Any:
    loss, gradients = square_by_hand(model, features, targets)
    return loss, gradients[:1]


@pytest.mark.parametrize(
    ("part", "function", "message"),
    [
        ("model", fail, "the program's function model failed: KeyError: 'no such column'"),
        ("examples", fail, "the program's function examples failed: KeyError: 'no such column'"),
        ("model", build_frozen, "the program's model has no trainable weights"),
        ("model", return_nothing, "the program's function model returned None, which is not of type Model"),
        ("optimizer", return_nothing, "the program's function optimizer returned None, which is not of type Optimizer"),
        ("examples", return_nothing, "the program's function examples returned None, which is not of type Dataset"),
        ("examples", read_an_array, "the program's function examples returned array([[0., 0., 0., 0.], [0., "),
        ("augment", fail, "the program's function augment failed: KeyError: 'no such column'"),
        ("examples", read_nothing, "there are no training examples"),
        ("examples", read_triples, "an example is a pair (features, targets), not "),
        ("examples", read_wider, "model and examples do not fit together: "),
        ("examples", read_texts, "model and examples do not fit together: Cast string to float is not supported"),
        ("loss", fail, "the program's function loss failed: KeyError: 'no such column'"),
        (
            "loss",
            return_nothing,
            "the program's function loss returned None, which is not a tensor of floating-point numbers",
        ),
        ("loss", count_errors, "the program's function loss returned <tf.Tensor: shape=(), dtype=int32"),
        ("loss", subtract_all, "the program's function loss returned float32 [2, 2] for targets float32 [2, 1] and"),
        ("loss", return_seven, "the program's function loss returned float32 [7] for targets float32 [2, 1] and"),
        ("optimizer", clip_by_itself, "the program's optimizer clips gradients itself"),
        ("optimizer", accumulate_by_itself, "the program's optimizer accumulates gradients itself"),
        ("optimizer", overwrite_weights, "the program's optimizer overwrites the weights with their moving averages"),
        ("augment", augment_by_numpy, "the program's function augment failed: AttributeError: "),
        ("augment", augment_features_alone, "the program's function augment returns a pair (features, targets), not "),
        ("step", fail, "model and examples do not fit together: KeyError: 'no such column'"),
        ("step", return_the_loss_alone, "the program's step must return a pair (loss, gradients), not "),
        ("step", return_one_gradient, "the program's step returned 1 gradients for 4 trainable variables"),
    ],
)
def test_program_mistakes_are_named_before_anything_is_saved(
    trainer: Trainer, lines: Lines, part: str, function: Callable[..., Any], message: str
) -> None:
    before = read_files(trainer.folder)

    line = lines.fail(trainer.place, replace(TRAINING, **{part: function}), max_steps=40)

    assert line.startswith(f"error: worker 0: {message}")
    assert read_files(trainer.folder) == before


@pytest.mark.parametrize(
    ("part", "function", "message"),
    [
        ("examples", only_test(lambda examples: examples.take(0)), "there are no test examples to evaluate with"),
        ("examples", only_test(lambda examples: examples.repeat()), "the test examples never end: leave out repeat()"),
        (
            "examples",
            only_test(lambda examples: examples.batch(3)),
            "model, metrics and test examples do not fit together: ",
        ),
        ("metrics", fail, "the program's function metrics failed: KeyError: 'no such column'"),
        ("metrics", measure_twice, "several results are called error: give the program's metrics other names"),
        (
            "metrics",
            lambda: ["accuracy"],
            "the program's function metrics returned 'accuracy', which is not a keras.metrics.Metric",
        ),
        ("serve", fail, "the program's function serve failed: KeyError: 'no such column'"),
        (
            "serve",
            return_nothing,
            "the exported model must return a tensor, or a dictionary of tensors by name, not None: ",
        ),
        (
            "serve",
            lambda model, features: {"all": {"sums": model(features)}},
            "the exported model must return a tensor, or a dictionary of tensors by name, not {'all': {'sums': ",
        ),
        (
            "serve",
            lambda model, features: {7: model(features)},
            "the exported model must return a tensor, or a dictionary of tensors by name, not {7: 'float32'}: ",
        ),
    ],
)
def test_what_the_end_needs_is_tried_before_the_first_step(
    tmp_path: Path, lines: Lines, part: str, function: Callable[..., Any], message: str
) -> None:
    trainer = Trainer(tmp_path)

    line = lines.fail(trainer.place, replace(TRAINING, **{part: function}))

    assert line.startswith(f"error: worker 0: {message}")
    assert not trainer.folder.exists()


def test_a_scaled_loss_beside_a_step_of_its_own_is_refused(tmp_path: Path, lines: Lines) -> None:
    trainer = Trainer(tmp_path)

    line = lines.fail(trainer.place, replace(TRAINING, optimizer=scale_by_a_factor, step=square_by_hand))

    scales = "the program's step computes gradients itself, so its optimizer cannot scale the loss"
    assert line.startswith(f"error: worker 0: {scales}")
    assert not trainer.folder.exists()


def test_early_stop_on_unmeasured_metric_is_refused_at_start(tmp_path: Path, lines: Lines) -> None:
    trainer = Trainer(tmp_path)
    place = replace(trainer.place, evaluators=1)
    settings = {"early_stop_evaluations": 2, "early_stop_metric": "eror"}

    line = lines.fail(place, replace(TRAINING, metrics=lambda: measure_twice()[:1]), code=EXIT_BAD_SETTINGS, **settings)

    assert (
        line == "error: worker 0: hyperparameter earlyStopMetric: eror is not one of the measured metrics: loss, error"
    )
    assert not trainer.folder.exists()


@pytest.mark.parametrize(
    ("part", "value"),
    [("loss", "mse"), ("loss", type(None)), ("metrics", ["accuracy"]), ("step", 3), ("augment", "flip")],
)
def test_non_function_is_refused_where_the_program_passes_it(part: str, value: object) -> None:
    with pytest.raises(TypeError, match=rf"^Training: {part} must be a function, not {re.escape(repr(value))}$"):
        replace(TRAINING, **{part: value})


@pytest.mark.parametrize("hooks", [Watch(), [Watch]])
def test_what_is_no_hook_is_refused_where_the_program_says_it(hooks: Any) -> None:
    with pytest.raises(TypeError, match=r"^Training: hooks must be a list of objects of classes derived from Hook, "):
        replace(TRAINING, hooks=hooks)


def test_hyperparameters_instance_is_refused_where_it_is_passed() -> None:
    wrong: Any = Settings()
    with pytest.raises(
        TypeError, match=r"^Training: hyperparameters must be a class derived from Hyperparameters, not"
    ):
        replace(TRAINING, hyperparameters=wrong)


def test_table_that_cannot_be_exported_is_named_at_the_start(tmp_path: Path, lines: Lines) -> None:
    trainer = Trainer(tmp_path)
    OUTSIDE[:] = [build_table()]

    line = lines.fail(trainer.place, replace(TRAINING, serve=name_by_a_table_outside))

    assert line.startswith(
        "error: worker 0: the program's function serve uses a table or variable that is not part of the"
    )
    assert not trainer.folder.exists()


def test_metric_direction_is_required_where_keras_lacks_it(tmp_path: Path, lines: Lines) -> None:
    import keras

    def measure_mean() -> list[Any]:
        return [keras.metrics.Mean("score")]

    settings = {"early_stop_evaluations": 2, "early_stop_metric": "score"}

    training = replace(TRAINING, metrics=measure_mean)
    line = lines.fail(Trainer(tmp_path).place, training, code=EXIT_BAD_SETTINGS, **settings)

    asks = "score may improve by falling or by rising: set earlyStopMode to min or max"
    assert line == f"error: worker 0: hyperparameter earlyStopMetric: {asks}"


def test_a_hook_that_fails_is_named_and_called_again(trainer: Trainer, lines: Lines) -> None:
    class Upload(Hook):
        def end(self, model: Any, step: int) -> None:
            raise ConnectionError("no route to the archive")

    failure = "error: worker 0: the program's function Upload.end failed: ConnectionError: no route to the archive"
    for _ in range(2):
        assert lines.fail(trainer.place, replace(TRAINING, hooks=[Upload()]), max_steps=40) == failure
    weights = Weights()
    assert trainer.run(replace(TRAINING, hooks=[weights]), max_steps=40) == 0
    assert weights.last


def test_shapes_that_do_not_match_are_told(trainer: Trainer, lines: Lines) -> None:
    line = lines.fail(trainer.place, replace(TRAINING, examples=read_wider), max_steps=40)

    assert line.endswith("(a batch has features float32 [2, 8] and targets float32 [2, 1])")
    assert "expected axis -1 of input shape to have value 4" in line
    go_on(trainer)


def test_error_about_examples_leaves_out_their_content(trainer: Trainer, lines: Lines) -> None:
    def read_batches(split: str, shard: Shard, settings: Settings) -> Any:
        return read_examples(split, shard, settings).batch(8)

    line = lines.fail(trainer.place, replace(TRAINING, examples=read_batches), max_steps=40)

    assert "Invalid input shape for input […] with name" in line
    assert "Expected shape (None, 4), but input has incompatible shape (2, 8, 4)" in line
    assert "Arguments received" not in line


def test_the_worker_whose_shard_is_empty_names_itself(trainer: Trainer, lines: Lines) -> None:
    hosts = {"worker": [f"worker-{index}:2222" for index in range(3)], "ps": ["ps-0:2222"]}
    place = replace(trainer.place, strategy="between-graph-async", task_index=2, cluster=hosts)

    def read_for_two(split: str, shard: Shard, settings: Settings) -> Any:
        return (read_examples if shard.index < 2 else read_nothing)(split, shard, settings)

    line = lines.fail(place, replace(TRAINING, examples=read_for_two), max_steps=40)

    assert line.startswith("error: worker 2: no training examples in shard 3 of 3: ")


def test_in_graph_chief_names_the_worker_without_examples(trainer: Trainer, lines: Lines) -> None:
    hosts = {"chief": ["chief-0:2222"], "worker": [f"worker-{index}:2222" for index in range(3)]}
    place = replace(trainer.place, strategy="in-graph", task_type="chief", cluster=hosts)

    def read_for_two(split: str, shard: Shard, settings: Settings) -> Any:
        return (read_examples if shard.index < 2 else read_nothing)(split, shard, settings)

    line = lines.fail(place, replace(TRAINING, examples=read_for_two), max_steps=40)

    assert line.startswith("error: chief 0: no training examples in shard 3 of 3: ")


def test_a_worker_without_examples_names_its_shard(trainer: Trainer, lines: Lines) -> None:
    cluster = {WORKER: ["127.0.0.1:1", "127.0.0.1:2"], PS: ["127.0.0.1:3"]}
    place = Place(BETWEEN_GRAPH_ASYNC, WORKER, 1, cluster, checkpoints_dir=str(trainer.folder))

    line = lines.fail(place, replace(TRAINING, examples=read_nothing), max_steps=40)

    assert line == (
        "error: worker 1: no training examples in shard 2 of 2: use fewer workers, or split the data into more parts"
    )


def test_an_evaluator_without_examples_names_itself(trainer: Trainer, lines: Lines) -> None:
    (trainer.folder / "evaluations.json").unlink()
    before = read_files(trainer.folder)
    place = replace(trainer.place, task_type="evaluator")

    line = lines.fail(place, replace(TRAINING, examples=read_nothing), max_steps=20)

    assert line == "error: evaluator 0: there are no test examples to evaluate with"
    assert read_files(trainer.folder) == before


def test_nan_loss_ends_the_training_and_is_never_saved(trainer: Trainer, lines: Lines) -> None:
    before = read_files(trainer.folder)

    def explode(targets: Any, outputs: Any) -> Any:
        return outputs * float("nan")

    line = lines.fail(trainer.place, replace(TRAINING, loss=explode), max_steps=40)

    assert line.startswith("error: worker 0: the loss is nan at step 40: try a smaller learning rate, and look ")
    assert read_files(trainer.folder) == before
    go_on(trainer)


def test_weights_that_are_no_numbers_are_never_saved(trainer: Trainer, lines: Lines) -> None:
    """The loss of the last step is that before its weights: it may be a number, and they may not."""
    before = read_files(trainer.folder)

    def explode(model: Any, features: Any, targets: Any) -> Any:
        loss, gradients = square_by_hand(model, features, targets)
        return loss, [gradient * float("inf") for gradient in gradients]

    line = lines.fail(trainer.place, replace(TRAINING, step=explode), max_steps=21)

    assert line.startswith("error: worker 0: ")
    assert "is not finite at step 21: try a smaller learning rate, and look for such numbers in the examples" in line
    assert read_files(trainer.folder) == before


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, lines: Lines) -> None:
    (tmp_path / "file").write_text("in the way")
    place = Place(checkpoints_dir=f"{tmp_path}/file/checkpoints")

    line = lines.fail(place, TRAINING)

    assert line.startswith(f"error: worker 0: cannot save step 0 in {place.checkpoints_dir}: ")
    assert line.endswith("(last complete checkpoint: none)")


def test_folder_without_permission_is_named_at_the_start(trained_folder: Path, lines: Lines) -> None:
    watch = Watch()
    with write_protected(trained_folder) as folder:
        before = read_files(folder)
        place = Place(checkpoints_dir=str(folder))

        line = lines.fail(place, replace(TRAINING, hooks=[watch]), max_steps=40)

        assert read_files(folder) == before
    assert line.startswith(f"error: worker 0: cannot write to {folder}: ")
    assert "Permission denied" in line
    assert line.endswith("(last complete checkpoint: step 20)")
    assert (watch.begun, watch.reported) == ([], [])


@contextlib.contextmanager
def write_protected(original: Path) -> Iterator[Path]:
    """Copy a folder to where it can be read and not written; root may do all, so it is somebody else meanwhile."""
    # Not below pytest's own folder, which nobody else may enter.
    outside = Path(tempfile.mkdtemp(prefix="trainchart-"))
    folder = outside / "checkpoints"
    shutil.copytree(original, folder)
    user = os.geteuid()
    outside.chmod(0o755)
    folder.chmod(0o555)
    try:
        if user == 0:
            os.seteuid(NOBODY)
        yield folder
    finally:
        if user == 0:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(outside)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"only root can mount a small disk: {done.stderr.strip()}")
    yield folder
    # Lazily: TensorFlow still holds a file there.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_disk(folder: Path) -> None:
    """Write until the last byte is taken."""
    with (folder / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 512)


def test_a_full_disk_leaves_the_checkpoint_before_it_whole(
    trained_folder: Path, small_disk: Path, lines: Lines, tmp_path: Path
) -> None:
    trainer = Trainer(small_disk)
    # Curves go to the same claim by default, and so to the same disk.
    trainer.place = replace(trainer.place, progress_file="", log_dir=f"{trainer.folder}/logs")
    shutil.copytree(trained_folder, trainer.folder)
    before = read_files(trainer.folder)
    watch = Watch(lambda: fill_disk(small_disk))

    line = lines.fail(trainer.place, replace(TRAINING, hooks=[watch]), max_steps=60)

    assert watch.reported == [40]
    assert line.startswith(f"error: worker 0: cannot save step 40 in {trainer.folder}: ")
    assert "No space left on device" in line
    assert line.endswith("(last complete checkpoint: step 20)")
    assert {name: content for name, content in read_files(trainer.folder).items() if "logs/" not in name} == before
    (small_disk / "ballast").unlink()
    go_on(trainer)


def test_keeping_fewer_checkpoints_frees_a_full_disk(small_disk: Path) -> None:
    trainer = Trainer(small_disk)
    trainer.place = replace(trainer.place, progress_file="", log_dir=f"{trainer.folder}/logs")
    assert trainer.run(max_steps=20, checkpoint_steps=2, keep_checkpoints=20) == 0
    with pytest.raises(TrainingError, match="No space left on device"):
        watch = Watch(lambda: fill_disk(small_disk))
        trainer.run(replace(TRAINING, hooks=[watch]), max_steps=60, keep_checkpoints=20)

    watch = Watch()
    assert trainer.run(replace(TRAINING, hooks=[watch]), max_steps=21, keep_checkpoints=1) == 0
    assert watch.begun == [20]


def test_a_full_disk_at_the_export_loses_no_step(trained_folder: Path, small_disk: Path, lines: Lines) -> None:
    trainer = Trainer(small_disk)
    trainer.place = replace(trainer.place, progress_file="")
    shutil.copytree(trained_folder, trainer.folder)
    before = read_files(trainer.folder / "saved_model")

    class Fill(Hook):
        def saved(self, step: int, path: str) -> None:
            fill_disk(small_disk)

    line = lines.fail(trainer.place, replace(TRAINING, hooks=[Fill()]), max_steps=40)

    assert line.startswith(f"error: worker 0: cannot export the model to {trainer.folder}/saved_model: ")
    assert "No space left on device" in line
    assert trainer.steps() == [40, 20]
    assert read_files(trainer.folder / "saved_model") == before
    assert not (trainer.folder / "saved_model.draft").exists()
    (small_disk / "ballast").unlink()
    assert trainer.run(max_steps=40) == 0
    assert read_files(trainer.folder / "saved_model") != before


def fail_at_the_last_rename(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Raise `error` instead of the rename that puts a new result in the place of the old one."""
    import tensorflow as tf

    rename = tf.io.gfile.rename

    def rename_others(source: str, target: str, overwrite: bool = False) -> None:
        if source.endswith("/saved_model.draft"):
            raise error
        rename(source, target, overwrite)

    monkeypatch.setattr(tf.io.gfile, "rename", rename_others)


def test_failed_export_leaves_the_previous_result(
    trainer: Trainer, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = read_files(trainer.folder / "saved_model")
    fail_at_the_last_rename(monkeypatch, PermissionError(1, "Operation not permitted"))

    line = lines.fail(trainer.place, TRAINING, max_steps=40)

    assert line.startswith(f"error: worker 0: cannot export the model to {trainer.folder}/saved_model: ")
    assert "Operation not permitted" in line
    assert read_files(trainer.folder / "saved_model") == before
    assert [path.name for path in trainer.folder.glob("saved_model*")] == ["saved_model"]


def test_a_kill_between_the_renames_of_an_export_loses_no_result(
    trainer: Trainer, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    class Killed(BaseException):
        pass

    def find_no_space(*_arguments: Any, **_named: Any) -> None:
        raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")

    before = read_files(trainer.folder / "saved_model")
    fail_at_the_last_rename(monkeypatch, Killed())
    with pytest.raises(Killed):
        trainer.run(max_steps=40)
    monkeypatch.undo()
    assert not (trainer.folder / "saved_model").exists()

    monkeypatch.setattr(tf.saved_model, "save", find_no_space)
    line = lines.fail(trainer.place, TRAINING, max_steps=40)
    monkeypatch.undo()

    assert line.endswith(f"cannot export the model to {trainer.folder}/saved_model: No space left on device")
    assert read_files(trainer.folder / "saved_model") == before
    assert trainer.run(max_steps=40) == 0
    assert read_files(trainer.folder / "saved_model") != before
    assert [path.name for path in trainer.folder.glob("saved_model*")] == ["saved_model"]


def test_damaged_record_ends_training_in_a_line_with_the_role(trainer: Trainer, tmp_path: Path, lines: Lines) -> None:
    import tensorflow as tf

    from trainchart_training.records import read_tfrecords

    pattern = write_records(tmp_path, 3, 100)

    def build_after_reading(settings: Settings) -> Any:
        for _ in read_tfrecords(pattern, Shard(0, 1)):
            pass
        return build_model(settings)

    def read(split: str, shard: Shard, settings: Settings) -> Any:
        dataset = read_tfrecords(pattern, shard).map(tf.strings.to_number)
        return dataset.map(lambda number: (tf.fill([4], number), tf.fill([1], number)))

    before = read_files(trainer.folder)
    path = tmp_path / "train-1.tfrecord"
    content = bytearray(path.read_bytes())
    content[-9] ^= 255
    path.write_bytes(content)

    line = lines.fail(trainer.place, replace(TRAINING, examples=read), max_steps=60, shuffle_buffer=0)

    assert line.startswith(f"error: worker 0: the training data is damaged: {path}: ")
    assert "corrupted record at" in line
    assert lines.fail(trainer.place, replace(TRAINING, model=build_after_reading)) == line
    assert read_files(trainer.folder) == before
