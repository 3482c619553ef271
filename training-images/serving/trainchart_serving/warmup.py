"""The first requests to a version, before it takes over: those that it brings along, or zeros for each signature.

They trace, allocate and compile what would else make the first client wait, and they show that the version answers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow_serving.apis import prediction_log_pb2

from trainchart_serving.examples import serialize_examples
from trainchart_serving.failures import Code, ServingError
from trainchart_serving.model import Model, convert_error
from trainchart_serving.signature import Arrays, Signature, make_synthetic_inputs
from trainchart_serving.tensor_protos import parse_tensor

log = logging.getLogger(__name__)

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
MOST_REQUESTS = 1000
_REFUSALS = {Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE}


def warm_up(model: Model, folder: Path, examples: int = 1) -> int:
    """Send the version its warm-up requests, and return how many; `examples` is the size of the largest batch.

    Raises:
        ServingError: the version does not answer, or refuses one of the requests that it brings along.
    """
    path = folder / WARMUP_FILE
    requests = list(_read_requests(model, path)) if path.exists() else []
    for number, (signature, inputs) in enumerate(requests, 1):
        try:
            signature.check(inputs)
            model.run(signature, inputs)
        except ServingError as error:
            raise ServingError(error.code, f"warm-up request {number} failed: {error}") from error
    for signature in [] if requests else model.signatures.values():
        for size in sorted({1, examples}) if signature.is_batch else [1]:
            _send_zeros(model, signature, size)
    return len(requests)


def _send_zeros(model: Model, signature: Signature, examples: int) -> None:
    try:
        model.run(signature, make_synthetic_inputs(signature, examples))
    except ServingError as error:
        if error.code not in _REFUSALS:
            raise ServingError(error.code, f"signature {signature.name} does not answer: {error}") from error
        # An empty string is not a picture: the model works, and cannot be warmed up like this.
        log.warning("signature %s refuses a request of zeros, so provide requests as %s", signature.name, WARMUP_FILE)


def _read_requests(model: Model, path: Path) -> Iterator[tuple[Signature, Arrays]]:
    """Yield the requests of a file of PredictionLog records."""
    try:
        for number, record in enumerate(tf.data.TFRecordDataset(str(path)).as_numpy_iterator(), 1):
            if number > MOST_REQUESTS:
                raise ServingError(Code.INVALID_ARGUMENT, f"{WARMUP_FILE} has more than {MOST_REQUESTS} requests")
            yield _parse_request(model, prediction_log_pb2.PredictionLog.FromString(record))
    except (tf.errors.OpError, DecodeError) as error:
        problem = str(error) if isinstance(error, DecodeError) else convert_error(error).message
        raise ServingError(Code.DATA_LOSS, f"cannot read {WARMUP_FILE}: {problem}") from error


def _parse_request(model: Model, record: Any) -> tuple[Signature, Arrays]:
    kind = record.WhichOneof("log_type")
    if kind not in ("predict_log", "classify_log", "regress_log"):
        raise ServingError(Code.UNIMPLEMENTED, f"{WARMUP_FILE}: {kind} is not a request that this server knows")
    request = getattr(record, kind).request
    signature = model.find_signature(request.model_spec.signature_name)
    if kind == "predict_log":
        return signature, {name: parse_tensor(name, proto) for name, proto in request.inputs.items()}
    return signature, serialize_examples(signature, request.input)
