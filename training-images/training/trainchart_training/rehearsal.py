"""Tries every function of the program on a few examples before the first step.

What is wrong is then said in the program's own terms, and not by a graph on another machine, or at the end of the
training by what comes only then.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainchart_training.batches import WHOLE, read_examples
from trainchart_training.definition import TEST, TRAIN, Shard, Training
from trainchart_training.errors import TrainingError
from trainchart_training.evaluation import Measure
from trainchart_training.export import trace_signature
from trainchart_training.failures import call_program, describe_error
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.place import Place
from trainchart_training.state import TrainingState, create_state
from trainchart_training.step import build_gradients


def rehearse(training: Training, settings: Hyperparameters, place: Place, is_new: bool) -> None:
    """Raise TrainingError for what would stop the training later.

    What is only needed at its end is tried once, by the leader where the training `is_new`: a restart shall be quick.
    """
    state = create_state(training, settings)
    _check_examples(training, settings, place.shard, state)
    if place.is_leader and is_new:
        _check_ending(training, settings, state.model, is_measured=not place.evaluators)


def _check_examples(training: Training, settings: Hyperparameters, shard: Shard, state: TrainingState) -> None:
    """Raise TrainingError unless the shard has an example, and a batch of its first ones goes through the model."""
    dataset = _read_pairs(training, settings, TRAIN, shard)
    batch = next(iter(dataset.batch(min(2, settings.batch_size)).take(1)), None)
    where = f"shard {shard.index + 1} of {shard.count}"
    if batch is None:
        raise TrainingError(f"no training examples in {where}: use fewer workers, or split the data finer")
    features, targets = call_program("augment", training.augment, *batch) if training.augment else batch
    try:
        loss, _ = build_gradients(training, state)(features, targets)
    except TrainingError:
        raise
    except Exception as error:
        raise TrainingError(
            f"model and examples do not fit together: {describe_error(error)}"
            f" (a batch has features {_shape(features)} and targets {_shape(targets)})"
        ) from error
    if loss.shape.rank != 0:
        raise TrainingError(f"the loss of a batch is {loss.shape}, not a number")


def _check_ending(training: Training, settings: Hyperparameters, model: Any, is_measured: bool) -> None:
    """Raise TrainingError unless the model can be exported, and measured on test examples if it `is_measured` here."""
    _read_pairs(training, settings, TEST, WHOLE)
    if is_measured:
        try:
            Measure(training, settings, model)(batches=1)
        except TrainingError:
            raise
        except Exception as error:
            raise TrainingError(
                f"model, metrics and test examples do not fit together: {describe_error(error)}"
            ) from error
    trace_signature(training, settings, model)


def _read_pairs(training: Training, settings: Hyperparameters, split: str, shard: Shard) -> Any:
    """Return the examples of the program, which are pairs."""
    dataset = read_examples(training, settings, split, shard)
    if not isinstance(dataset.element_spec, tuple) or len(dataset.element_spec) != 2:
        raise TrainingError(f"an example is a pair (features, targets), not {dataset.element_spec}")
    return dataset


def _shape(part: Any) -> str:
    return str(tf.nest.map_structure(lambda item: f"{item.dtype.name} {list(item.shape)}", part))
