"""The trained network as a SavedModel that TensorFlow Serving, or any TensorFlow program, can load."""

from __future__ import annotations

import contextlib
import keyword
import logging
import re
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from trainchart_training.definition import TEST, Training
from trainchart_training.errors import TrainingError
from trainchart_training.failures import call_program, describe_error
from trainchart_training.hyperparameters import Hyperparameters
from trainchart_training.leading.export_record import write_record
from trainchart_training.saving.origin import Origin
from trainchart_training.strategies.batches import WHOLE, read_examples

log = logging.getLogger(__name__)

FOLDER = "saved_model"
_FILE_ERRORS = (tf.errors.OpError, OSError)


def export_model(
    training: Training, settings: Hyperparameters, model: Any, directory: str, origin: Origin, step: int
) -> str:
    """Write `model`, that of `step`, under `directory` and return its path; a failure leaves the old one there, whole.

    Two renames put the new one in the old one's place, and a reader finds none between them. A process that is killed
    there leaves the old one beside it, and the next export begins by putting that back.
    """
    target = f"{directory}/{FOLDER}"
    draft, old = f"{target}.draft", f"{target}.old"
    module, signature = trace_signature(training, settings, model)
    try:
        _put_back(old, target)
        _remove(draft)
        tf.saved_model.save(module, draft, signatures=signature)
        write_record(draft, origin, step)
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


def trace_signature(training: Training, settings: Hyperparameters, model: Any) -> tuple[Any, Any]:
    """Return what is to be exported: a module with all that the model needs, and its signature as a graph.

    It takes the features by name: those of the examples' dictionary, else `input_name`, with a number behind it for
    each of a tuple's. Raises TrainingError for what could not be exported.
    """
    serve = training.serve or _serve_outputs
    features_spec = read_examples(training, settings, TEST, WHOLE).element_spec[0]
    specs = _name_features(features_spec, training.input_name)
    batches = {
        name: tf.TensorSpec(tf.TensorShape([None]).concatenate(spec.shape), spec.dtype, name=name)
        for name, spec in specs.items()
    }

    def signature(**features: Any) -> Any:
        return serve(model, tf.nest.pack_sequence_as(features_spec, [features[name] for name in specs]))

    function = "serve" if training.serve else "model"
    concrete = call_program(function, tf.function(signature).get_concrete_function, **batches)
    _check_outputs(concrete.structured_outputs)
    module = tf.Module()
    module.model = model
    # TensorFlow does not find the seeds of dropout in a recurrent layer by itself.
    module.model_variables = list(model.variables)
    _check_resources(module, concrete, function)
    return module, concrete


def _serve_outputs(model: Any, features: Any) -> Any:
    outputs = model(features, training=False)
    if isinstance(outputs, (list, tuple)):
        return {f"outputs_{index}": output for index, output in enumerate(outputs)}
    return outputs if isinstance(outputs, Mapping) else {"outputs": outputs}


def _name_features(spec: Any, input_name: str) -> dict[str, Any]:
    """Return the spec of every tensor, in the order of tf.nest, by a name that an input of a signature can have.

    What is sparse or ragged has a spec with shape and dtype, too, and is served dense.
    """
    if isinstance(spec, dict):
        keys = sorted(spec)
        names, specs = [_identify(str(key)) for key in keys], [spec[key] for key in keys]
    elif isinstance(spec, tuple):
        names, specs = [_identify(f"{input_name}_{index}") for index in range(len(spec))], list(spec)
    else:
        names, specs = [_identify(input_name)], [spec]
    if not all(hasattr(item, "shape") and hasattr(item, "dtype") for item in specs):
        raise TrainingError(f"features must be a tensor, or a dictionary or tuple of tensors, not {spec}")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TrainingError(f"several features would be called {', '.join(repeated)} in the exported model's signature")
    return dict(zip(names, specs, strict=True))


def _identify(text: str) -> str:
    """Return `text` as a name that TensorFlow gives to an argument, by TensorFlow's own rules."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    is_taken = keyword.iskeyword(name) or name == "self"
    return name if name[:1].isalpha() and not is_taken else f"arg_{name}"


def _check_outputs(outputs: Any) -> None:
    """Raise TrainingError unless a SavedModel's signature can return `outputs`."""
    if isinstance(outputs, Mapping):
        is_right = all(isinstance(name, str) for name in outputs)
        parts = list(outputs.values())
    else:
        is_right = True
        parts = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
    if not (is_right and parts and all(tf.is_tensor(part) for part in parts)):
        raise TrainingError(
            f"the exported model must return a tensor, or a dictionary of tensors by name, not {_describe(outputs)}:"
            " give the program a function serve that returns one"
        )


def _check_resources(module: Any, concrete: Any, function: str) -> None:
    """Raise TrainingError where the signature uses a table or variable that would not be exported with it."""
    parts = _find_exported_parts(module)
    kept = {id(getattr(part, name, None)) for part in parts for name in ("handle", "resource_handle")}
    for tensor in concrete.captured_inputs:
        if tensor.dtype == tf.resource and id(tensor) not in kept:
            raise TrainingError(
                f"the program's function {function} uses a table or variable that is not part of the model, so that it"
                " cannot be exported: make it an attribute of the model or of one of its layers (model.table = …)"
            )


def _find_exported_parts(module: Any) -> list[Any]:
    """Return all that is saved with `module`; Keras shows the lists and dictionaries of a layer to this view alone."""
    parts, known = [module], {id(module)}
    for part in parts:
        for child in tf.train.TrackableView.children(part, save_type="savedmodel").values():
            if id(child) not in known:
                known.add(id(child))
                parts.append(child)
    return parts


def _describe(outputs: Any) -> str:
    return f"{tf.nest.map_structure(lambda part: part.dtype.name if tf.is_tensor(part) else part, outputs)}"


def _put_back(old: str, target: str) -> None:
    if tf.io.gfile.exists(old) and not tf.io.gfile.exists(target):
        tf.io.gfile.rename(old, target)


def _remove(directory: str) -> None:
    if tf.io.gfile.exists(directory):
        tf.io.gfile.rmtree(directory)
