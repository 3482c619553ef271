"""From the program's examples to batches: mixed, repeated, augmented."""

from __future__ import annotations

import warnings
from typing import Any

import tensorflow as tf

from trainchart_training.definition import TEST, TRAIN, Shard, Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import make_part
from trainchart_training.hyperparameters import Hyperparameters

WHOLE = Shard(0, 1)


def read_examples(training: Training, settings: Hyperparameters, split: str, shard: Shard) -> Any:
    """Return the program's tf.data.Dataset of single examples."""
    dataset = make_part("examples", tf.data.Dataset, training.examples, split, shard, settings)
    with warnings.catch_warnings():
        # In a graph TensorFlow says that it may not know all options: those that the program gives here, it knows.
        warnings.simplefilter("ignore")
        is_tuned = dataset.options().autotune.enabled
    if is_tuned is None:
        # The tuner sleeps for up to a minute, and is not always woken when its iterator is to end. What ends one would
        # wait for it: a process, or a worker that is to take a chief that has come back.
        options = tf.data.Options()
        options.autotune.enabled = False
        dataset = dataset.with_options(options)
    return dataset


def build_batches(training: Training, settings: Hyperparameters, shard: Shard, seed: Any, replicas: int = 1) -> Any:
    """Return the endless tf.data.Dataset of training batches, of which each step takes one for each of `replicas`.

    The `seed` is an integer or a tensor of one; without one, None, every process mixes differently.
    """
    dataset = read_examples(training, settings, TRAIN, shard)
    if settings.shuffle_buffer:
        dataset = dataset.shuffle(settings.shuffle_buffer, seed=seed)
    dataset = dataset.repeat().batch(settings.batch_size, drop_remainder=True)
    if training.augment:
        dataset = dataset.map(training.augment, num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(2 * replicas)


def build_test_batches(training: Training, settings: Hyperparameters) -> Any:
    """Return all test examples, once and in order."""
    dataset = read_examples(training, settings, TEST, WHOLE)
    if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
        raise TrainingError("the test examples never end: leave out repeat()")
    return dataset.batch(settings.batch_size).prefetch(2)
