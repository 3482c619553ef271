"""Everything that changes during training, made by the program's own functions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from trainchart_training.definition import Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import make_part
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.saving.catalogue import VariableShape


@dataclass(frozen=True)
class TrainingState:
    model: Any
    optimizer: Any
    step: Any
    """Updates of the weights so far. A worker that dies may have a batch counted and computed twice."""

    @property
    def saved_variables(self) -> list[Any]:
        """All that a checkpoint holds, in an order that depends on the program alone."""
        return [*self.model.variables, *self.optimizer.variables, self.step]

    @property
    def constant_rate(self) -> Any:
        """The optimizer's variable with a learning rate that never changes, or None where it has a schedule."""
        rate = getattr(_inner(self.optimizer), "_learning_rate", None)
        return rate if isinstance(rate, keras.Variable) else None

    @property
    def shapes(self) -> list[VariableShape]:
        return [
            VariableShape(item.path, str(item.dtype), tuple(item.shape))
            for item in (*self.model.variables, *self.optimizer.variables)
        ]


def create_state(training: Training, settings: Hyperparameters) -> TrainingState:
    """Return the state at step 0, placed where the current strategy scope or device says."""
    # Not TensorFlow's global seed: it would also fix the order in which workers shuffle, and then all of them
    # would compute the same gradients from the same batches. Keras draws its seeds from these two.
    random.seed(settings.seed)
    np.random.seed(settings.seed % 2**32)
    model = make_part("model", keras.Model, training.model, settings)
    if not model.built:
        raise TrainingError("the program's model has no weights yet: begin it with keras.Input(shape)")
    optimizer = make_part("optimizer", keras.optimizers.Optimizer, training.optimizer, settings)
    _check_optimizer(optimizer)
    optimizer.build(model.trainable_variables)
    return TrainingState(
        model=model,
        optimizer=optimizer,
        step=tf.Variable(0, dtype=tf.int64, trainable=False, name="step"),
    )


def find_device(variable: Any) -> str:
    """Return the device of a variable, or all where every replica has a copy of it."""
    inner = unwrap(variable)
    return ", ".join(copy.device for copy in getattr(inner, "values", (inner,)))


def unwrap(variable: Any) -> Any:
    """Return TensorFlow's variable, of which Keras' is a wrapper."""
    return variable if isinstance(variable, tf.Variable) else variable.value


def find_infinite_weight(state: TrainingState) -> str:
    """Return the name of a weight that is not finite, or nothing."""
    weights = state.model.trainable_variables
    return next((item.path for item in weights if not bool(tf.reduce_all(tf.math.is_finite(item.value)))), "")


def take_averages(state: TrainingState) -> None:
    """Replace the weights by the moving averages that the optimizer keeps of them, where it does (use_ema=True)."""
    if int(state.optimizer.iterations.numpy()):
        state.optimizer.finalize_variable_values(state.model.trainable_variables)


def copy_result(source: TrainingState, copy: TrainingState) -> None:
    """Set the model of `copy`, in this process, to what is measured and exported of `source`."""
    copy.model.set_weights(source.model.get_weights())
    if _inner(source.optimizer).use_ema:
        for mine, theirs in zip(copy.optimizer.variables, source.optimizer.variables, strict=True):
            mine.assign(theirs.numpy())
        take_averages(copy)


def count_updates_at_once(optimizer: Any) -> None:
    """Let `optimizer` count its updates in one operation: Keras reads and then writes, and workers at once lose counts.

    Schedules and Adam's correction of its moments go by that count.
    """
    count = _inner(optimizer)._iterations

    def add(number: int) -> Any:
        with tf.device(count.value.device):
            return count.value.assign_add(number)

    count.assign_add = add


def _inner(optimizer: Any) -> Any:
    """Return the optimizer itself, where another one scales the loss for it."""
    return getattr(optimizer, "inner_optimizer", optimizer)


def _check_optimizer(optimizer: Any) -> None:
    """Refuse what would mean something else under every strategy."""
    optimizer = _inner(optimizer)
    if any(getattr(optimizer, name, None) for name in ("clipnorm", "clipvalue", "global_clipnorm")):
        raise TrainingError(
            "the program's optimizer clips gradients itself, replica by replica and before they are averaged:"
            " use the hyperparameter clipNorm instead"
        )
    if getattr(optimizer, "gradient_accumulation_steps", None):
        raise TrainingError(
            "the program's optimizer accumulates gradients itself (gradient_accumulation_steps), which Keras can do in"
            " one process and on one device only: use a larger batchSize, or let a step of the program's own compute"
            " a batch in parts"
        )
    if getattr(optimizer, "ema_overwrite_frequency", None):
        raise TrainingError(
            "the program's optimizer overwrites the weights with their moving averages while it trains:"
            " leave ema_overwrite_frequency out, and evaluation and export use the averages"
        )
