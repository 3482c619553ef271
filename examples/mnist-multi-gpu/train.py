"""Digits on all GPUs of one machine: TFRecords, a decaying learning rate, averaged weights, histograms, speeds.

Alone, on whatever is there: python train.py.
"""

import time
from dataclasses import dataclass

import keras
import tensorflow as tf
from records import find_records

from trainchart_training import Hook, Hyperparameters, Training, train
from trainchart_training.records import read_tfrecords

layers = keras.layers


@dataclass(frozen=True)
class Settings(Hyperparameters):
    learning_rate: float = 0.1
    decay_steps: int = 500
    max_steps: int = 3000
    checkpoint_steps: int = 1000
    log_steps: int = 10
    histogram_steps: int = 500


def build_model(settings):
    def convolve(filters):
        return layers.Conv2D(filters, 5, padding="same", activation="relu", kernel_initializer="he_normal")

    pixels = [keras.Input((28, 28, 1), dtype="uint8"), layers.Rescaling(1 / 128, offset=-1)]
    features = [convolve(16), layers.MaxPooling2D(), convolve(32), layers.MaxPooling2D(), layers.Flatten()]
    return keras.Sequential([*pixels, *features, layers.Dense(64, activation="relu"), layers.Dense(10)])


def read_examples(split, shard, settings):
    wanted = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def parse(record):
        example = tf.io.parse_single_example(record, wanted)
        return tf.reshape(tf.io.decode_raw(example["image"], tf.uint8), (28, 28, 1)), example["label"]

    return read_tfrecords(find_records(split), shard).map(parse, num_parallel_calls=tf.data.AUTOTUNE)


def build_optimizer(settings):
    """Let the rate fall in steps, and keep the averages of the weights, which are what is measured and exported."""
    rate = keras.optimizers.schedules.ExponentialDecay(
        settings.learning_rate, settings.decay_steps, decay_rate=0.5, staircase=True
    )
    return keras.optimizers.SGD(rate, use_ema=True, ema_momentum=0.99)


class Speed(Hook):
    """Prints how fast it is, every logSteps steps."""

    def begin(self, model, step):
        self.step, self.since = step, time.monotonic()

    def logged(self, step, values):
        seconds = (time.monotonic() - self.since) / (step - self.step)
        rate = values["examples_per_second"]
        print(f"step {step}: loss {values['loss']:.2f} ({rate:.1f} examples/s; {seconds:.3f} s/batch)", flush=True)
        self.step, self.since = step, time.monotonic()


if __name__ == "__main__":
    train(
        Training(
            model=build_model,
            examples=read_examples,
            optimizer=build_optimizer,
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=lambda: [keras.metrics.SparseCategoricalAccuracy("accuracy")],
            hyperparameters=Settings,
            hooks=[Speed()],
            input_name="images",
        )
    )
