"""Everything that changes during training, made by the program's own functions."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from trainchart_training.catalogue import VariableShape
from trainchart_training.definition import Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import call_program
from trainchart_training.hyperparameters import Hyperparameters


@dataclass(frozen=True)
class TrainingState:
    model: Any
    optimizer: Any
    step: Any
    """Updates of the weights so far. A worker that dies may have a batch counted and computed twice."""
    loss_sum: Any
    """Sum of the losses since the last report; lives beside the weights, so no dead worker takes it along."""

    @property
    def saved_variables(self) -> list[Any]:
        """All that a checkpoint holds, in an order that depends on the program alone."""
        return [*self.model.variables, *self.optimizer.variables, self.step]

    @property
    def shapes(self) -> list[VariableShape]:
        return [
            VariableShape(item.path, str(item.dtype), tuple(item.shape))
            for item in (*self.model.variables, *self.optimizer.variables)
        ]


def create_state(training: Training, settings: Hyperparameters, has_replicas: bool = False) -> TrainingState:
    """Return the state at step 0, placed where the current strategy scope or device says.

    `has_replicas`: every replica sums up its own losses, which become one when the sum is read.
    """
    # Not TensorFlow's global seed: it would also fix the order in which workers shuffle, and then all of them
    # would compute the same gradients from the same batches. Keras draws its seeds from these two.
    random.seed(settings.seed)
    np.random.seed(settings.seed)
    model = call_program("model", training.model, settings)
    if not model.built:
        raise TrainingError("the program's model has no weights yet: begin it with keras.Input(shape)")
    optimizer = call_program("optimizer", training.optimizer, settings)
    _check_optimizer(optimizer)
    optimizer.build(model.trainable_variables)
    summed: dict[str, Any] = {}
    if has_replicas:
        summed["synchronization"] = tf.VariableSynchronization.ON_READ
        summed["aggregation"] = tf.VariableAggregation.SUM
    return TrainingState(
        model=model,
        optimizer=optimizer,
        step=tf.Variable(0, dtype=tf.int64, trainable=False, name="step"),
        loss_sum=tf.Variable(0.0, trainable=False, name="loss_sum", **summed),
    )


def _check_optimizer(optimizer: Any) -> None:
    """Refuse what would mean something else under every strategy."""
    if any(getattr(optimizer, name, None) for name in ("clipnorm", "clipvalue", "global_clipnorm")):
        raise TrainingError(
            "the program's optimizer clips gradients itself, replica by replica and before they are averaged:"
            " use the hyperparameter clipNorm instead"
        )
    if getattr(optimizer, "use_ema", False):
        raise TrainingError("the program's optimizer keeps moving averages of the weights, which is not supported")
    if getattr(optimizer, "loss_scale_factor", None) or hasattr(optimizer, "inner_optimizer"):
        raise TrainingError("the program's optimizer scales the loss, which is not supported: use mixed_bfloat16")
