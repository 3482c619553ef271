"""What a checkpoint of the training holds, and how its step is read without building the network.

The files are written by whoever holds the variables: the ps in a cluster, this process when it is alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import keras
import tensorflow as tf

from mnist.model import build_model
from mnist.settings import Hyperparameters

MAX_CHECKPOINTS = 20
"""More than one, so that the evaluator can still read the ones it is late for."""
_STEP_KEY = "step/.ATTRIBUTES/VARIABLE_VALUE"


@dataclass(frozen=True)
class TrainingState:
    """Everything that changes during training."""

    model: keras.Model
    optimizer: keras.optimizers.Optimizer
    step: tf.Variable
    """Batches that went into the weights. A worker that dies may have a batch counted and computed twice."""
    loss_sum: tf.Variable
    """Sum of the losses since the last log line; lives beside the weights, so no dead worker takes it along."""


def create_state(hyperparameters: Hyperparameters) -> TrainingState:
    """Return the state at step 0, placed where the current strategy scope says."""
    model = build_model(hyperparameters.seed)
    optimizer = keras.optimizers.SGD(hyperparameters.learning_rate, momentum=0.8)
    optimizer.build(model.trainable_variables)
    return TrainingState(
        model=model,
        optimizer=optimizer,
        step=tf.Variable(0, dtype=tf.int64, trainable=False, name="step"),
        loss_sum=tf.Variable(0.0, trainable=False, name="loss_sum"),
    )


def open_checkpoints(state: TrainingState, directory: str) -> tf.train.CheckpointManager:
    """Return the manager that saves and restores `state` in `directory`, an empty or a used one."""
    checkpoint = tf.train.Checkpoint(model=state.model, optimizer=state.optimizer, step=state.step)
    return tf.train.CheckpointManager(checkpoint, directory, max_to_keep=MAX_CHECKPOINTS)


def read_step(path: str) -> int:
    """Return the step at which the checkpoint at `path` was saved."""
    return int(tf.train.load_variable(path, _STEP_KEY))
