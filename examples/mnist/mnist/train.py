"""The program: what is learned from which digits. Where it runs, and with whom, is the model spec's business."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import keras
import tensorflow as tf

from mnist.data import read_digits, split_digits
from trainchart_training import Hyperparameters, Shard, Training, train

layers = keras.layers


@dataclass(frozen=True)
class Settings(Hyperparameters):
    learning_rate: float = 0.05


def build_model(settings: Settings) -> keras.Model:
    """Return two convolutions and a dense layer on raw pixels: uint8 images [n, 28, 28] in, ten logits out."""
    return keras.Sequential(
        [
            keras.Input((28, 28), dtype="uint8"),
            layers.Rescaling(1 / 255),
            layers.Reshape((28, 28, 1)),
            layers.Conv2D(16, 3, activation="relu", kernel_initializer="he_normal"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu", kernel_initializer="he_normal"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu", kernel_initializer="he_normal"),
            layers.Dense(10, kernel_initializer="he_normal"),
        ],
        name="mnist",
    )


def read_examples(split: str, shard: Shard, settings: Settings) -> tf.data.Dataset:
    training, held_out = split_digits(read_digits())
    digits = training if split == "train" else held_out
    mine = slice(shard.index, None, shard.count)
    return tf.data.Dataset.from_tensor_slices((digits.images[mine], digits.labels[mine]))


def shift(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Move a batch by up to two pixels each way: 4,000 digits are few, and a moved digit is as good as a new one."""
    padded = tf.pad(images, [[0, 0], [2, 2], [2, 2]])
    row, column = tf.unstack(tf.random.uniform([2], maxval=5, dtype=tf.int32))
    return padded[:, row : row + 28, column : column + 28], labels


def build_optimizer(settings: Settings) -> keras.Optimizer:
    """Let the rate fall to 0: workers compute from weights that others have changed since, and that noise settles."""
    rate = keras.optimizers.schedules.CosineDecay(settings.learning_rate, settings.max_steps)
    return keras.optimizers.SGD(rate, momentum=0.8)


def serve(model: keras.Model, images: tf.Tensor) -> Mapping[str, tf.Tensor]:
    return {"probabilities": tf.nn.softmax(model(images, training=False))}


if __name__ == "__main__":
    train(
        Training(
            model=build_model,
            examples=read_examples,
            optimizer=build_optimizer,
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=lambda: [keras.metrics.SparseCategoricalAccuracy("accuracy")],
            hyperparameters=Settings,
            augment=shift,
            serve=serve,
            input_name="images",
        )
    )
