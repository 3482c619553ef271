"""Next year's sunspots from those of the years before: a time series, learnt by an LSTM.

309 years of real counts, from the package statsmodels. Alone: python train.py.
"""

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from trainchart_training import Hyperparameters, Training, train

FIRST_TEST_YEAR = 1920
"""Trained with what was before, tested with what came after: a model that has seen the future proves nothing."""
SPOTS = 100.0
"""The unit of inputs and outputs."""


@dataclass(frozen=True)
class Settings(Hyperparameters):
    learning_rate: float = 0.005
    window: int = 22
    """Years to look back: two cycles of the sun."""
    units: int = 16
    max_steps: int = 300


def build_model(settings):
    years = keras.Input((settings.window, 1))
    change = keras.layers.Dense(1)(keras.layers.LSTM(settings.units)(years))
    # The network learns what differs from the year before, which alone is the guess to beat.
    return keras.Model(years, years[:, -1] + change)


def read_series():
    """Return the years, and the mean number of sunspots of each."""
    package = Path(importlib.util.find_spec("statsmodels").submodule_search_locations[0])
    table = np.loadtxt(package / "datasets/sunspots/sunspots.csv", delimiter=",", skiprows=1, dtype="float32")
    return table[:, 0].astype(int), table[:, 1] / SPOTS


def read_examples(split, shard, settings):
    years, spots = read_series()
    windows = np.lib.stride_tricks.sliding_window_view(spots, settings.window + 1)
    is_test = years[settings.window :] >= FIRST_TEST_YEAR
    mine = windows[is_test if split == "test" else ~is_test][shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices((mine[:, :-1, None], mine[:, -1:]))


def build_optimizer(settings):
    return keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(settings.learning_rate, settings.max_steps))


def build_metrics():
    return [keras.metrics.R2Score(name="r2"), keras.metrics.MeanAbsoluteError("error")]


if __name__ == "__main__":
    train(
        Training(
            model=build_model,
            examples=read_examples,
            optimizer=build_optimizer,
            loss=keras.losses.MeanSquaredError(),
            metrics=build_metrics,
            hyperparameters=Settings,
            input_name="years",
        )
    )
