"""From the program's examples to batches: mixed, repeated, augmented; and whether they fit the model."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainchart_training.definition import TEST, TRAIN, Shard, Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import call_program, describe_error
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.state import create_state
from trainchart_training.step import build_gradients

WHOLE = Shard(0, 1)


def build_batches(training: Training, settings: Hyperparameters, shard: Shard, seed: int | None) -> Any:
    """Return the endless tf.data.Dataset of training batches; without a `seed` every process mixes differently."""
    dataset = call_program("examples", training.examples, TRAIN, shard, settings)
    if settings.shuffle_buffer:
        dataset = dataset.shuffle(settings.shuffle_buffer, seed=seed)
    dataset = dataset.repeat().batch(settings.batch_size, drop_remainder=True)
    if training.augment:
        dataset = dataset.map(training.augment, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(2)


def build_test_batches(training: Training, settings: Hyperparameters) -> Any:
    """Return all test examples, once and in order."""
    dataset = call_program("examples", training.examples, TEST, WHOLE, settings)
    return dataset.batch(settings.batch_size).prefetch(2)


def check_examples(training: Training, settings: Hyperparameters, shard: Shard) -> None:
    """Raise TrainingError unless the shard has an example, and a batch of its first ones goes through the model.

    What is wrong is then said in the program's own terms, and not by a graph on another machine.
    """
    dataset = call_program("examples", training.examples, TRAIN, shard, settings)
    batch = next(iter(dataset.batch(min(2, settings.batch_size)).take(1)), None)
    where = f"shard {shard.index + 1} of {shard.count}"
    if batch is None:
        raise TrainingError(f"no training examples in {where}: use fewer workers, or split the data finer")
    if not isinstance(batch, tuple) or len(batch) != 2:
        raise TrainingError(f"an example is a pair (features, targets), not {dataset.element_spec}")
    features, targets = training.augment(*batch) if training.augment else batch
    try:
        loss, _ = build_gradients(training, create_state(training, settings))(features, targets)
    except TrainingError:
        raise
    except Exception as error:
        raise TrainingError(
            f"model and examples do not fit together: {describe_error(error)}"
            f" (a batch has features {_shape(features)} and targets {_shape(targets)})"
        ) from error
    if loss.shape.rank != 0:
        raise TrainingError(f"the loss of a batch is {loss.shape}, not a number")


def _shape(part: Any) -> str:
    return str(tf.nest.map_structure(lambda item: f"{item.dtype.name} {list(item.shape)}", part))
