"""The trained network as a SavedModel that TensorFlow Serving, or any TensorFlow program, can load."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import tensorflow as tf

from trainchart_training.batches import WHOLE, read_examples
from trainchart_training.definition import TEST, Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import call_program, describe_error
from trainchart_training.hyperparameters import Hyperparameters

log = logging.getLogger(__name__)

FOLDER = "saved_model"
_FILE_ERRORS = (tf.errors.OpError, OSError)


def export_model(training: Training, settings: Hyperparameters, model: Any, directory: str) -> str:
    """Write `model` under `directory` and return its path; a failure leaves the old one there, whole.

    Two renames put the new one in the old one's place, and a reader finds none between them. A process that is killed
    there leaves the old one beside it, and the next export begins by putting that back.
    """
    module = tf.Module()
    module.model = model
    target = f"{directory}/{FOLDER}"
    draft, old = f"{target}.draft", f"{target}.old"
    concrete = trace_signature(training, settings, model)
    try:
        _put_back(old, target)
        _remove(draft)
        tf.saved_model.save(module, draft, signatures=concrete)
        _remove(old)
        if tf.io.gfile.exists(target):
            tf.io.gfile.rename(target, old)
        tf.io.gfile.rename(draft, target)
    except _FILE_ERRORS as error:
        with contextlib.suppress(*_FILE_ERRORS):
            _put_back(old, target)
            _remove(draft)
        raise TrainingError(f"cannot export the model to {target}: {describe_error(error)}") from error
    try:
        _remove(old)
    except _FILE_ERRORS as error:
        log.warning("cannot remove %s: %s", old, describe_error(error))
    return target


def trace_signature(training: Training, settings: Hyperparameters, model: Any) -> Any:
    """Return the exported model's signature as a graph.

    It takes the features by name: those of the examples' dictionary, else the one `input_name`.
    """
    serve = training.serve or (lambda trained, features: {"outputs": trained(features, training=False)})
    features_spec = read_examples(training, settings, TEST, WHOLE).element_spec[0]
    is_named = isinstance(features_spec, dict)
    specs = features_spec if is_named else {training.input_name: features_spec}
    named = {name: tf.TensorSpec([None, *spec.shape], spec.dtype, name=name) for name, spec in specs.items()}

    def signature(**features: Any) -> Any:
        return serve(model, features if is_named else features[training.input_name])

    return call_program("serve", tf.function(signature).get_concrete_function, **named)


def _put_back(old: str, target: str) -> None:
    if tf.io.gfile.exists(old) and not tf.io.gfile.exists(target):
        tf.io.gfile.rename(old, target)


def _remove(directory: str) -> None:
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rmtree(directory)
