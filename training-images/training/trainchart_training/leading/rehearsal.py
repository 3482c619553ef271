"""Tries every function of the program on a few examples before the first step.

What is wrong is then said in the program's own terms, and not by a graph on another machine, or at the end of the
training by what comes only then.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainchart_training.definition import TEST, TRAIN, Shard, Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import call_program, describe_error, show
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.leading.evaluation import Measure, shall_fall
from trainchart_training.leading.export import trace_signature
from trainchart_training.place import Place
from trainchart_training.saving.state import TrainingState, create_state
from trainchart_training.strategies.batches import WHOLE, read_examples
from trainchart_training.strategies.step import build_gradients


def rehearse(training: Training, settings: Hyperparameters, place: Place, is_new: bool) -> None:
    """Raise TrainingError for what would stop the training later.

    What is only needed at its end is tried once, by the leader where the training `is_new`: a restart must be quick.
    """
    state = create_state(training, settings)
    _check_examples(training, settings, place.shards[0], state)
    for shard in place.shards[1:]:
        _read_first(_read_pairs(training, settings, TRAIN, shard), shard, 1)
    if place.is_leader and settings.early_stop_evaluations:
        shall_fall(training, settings)
    if place.is_leader and is_new:
        _check_ending(training, settings, state.model, is_measured=not place.evaluators)


def _check_examples(training: Training, settings: Hyperparameters, shard: Shard, state: TrainingState) -> None:
    """Raise TrainingError unless the shard has an example, and a batch of its first ones goes through the model."""
    if not state.model.trainable_variables:
        raise TrainingError("the program's model has no trainable weights")
    batch = _read_first(_read_pairs(training, settings, TRAIN, shard), shard, min(2, settings.batch_size))
    if training.augment:
        one = tf.data.Dataset.from_tensors(batch)
        batch = call_program("augment", lambda: next(iter(one.map(training.augment))))
        _check_pair(batch, "the program's function augment returns")
    features, targets = batch
    _check_loss(training, state.model, features, targets)
    try:
        loss, _ = build_gradients(training, state)(features, targets)
    except TrainingError:
        raise
    except Exception as error:
        raise _misfit(error, features, targets) from error
    if loss.shape.rank != 0:
        raise TrainingError(f"the loss of a batch is {loss.shape}, not a number")


def _check_loss(training: Training, model: Any, features: Any, targets: Any) -> None:
    """Raise TrainingError unless the loss of a batch is a number, or one for each example or each of its parts.

    Targets and outputs that do not fit each other may still be subtracted, each from all of the others.
    """
    try:
        outputs = model(features, training=True)
    except Exception as error:
        raise _misfit(error, features, targets) from error
    loss = call_program("loss", training.loss, targets, outputs)
    if not tf.is_tensor(loss) or not loss.dtype.is_floating:
        raise TrainingError(
            f"the program's function loss returned {show(loss)}, which is not a tensor of floating-point numbers"
        )
    count = tf.nest.flatten(features)[0].shape[0]
    if loss.shape.rank and (loss.shape[0] != count or _size(loss) > max(_size(targets), _size(outputs))):
        raise TrainingError(
            f"the program's function loss returned {_shape(loss)} for targets {_shape(targets)} and outputs"
            f" {_shape(outputs)}: expected one number, or one for each example;"
            " give targets and outputs the same shape"
        )


def _size(part: Any) -> int:
    return sum(int(tf.size(item)) for item in tf.nest.flatten(part, expand_composites=True))


def _misfit(error: Exception, features: Any, targets: Any) -> TrainingError:
    return TrainingError(
        f"model and examples do not fit together: {describe_error(error)}"
        f" (a batch has features {_shape(features)} and targets {_shape(targets)})"
    )


def _check_ending(training: Training, settings: Hyperparameters, model: Any, is_measured: bool) -> None:
    """Raise TrainingError unless the model can be exported, and measured on test examples if it `is_measured` here."""
    _read_pairs(training, settings, TEST, WHOLE)
    if is_measured:
        try:
            Measure(training, settings, model)(batches=1)
        except (TrainingError, tf.errors.DataLossError):
            raise
        except Exception as error:
            raise TrainingError(
                f"model, metrics and test examples do not fit together: {describe_error(error)}"
            ) from error
    trace_signature(training, settings, model)


def _read_pairs(training: Training, settings: Hyperparameters, split: str, shard: Shard) -> Any:
    """Return the examples of the program, which are pairs."""
    dataset = read_examples(training, settings, split, shard)
    _check_pair(dataset.element_spec, "an example is")
    return dataset


def _check_pair(value: Any, what: str) -> None:
    if not isinstance(value, tuple) or len(value) != 2:
        raise TrainingError(f"{what} a pair (features, targets), not {_shape(value)}")


def _read_first(dataset: Any, shard: Shard, count: int) -> Any:
    """Return a batch of the first `count` examples of a shard; raise TrainingError where it has none."""
    batch = next(iter(dataset.batch(count).take(1)), None)
    if batch is None:
        if shard.count == 1:
            raise TrainingError("there are no training examples")
        where = f"shard {shard.index + 1} of {shard.count}"
        raise TrainingError(f"no training examples in {where}: use fewer workers, or split the data into more parts")
    return batch


def _shape(part: Any) -> str:
    def describe(item: Any) -> str:
        if not hasattr(item, "dtype"):
            return repr(item)
        return f"{item.dtype.name} {'of any shape' if item.shape.rank is None else item.shape.as_list()}"

    return str(tf.nest.map_structure(describe, part))
