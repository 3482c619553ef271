"""The trained network as a SavedModel that TensorFlow Serving, or any TensorFlow program, can load."""

from __future__ import annotations

import keras
import tensorflow as tf

from mnist.model import build_model


def export_model(trained: keras.Model, directory: str) -> str:
    """Write the SavedModel under `directory` and return its path; a reader finds the old one or the new one, whole.

    Its one signature takes `images`, uint8 [n, 28, 28], and returns `probabilities`, float32 [n, 10].
    """
    # A copy with variables in this process: a SavedModel must not remember on which ps they once were.
    model = build_model(seed=0)
    model.set_weights(trained.get_weights())

    @tf.function(input_signature=[tf.TensorSpec([None, 28, 28], tf.uint8, name="images")])
    def serve(images: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": tf.nn.softmax(model(images, training=False))}

    module = tf.Module()
    module.model = model
    target = f"{directory}/saved_model"
    draft, old = f"{target}.draft", f"{target}.old"
    _remove(draft)
    _remove(old)
    tf.saved_model.save(module, draft, signatures=serve)
    if tf.io.gfile.exists(target):
        tf.io.gfile.rename(target, old)
    tf.io.gfile.rename(draft, target)
    _remove(old)
    return target


def _remove(directory: str) -> None:
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rmtree(directory)
