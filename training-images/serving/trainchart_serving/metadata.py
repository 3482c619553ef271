"""What the API says about a model: its signatures, and the state of its versions."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict
from tensorflow_serving.apis import get_model_metadata_pb2

from trainchart_serving.predictor import Predictor, Target


def make_signature_map(predictor: Predictor, target: Target) -> tuple[int, Any]:
    """Return the version that is meant, and its signatures as a message of the API. Raises ServingError."""
    predictor.check_name(target.model, target.version)
    with predictor.live.lease(target.version) as model:
        signatures = get_model_metadata_pb2.SignatureDefMap()
        for name in model.signatures:
            signatures.signature_def[name].CopyFrom(model.definitions[name])
        return model.version, signatures


def describe_metadata(predictor: Predictor, target: Target) -> dict[str, Any]:
    """Return the body that answers a request for metadata. Raises ServingError."""
    version, signatures = make_signature_map(predictor, target)
    shown = MessageToDict(signatures, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    return {
        "model_spec": {"name": target.model, "signature_name": "", "version": str(version)},
        "metadata": {"signature_def": shown},
    }


def describe_status(predictor: Predictor, target: Target) -> dict[str, Any]:
    """Return the body that answers a request for the status of versions. Raises ServingError."""
    predictor.check_name(target.model, target.version)
    return {
        "model_version_status": [
            {
                "version": str(status.version),
                "state": status.state.name,
                "status": {"error_code": status.code.name, "error_message": status.message},
            }
            for status in predictor.live.list_status(target.version)
        ]
    }
