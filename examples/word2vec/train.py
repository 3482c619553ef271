"""Words as vectors, learnt from the company they keep: skip-grams with negative sampling.

The text comes with Python itself: its reference manual, 64,000 words. Alone: python train.py.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics

import keras
import numpy as np
import tensorflow as tf

from trainchart_training import Hook, Hyperparameters, Training, train

WORDS = 1000
"""The most frequent words, which get a vector; all others are left out of the text."""


@dataclass(frozen=True)
class Settings(Hyperparameters):
    learning_rate: float = 0.01
    dimensions: int = 32
    window: int = 4
    """Words to each side that count as company."""
    negatives: int = 4
    """Random words for each real one."""
    max_steps: int = 1000
    batch_size: int = 512


@cache
def read_text():
    """Return the words by number, the most frequent first, and the text in these numbers."""
    text = re.findall("[a-z]+", " ".join(topics.values()).lower())
    numbers = {word: number for number, (word, _) in enumerate(Counter(text).most_common(WORDS))}
    return list(numbers), np.array([numbers[word] for word in text if word in numbers])


def build_model(settings):
    word, other = keras.Input((), dtype="int32", name="word"), keras.Input((), dtype="int32", name="other")
    vectors = keras.layers.Embedding(WORDS, settings.dimensions, name="vectors")(word)
    company = keras.layers.Embedding(WORDS, settings.dimensions, name="company")(other)
    return keras.Model({"word": word, "other": other}, keras.layers.Dot(axes=1)([vectors, company]))


def read_examples(split, shard, settings):
    """Return pairs of words with 1 for those that stand together, 0 for a random other; every tenth pair tests."""
    _, text = read_text()
    pairs = np.concatenate([np.stack([text[:-n], text[n:]], 1) for n in range(1, settings.window + 1)])
    chance = np.bincount(text, minlength=WORDS) ** 0.75
    random = np.random.default_rng(1)
    others = np.repeat(pairs, settings.negatives, axis=0)
    others[:, 1] = random.choice(WORDS, len(others), p=chance / chance.sum())
    words = np.concatenate([pairs, others]).astype("int32")
    targets = np.repeat([[1.0], [0.0]], [len(pairs), len(others)], axis=0).astype("float32")
    # Mixed here: all pairs of one kind would fill the buffer that the library mixes in.
    order = random.permutation(len(words))
    cut = len(words) // 10
    mine = (order[:cut] if split == "test" else order[cut:])[shard.index :: shard.count]
    return tf.data.Dataset.from_tensor_slices(({"word": words[mine, 0], "other": words[mine, 1]}, targets[mine]))


def build_optimizer(settings):
    return keras.optimizers.Adam(settings.learning_rate)


class Neighbours(Hook):
    """Prints the words whose vectors point in nearly the same direction as those of a few others."""

    def end(self, model, step):
        words, _ = read_text()
        vectors = tf.math.l2_normalize(model.get_layer("vectors").get_weights()[0], axis=1).numpy()
        for word in ("class", "integer", "exception", "import"):
            nearest = np.argsort(-vectors @ vectors[words.index(word)])[1:6]
            print(f"{word}: {', '.join(words[number] for number in nearest)}", flush=True)


if __name__ == "__main__":
    train(
        Training(
            model=build_model,
            examples=read_examples,
            optimizer=build_optimizer,
            loss=keras.losses.BinaryCrossentropy(from_logits=True),
            metrics=lambda: [keras.metrics.AUC(from_logits=True, name="auc")],
            hyperparameters=Settings,
            hooks=[Neighbours()],
        )
    )
