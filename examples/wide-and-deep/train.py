"""How far a car drives on a gallon, from a table: a wide part that remembers cases, a deep part that generalises.

392 real cars, from the package mlxtend. Alone: python train.py.
"""

import csv
import gzip
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from trainchart_training import Hyperparameters, Training, train

layers = keras.layers
NUMBERS = ("cylinders", "displacement", "horsepower", "weight", "acceleration", "year")
MAKES, CROSSINGS = 64, 256
"""Hash buckets of the makes, and of make x origin x decade half."""


@dataclass(frozen=True)
class Settings(Hyperparameters):
    learning_rate: float = 0.01
    embedding_size: int = 8
    max_steps: int = 500


def read_table():
    """Return the features by name, and the miles per gallon."""
    package = Path(importlib.util.find_spec("mlxtend").submodule_search_locations[0])
    with gzip.open(package / "data/data/autompg.csv.gz", "rt") as file:
        rows = list(csv.reader(file))
    table = {name: np.array([row[place] for row in rows], "float32") for place, name in enumerate(NUMBERS)}
    table["origin"] = np.array([int(row[6]) for row in rows], "int64")
    table["make"] = np.array([row[7].split()[0] for row in rows])
    return table, np.array([[row[8]] for row in rows], "float32")


def build_model(settings):
    inputs = {name: keras.Input((), dtype="float32", name=name) for name in NUMBERS}
    inputs["origin"] = keras.Input((), dtype="int64", name="origin")
    inputs["make"] = keras.Input((), dtype="int64", name="make")
    inputs["crossing"] = keras.Input((), dtype="int64", name="crossing")
    one_hot = layers.CategoryEncoding(CROSSINGS, output_mode="one_hot")
    wide = layers.Dense(1, use_bias=False, kernel_regularizer="l2")(one_hot(inputs["crossing"]))
    numbers = layers.BatchNormalization()(keras.ops.stack([inputs[name] for name in NUMBERS], axis=1))
    make = layers.Embedding(MAKES, settings.embedding_size)(inputs["make"])
    origin = layers.Embedding(4, settings.embedding_size)(inputs["origin"])
    deep = layers.Concatenate()([numbers, make, origin])
    for units in (64, 32):
        deep = layers.Dense(units, activation="relu")(deep)
    return keras.Model(inputs, wide + layers.Dense(1, bias_initializer=keras.initializers.Constant(23))(deep))


def read_examples(split, shard, settings):
    features, targets = read_table()
    half_decade = (features["year"] // 5).astype("int64").astype(str)
    words = tf.strings.join([features["make"], features["origin"].astype(str), half_decade], "/")
    features["crossing"] = tf.strings.to_hash_bucket_fast(words, CROSSINGS).numpy()
    features["make"] = tf.strings.to_hash_bucket_fast(features["make"], MAKES).numpy()
    is_test = np.arange(len(targets)) % 5 == 0
    chosen = np.flatnonzero(is_test if split == "test" else ~is_test)[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices(
        ({name: part[chosen] for name, part in features.items()}, targets[chosen])
    )


def build_optimizer(settings):
    return keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(settings.learning_rate, settings.max_steps))


if __name__ == "__main__":
    train(
        Training(
            model=build_model,
            examples=read_examples,
            optimizer=build_optimizer,
            loss=keras.losses.MeanSquaredError(),
            metrics=lambda: [keras.metrics.MeanAbsoluteError("miles_off")],
            hyperparameters=Settings,
        )
    )
