"""SavedModels that are made in half a second: tf.Module without Keras."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.example import example_pb2
from tensorflow_serving.apis import prediction_log_pb2

from trainchart_serving.warmup import WARMUP_FILE


class Half(tf.Module):
    """y = factor * x + 2, and other signatures beside it."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = tf.Variable(factor)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
    def half(self, x: Any) -> Any:
        return {"y": self.factor * x + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([None], tf.int64)])
    def pair(self, a: Any, b: Any) -> Any:
        return {"sum": tf.reduce_sum(a, axis=1), "twice": b * 2}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def reverse(self, text: Any) -> Any:
        return {"text_bytes": tf.strings.join([text, text]), "length": tf.strings.length(text)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def regress(self, inputs: Any) -> Any:
        parsed = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([1], tf.float32)})
        return {"outputs": self.factor * parsed["x"] + 2.0}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def classify(self, inputs: Any) -> Any:
        parsed = tf.io.parse_example(inputs, {"x": tf.io.FixedLenFeature([1], tf.float32, 0.0)})
        labels = tf.tile(tf.constant([["low", "high"]]), [tf.shape(inputs)[0], 1])
        return {"classes": labels, "scores": tf.concat([1.0 - parsed["x"], parsed["x"]], axis=1)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def spin(self, turns: Any) -> Any:
        matrix = tf.ones([256, 256])
        for _ in tf.range(turns):
            matrix = tf.matmul(matrix, matrix) / 256.0
        return {"sum": tf.reduce_sum(matrix)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def picky(self, x: Any) -> Any:
        with tf.control_dependencies([tf.debugging.assert_non_negative(x, "x must not be negative")]):
            return {"root": tf.sqrt(x)}


def save_half(folder: Path, factor: float = 0.5) -> Path:
    """Write a version into `folder` and return it."""
    module = Half(factor)
    signatures = {
        "serving_default": module.half,
        "pair": module.pair,
        "reverse": module.reverse,
        "regress": module.regress,
        "classify": module.classify,
        "spin": module.spin,
        "picky": module.picky,
    }
    tf.saved_model.save(module, str(folder), signatures=signatures)
    return folder


def copy_version(source: Path, target: Path) -> Path:
    """Put a copy of a version into place as a whole, as everyone who publishes one should."""
    draft = target.with_name(f"{target.name}.draft")
    shutil.copytree(source, draft)
    draft.rename(target)
    return target


def make_example(x: float) -> Any:
    example = example_pb2.Example()
    example.features.feature["x"].float_list.value.append(x)
    return example


def write_warmup(folder: Path, *values: list[float]) -> None:
    """Write warm-up requests to the default signature, of these values for x."""
    path = folder / WARMUP_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for value in values:
            record = prediction_log_pb2.PredictionLog()
            tensor = tf.make_tensor_proto(np.array(value, np.float32))
            record.predict_log.request.inputs["x"].CopyFrom(tensor)
            writer.write(record.SerializeToString())
