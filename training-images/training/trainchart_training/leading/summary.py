"""Curves, histograms and a graph for TensorBoard, written with TensorFlow alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainchart_training.errors import TrainingError
from trainchart_training.failures import describe_error

_BUCKETS = 30


def open_summaries(log_dir: str, name: str) -> Any:
    """Return the writer of the curves called `name`, or one that writes nothing where no folder is given.

    Raises TrainingError where nothing can be written.
    """
    if not log_dir:
        return tf.summary.create_noop_writer()
    try:
        return tf.summary.create_file_writer(f"{log_dir}/{name}")
    except tf.errors.OpError as error:
        raise TrainingError(f"cannot write curves to {log_dir}: {describe_error(error)}") from error


def write_scalars(writer: Any, step: int, values: Mapping[str, float]) -> None:
    """Add one point to the curve of every name in `values`, visible to TensorBoard at once.

    tf.summary.scalar does the same, but since TensorFlow 2.21 only where the tensorboard package is installed too:
    https://github.com/tensorflow/tensorflow/blob/v2.21.0/tensorflow/python/summary/tb_summary.py
    """
    plugin = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars")
    metadata = tf.compat.v1.SummaryMetadata(plugin_data=plugin, data_class=1)  # DATA_CLASS_SCALAR
    with writer.as_default(step=step):
        for name, value in values.items():
            tf.summary.write(name, tf.constant(value, tf.float32), metadata=metadata)
    writer.flush()


def write_graph(writer: Any, graph: Any) -> None:
    """Add a tf.Graph; TensorBoard shows the last one of a run."""
    with writer.as_default():
        tf.summary.graph(graph)
    writer.flush()


def write_histograms(writer: Any, step: int, values: Mapping[str, npt.NDArray[Any]]) -> None:
    """Add one histogram to every name in `values`; numbers that are not finite are left out."""
    plugin = tf.compat.v1.SummaryMetadata.PluginData(plugin_name="histograms")
    metadata = tf.compat.v1.SummaryMetadata(plugin_data=plugin, data_class=2)  # DATA_CLASS_TENSOR
    with writer.as_default(step=step):
        for name, value in values.items():
            counts, edges = np.histogram(value[np.isfinite(value)].astype(np.float64), _BUCKETS)
            # Rows of left edge, right edge and count.
            tf.summary.write(name, tf.constant(np.stack([edges[:-1], edges[1:], counts], axis=1)), metadata=metadata)
    writer.flush()
