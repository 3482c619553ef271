"""One training step, the same under every strategy: the gradients of one batch, and their way into the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from trainchart_training.definition import Training
from trainchart_training.errors import TrainingError
from trainchart_training.state import TrainingState


def build_gradients(training: Training, state: TrainingState) -> Callable[[Any, Any], tuple[Any, list[Any]]]:
    """Return the function (features, targets) → (loss, gradients of the trainable variables)."""
    model = state.model

    def compute(features: Any, targets: Any) -> tuple[Any, list[Any]]:
        with tf.GradientTape() as tape:
            outputs = model(features, training=True)
            loss = tf.cast(tf.reduce_mean(training.loss(targets, outputs)), tf.float32)
            # Regularisers, and whatever layers add.
            loss = tf.add_n([loss, *(tf.cast(extra, tf.float32) for extra in model.losses)])
        gradients = tape.gradient(loss, [item.value for item in model.trainable_variables])
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            if gradient is None:
                raise TrainingError(f"the loss does not depend on the weights {variable.path}: leave them out")
        return loss, gradients

    return compute


def clip(gradients: Sequence[Any], norm: float) -> list[Any]:
    """Return `gradients` with a norm of at most `norm` over all of them; 0 changes nothing."""
    return list(tf.clip_by_global_norm(gradients, norm)[0]) if norm else list(gradients)


def build_steps(training: Training, strategy: Any, state: TrainingState, clip_norm: float) -> Any:
    """Return the graph function (iterator of batches, number of steps) that does so many steps under `strategy`."""
    train_on_batch = _build_replica_step(training, state, clip_norm)

    def run(batches: Any, steps: Any) -> None:
        for _ in tf.range(steps):
            strategy.run(train_on_batch, args=next(batches))
            state.step.assign_add(1)

    return tf.function(run)


def _build_replica_step(training: Training, state: TrainingState, clip_norm: float) -> Callable[[Any, Any], None]:
    """Return what one replica does with one batch; all replicas of a step apply the mean of their gradients."""
    compute = build_gradients(training, state)

    def train_on_batch(features: Any, targets: Any) -> None:
        loss, gradients = compute(features, targets)
        context = tf.distribute.get_replica_context()
        replicas = context.num_replicas_in_sync
        if clip_norm and replicas > 1:
            # What is clipped is the mean, so that a number of replicas does not change what the norm means.
            gradients = context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients)
        gradients = clip(gradients, clip_norm)
        # Keras applies the sum over all replicas.
        shares = gradients if replicas == 1 else [_divide(gradient, replicas) for gradient in gradients]
        state.optimizer.apply(shares, state.model.trainable_variables)
        state.loss_sum.assign_add(loss / replicas)

    return train_on_batch


def _divide(gradient: Any, divisor: int) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / divisor, gradient.indices, gradient.dense_shape)
    return gradient / divisor
