"""The contract of gRPC: the official client library, tensorflow-serving-api, works against the server unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import tensorflow as tf
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from tests.serving.running import NAME, Running, wait_until
from tests.serving.small_models import make_example

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def channel(server: Running) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(server.grpc) as channel:
        yield channel


@pytest.fixture
def predictions(channel: grpc.Channel) -> Any:
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def ask(signature: str = "", version: int = 0, **inputs: Any) -> Any:
    request = predict_pb2.PredictRequest()
    request.model_spec.name = NAME
    request.model_spec.signature_name = signature
    if version:
        request.model_spec.version.value = version
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def refused(call: Any, request: Any, **words: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=words.pop("timeout", 20), **words)
    return caught.value.code().name, caught.value.details()


def test_predict_answers_the_official_client(predictions: Any) -> None:
    answer = predictions.Predict(ask(version=1, x=np.array([1.0, 2.0, 5.0], np.float32)), timeout=20)
    spec = answer.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == (NAME, 1, "serving_default")
    # As clients of TensorFlow Serving read it, in both ways.
    assert list(answer.outputs["y"].float_val) == [2.5, 3.0, 4.5]
    assert tf.make_ndarray(answer.outputs["y"]).tolist() == [2.5, 3.0, 4.5]
    newest = predictions.Predict(ask(x=np.array([10.0], np.float32)), timeout=20)
    assert (newest.model_spec.version.value, list(newest.outputs["y"].float_val)) == (2, [32.0])


def test_tensors_of_all_kinds_pass(predictions: Any) -> None:
    answer = predictions.Predict(ask("pair", a=np.array([[1, 2]], np.float32), b=np.array([2**40])), timeout=20)
    assert {name: tf.make_ndarray(proto).tolist() for name, proto in answer.outputs.items()} == {
        "sum": [3.0],
        "twice": [2**41],
    }
    answer = predictions.Predict(ask("reverse", text=[b"a\xff", b""]), timeout=20)
    assert list(answer.outputs["text_bytes"].string_val) == [b"a\xffa\xff", b""]
    assert list(answer.outputs["length"].int_val) == [2, 0]
    request = ask("spin", turns=np.int32(0))
    assert tf.make_ndarray(predictions.Predict(request, timeout=20).outputs["sum"]) == 65536.0


def test_an_output_filter_leaves_the_rest_out(predictions: Any) -> None:
    request = ask("reverse", text=[b"a"])
    request.output_filter.append("length")
    assert set(predictions.Predict(request, timeout=20).outputs) == {"length"}
    request.output_filter.append("width")
    assert refused(predictions.Predict, request)[1] == "output_filter: the signature has no output width"


def test_classify_and_regress_answer_the_official_client(predictions: Any) -> None:
    request: Any = classification_pb2.ClassificationRequest()
    request.model_spec.name, request.model_spec.signature_name = NAME, "classify"
    request.input.example_list.examples.extend([make_example(0.25), make_example(1.0)])
    found = predictions.Classify(request, timeout=20).result.classifications
    assert [[(each.label, each.score) for each in one.classes] for one in found] == [
        [("low", 0.75), ("high", 0.25)],
        [("low", 0.0), ("high", 1.0)],
    ]
    request = regression_pb2.RegressionRequest()
    request.model_spec.name, request.model_spec.signature_name = NAME, "regress"
    request.input.example_list_with_context.examples.extend([make_example(1.0), type(make_example(0))()])
    request.input.example_list_with_context.context.CopyFrom(make_example(2.0))
    assert [each.value for each in predictions.Regress(request, timeout=20).result.regressions] == [5.0, 8.0]
    request.input.Clear()
    assert refused(predictions.Regress, request) == ("INVALID_ARGUMENT", "Input is empty: give at least one example")


def test_metadata_and_status_answer_the_official_client(predictions: Any, channel: grpc.Channel) -> None:
    request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    request.model_spec.name = NAME
    answer = predictions.GetModelMetadata(request, timeout=20)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(signatures)
    assert signatures.signature_def["pair"].inputs["a"].dtype == tf.float32.as_datatype_enum
    status = get_model_status_pb2.GetModelStatusRequest()
    status.model_spec.name = NAME
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    found = models.GetModelStatus(status, timeout=20).model_version_status
    available = get_model_status_pb2.ModelVersionStatus.AVAILABLE
    assert [(each.version, each.state, each.status.error_code) for each in found] == [
        (2, available, 0),
        (1, available, 0),
    ]
    reload = model_management_pb2.ReloadConfigRequest()
    assert refused(models.HandleReloadConfigRequest, reload)[0] == "UNIMPLEMENTED"
    assert refused(predictions.MultiInference, inference_pb2.MultiInferenceRequest())[0] == "UNIMPLEMENTED"
    request.metadata_field[:] = ["other"]
    assert refused(predictions.GetModelMetadata, request)[0] == "INVALID_ARGUMENT"


def spec(**fields: Any) -> Any:
    request = ask(x=np.array([1.0], np.float32))
    for name, value in fields.items():
        setattr(request.model_spec, name, value)
    return request


def tensor(**fields: Any) -> Any:
    """Return a request with a tensor that contradicts itself."""
    request = ask(x=np.array([1.0], np.float32))
    shape = fields.pop("shape", None)
    for name, value in fields.items():
        setattr(request.inputs["x"], name, value)
    if shape is not None:
        del request.inputs["x"].tensor_shape.dim[:]
        for size in shape:
            request.inputs["x"].tensor_shape.dim.add().size = size
    return request


def empty() -> Any:
    request = ask(x=np.array([1.0], np.float32))
    request.inputs["x"].tensor_content = b""
    del request.inputs["x"].float_val[:]
    return request


@pytest.mark.parametrize(
    ("request_of", "code", "said"),
    [
        (lambda: spec(name=""), "INVALID_ARGUMENT", "Missing ModelSpec"),
        (lambda: spec(name="other"), "NOT_FOUND", "Servable not found for request: Latest(other)"),
        (lambda: ask(version=9, x=[1.0]), "NOT_FOUND", "Specific(half, 9)"),
        (lambda: spec(version_label="stable"), "NOT_FOUND", "Unrecognized servable version label: stable"),
        (lambda: spec(signature_name="no"), "INVALID_ARGUMENT", "not found in signature def"),
        (ask, "INVALID_ARGUMENT", "input x is missing"),
        (lambda: ask(x=[1.0], y=[1.0]), "INVALID_ARGUMENT", "unknown input y"),
        (lambda: ask(x=np.array([1.0])), "INVALID_ARGUMENT", "the type is float64, but the model takes float32"),
        (lambda: ask(x=[b"a"]), "INVALID_ARGUMENT", "input x: the type is object, but the model takes float32"),
        (lambda: ask("picky", x=[-1.0]), "INVALID_ARGUMENT", "x must not be negative"),
        (lambda: tensor(dtype=99), "INVALID_ARGUMENT", "input x: not a valid tensor"),
        (lambda: tensor(dtype=0), "INVALID_ARGUMENT", "input x: not a valid tensor"),
        (lambda: tensor(shape=[-1]), "INVALID_ARGUMENT", "shape is not known"),
        (lambda: tensor(shape=[2**40]), "INVALID_ARGUMENT", "1099511627776 elements, but gives fewer values"),
        (lambda: tensor(shape=[2**62, 2**62]), "INVALID_ARGUMENT", "gives fewer values"),
        (lambda: tensor(tensor_content=b"123"), "INVALID_ARGUMENT", "input x: not a valid tensor"),
        (lambda: tensor(tensor_content=b"12345678"), "INVALID_ARGUMENT", "input x: not a valid tensor"),
        (empty, "INVALID_ARGUMENT", "gives no values"),
    ],
)
def test_bad_requests_get_clear_statuses(predictions: Any, request_of: Any, code: str, said: str) -> None:
    found, details = refused(predictions.Predict, request_of())
    assert (found, said in details) == (code, True), details


def test_oversized_requests_are_refused(predictions: Any) -> None:
    request = ask(x=np.zeros(30000, np.float32))
    assert refused(predictions.Predict, request)[0] == "RESOURCE_EXHAUSTED"


def test_a_deadline_ends_the_wait(predictions: Any, server: Running) -> None:
    request = ask("spin", turns=np.int32(3000))
    assert refused(predictions.Predict, request, timeout=0.05)[0] == "DEADLINE_EXCEEDED"
    assert predictions.Predict(ask(x=[1.0]), timeout=20).outputs["y"].float_val[0] == 5.0


def test_the_health_service_says_that_the_model_answers(channel: grpc.Channel) -> None:
    stub = health_pb2_grpc.HealthStub(channel)

    def check(service: str) -> Any:
        return stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=20).status

    serving = health_pb2.HealthCheckResponse.SERVING
    wait_until(lambda: check("") == serving, "health is known")
    assert check("tensorflow.serving.PredictionService") == serving
    assert refused(stub.Check, health_pb2.HealthCheckRequest(service="other"))[0] == "NOT_FOUND"


def test_both_protocols_are_counted(predictions: Any, server: Running) -> None:
    predictions.Predict(ask(x=[1.0]), timeout=20)
    line = 'trainchart_serving_requests_total{code="OK",method="predict",protocol="grpc"}'
    assert line in server.ask("GET", "/metrics").text
