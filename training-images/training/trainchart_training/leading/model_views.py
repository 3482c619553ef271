"""What TensorBoard shows of a model: its graph, and histograms of its weights and gradients.

Computed in the leader, apart from the steps: so they cost the steps nothing, and are the same under every strategy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from trainchart_training.definition import Shard, Training
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.leading.summary import write_histograms
from trainchart_training.saving.state import TrainingState, create_state
from trainchart_training.strategies.batches import WHOLE, build_batches
from trainchart_training.strategies.step import build_gradients, loss_scale


class Histograms:
    """Keeps a copy of the model and an iterator over the training examples, since making them is slow."""

    def __init__(self, training: Training, settings: Hyperparameters) -> None:
        self._copy = create_state(training, settings)
        self._compute = tf.function(build_gradients(training, self._copy))
        self._batches = iter(build_batches(training, settings, WHOLE, settings.seed))

    def write(self, writer: Any, step: int, state: TrainingState) -> None:
        """Add the histograms of `state` at `step`."""
        model = self._copy.model
        model.set_weights(state.model.get_weights())
        _, gradients = self._compute(*next(self._batches))
        scale = float(loss_scale(self._copy.optimizer))
        values = {}
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            values[f"weights/{variable.path}"] = variable.numpy()
            values[f"gradients/{variable.path}"] = np.asarray(tf.convert_to_tensor(gradient)) / scale
        write_histograms(writer, step, values)


def trace_gradients(training: Training, settings: Hyperparameters, shard: Shard) -> Any:
    """Return the tf.Graph, the same for every shard and strategy; of a model of its own, which is dropped again."""
    # Not on a GPU, which may have room for one model and not for two.
    with tf.device("CPU:0"):
        compute = tf.function(build_gradients(training, create_state(training, settings)))
        batches = build_batches(training, settings, shard, settings.seed)
        return compute.get_concrete_function(*batches.element_spec).graph
