"""What a step computes, from a batch to its loss and gradients, as a graph that TensorBoard can draw."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainchart_training.batches import build_batches
from trainchart_training.definition import Shard, Training
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.state import create_state
from trainchart_training.step import build_gradients


def trace_gradients(training: Training, settings: Hyperparameters, shard: Shard) -> Any:
    """Return the tf.Graph, the same for every shard and strategy; of a model of its own, which is dropped again."""
    # Not on a GPU, which may have room for one model and not for two.
    with tf.device("CPU:0"):
        compute = tf.function(build_gradients(training, create_state(training, settings)))
        batches = build_batches(training, settings, shard, settings.seed)
        return compute.get_concrete_function(*batches.element_spec).graph
