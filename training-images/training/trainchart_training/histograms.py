"""Histograms of the weights, and of the gradients of one batch at these weights, for TensorBoard.

Computed in the leader, apart from the steps: so they cost the steps nothing, and are the same under every strategy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from trainchart_training.batches import WHOLE, build_batches
from trainchart_training.definition import Training
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.state import TrainingState, create_state
from trainchart_training.step import build_gradients, loss_scale
from trainchart_training.summary import write_histograms


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
