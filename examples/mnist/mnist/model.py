"""The network: two convolutions and a dense layer on raw pixels, 57,000 parameters."""

from __future__ import annotations

import keras


def build_model(seed: int) -> keras.Model:
    """Return the untrained network: uint8 images [n, 28, 28] in, ten logits out.

    Every layer gets its own seed. The global one (keras.utils.set_random_seed) would also fix the order in which
    the workers shuffle, and then all of them would compute the same gradients from the same batches.
    """
    layers = keras.layers

    def initializer(layer: int) -> keras.initializers.Initializer:
        return keras.initializers.HeNormal(seed=10 * seed + layer)

    return keras.Sequential(
        [
            keras.Input((28, 28), dtype="uint8"),
            layers.Rescaling(1 / 255),
            layers.Reshape((28, 28, 1)),
            layers.Conv2D(16, 3, activation="relu", kernel_initializer=initializer(0)),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, activation="relu", kernel_initializer=initializer(1)),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(64, activation="relu", kernel_initializer=initializer(2)),
            layers.Dense(10, kernel_initializer=initializer(3)),
        ],
        name="mnist",
    )
