"""One training step, the same under every strategy: the gradients of one batch, and their way into the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from trainchart_training.definition import Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import show
from trainchart_training.saving.state import TrainingState


def build_gradients(
    training: Training, state: TrainingState, replicas: int = 1
) -> Callable[[Any, Any], tuple[Any, list[Any]]]:
    """Return the function (features, targets) → (loss, gradients of the trainable variables).

    The gradients are one replica's part of the mean over `replicas`: their sum is the gradient of the mean loss, times
    loss_scale(), which the optimizer takes out again.
    """
    model, optimizer, own_step = state.model, state.optimizer, training.step
    if own_step and (scales_loss(optimizer) or optimizer.loss_scale_factor):
        raise TrainingError("the program's step computes gradients itself, so its optimizer cannot scale the loss")

    def differentiate(_model: Any, features: Any, targets: Any) -> tuple[Any, Sequence[Any]]:
        with tf.GradientTape() as tape:
            outputs = model(features, training=True)
            loss = tf.cast(tf.reduce_mean(training.loss(targets, outputs)), tf.float32)
            # Regularisers, and whatever layers add.
            loss = tf.add_n([loss, *(tf.cast(extra, tf.float32) for extra in model.losses)])
            scaled = optimizer.scale_loss(loss)
            # Here, and not in every gradient: it is one number.
            share = scaled / replicas
        return loss, tape.gradient(share, [item.value for item in model.trainable_variables])

    def compute(features: Any, targets: Any) -> tuple[Any, list[Any]]:
        result = (own_step or differentiate)(model, features, targets)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise TrainingError(f"the program's step must return a pair (loss, gradients), not {show(result)}")
        loss, gradients = result
        if len(gradients) != len(model.trainable_variables):
            raise TrainingError(
                f"the program's step returned {len(gradients)} gradients for"
                f" {len(model.trainable_variables)} trainable variables of the model"
            )
        for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
            if gradient is None:
                raise TrainingError(f"the loss does not depend on the weights {variable.path}: leave them out")
        if own_step and replicas > 1:
            gradients = [_divide(gradient, replicas) for gradient in gradients]
        return tf.cast(loss, tf.float32), list(gradients)

    return compute


def scales_loss(optimizer: Any) -> bool:
    """Say whether `optimizer` is a LossScaleOptimizer, which skips a step whose gradients are not finite."""
    return hasattr(optimizer, "inner_optimizer")


def loss_scale(optimizer: Any) -> Any:
    """Return the factor that gradients are greater by than they should be, so that float16 can hold small ones."""
    return optimizer.scale_loss(1.0)


def clip(gradients: Sequence[Any], norm: float, optimizer: Any) -> list[Any]:
    """Return `gradients` with a norm, the loss's scale apart, of at most `norm` over all of them; 0 changes nothing."""
    if not norm:
        return list(gradients)
    # The slices themselves stay as they are: a collective wants as many rows in each step.
    whole = tf.linalg.global_norm([_merge(part) for part in gradients])
    return list(tf.clip_by_global_norm(gradients, norm * loss_scale(optimizer), use_norm=whole)[0])


def _merge(gradient: Any) -> Any:
    """Return `gradient` with every row of a sparse one given once: the norm is of their sum."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, places = tf.unique(gradient.indices)
    return tf.IndexedSlices(
        tf.math.unsorted_segment_sum(gradient.values, places, tf.size(rows)), rows, gradient.dense_shape
    )


def build_steps(training: Training, strategy: Any, state: TrainingState, clip_norm: float) -> Any:
    """Return the graph function (iterator of batches, number of steps) that does so many steps under `strategy`.

    It returns the sum of their losses.
    """
    replicas = strategy.num_replicas_in_sync
    train_on_batch = _build_replica_step(training, state, clip_norm, replicas)

    def run(batches: Any, steps: Any) -> Any:
        # Every replica sums up its own losses: they meet once, at the end.
        losses = strategy.run(lambda: tf.constant(0.0))
        for _ in tf.range(steps):
            losses = strategy.run(train_on_batch, args=(losses, *next(batches)))
            if replicas == 1:
                # One by one, because a worker with ps may die half-way.
                state.step.assign_add(1)
        if replicas > 1:
            # At once, because every device has a copy.
            state.step.assign_add(tf.cast(steps, tf.int64))
        # Not for one alone: under parameter-server that takes four percent longer.
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None) if replicas > 1 else losses

    return tf.function(run)


def _build_replica_step(
    training: Training, state: TrainingState, clip_norm: float, replicas: int
) -> Callable[[Any, Any, Any], Any]:
    """Return what one replica does with its sum of losses and one batch: it returns the sum with the batch's share.

    All replicas of a step apply the mean of their gradients.
    """
    compute = build_gradients(training, state, replicas)
    # What is clipped is the mean, so that a number of replicas does not change what the norm means; and all replicas
    # have to see alike whether a scale was too large.
    needs_mean = replicas > 1 and (clip_norm > 0 or scales_loss(state.optimizer))

    def train_on_batch(losses: Any, features: Any, targets: Any) -> Any:
        loss, gradients = compute(features, targets)
        if needs_mean:
            gradients = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        gradients = clip(gradients, clip_norm, state.optimizer)
        if needs_mean:
            gradients = [_divide(gradient, replicas) for gradient in gradients]
        # Keras applies the sum over all replicas.
        state.optimizer.apply(gradients, state.model.trainable_variables)
        return losses + loss / replicas

    return train_on_batch


def _divide(gradient: Any, divisor: int) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(gradient.values / divisor, gradient.indices, gradient.dense_shape)
    return gradient / divisor
