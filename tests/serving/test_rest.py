"""TensorFlow Serving's REST API: the answers of its public documentation, and clear errors for everything else."""

from __future__ import annotations

import base64
import json
import math
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.serving.running import NAME, Running, running, wait_until
from tests.serving.small_models import copy_version

pytestmark = pytest.mark.tensorflow


def b64(data: bytes) -> dict[str, str]:
    return {"b64": base64.b64encode(data).decode()}


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        # The example of the public documentation: half_plus_two.
        ({"instances": [1.0, 2.0, 5.0]}, {"predictions": [2.5, 3.0, 4.5]}),
        ({"signature_name": "serving_default", "instances": [{"x": 2}]}, {"predictions": [3.0]}),
        ({"inputs": [1, 2, 5]}, {"outputs": [2.5, 3.0, 4.5]}),
        ({"inputs": {"x": [1.0]}}, {"outputs": [2.5]}),
        (
            {"signature_name": "pair", "instances": [{"a": [1, 2.5], "b": 7}, {"a": [0, 0], "b": -1}]},
            {"predictions": [{"sum": 3.5, "twice": 14}, {"sum": 0.0, "twice": -2}]},
        ),
        (
            {"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [2**62]}},
            {"outputs": {"sum": [3.0], "twice": [-(2**63)]}},
        ),
        (
            {"signature_name": "reverse", "instances": ["ab", b64(b"\xff"), ""]},
            {
                "predictions": [
                    {"text_bytes": b64(b"abab"), "length": 2},
                    {"text_bytes": b64(b"\xff\xff"), "length": 1},
                    {"text_bytes": b64(b""), "length": 0},
                ]
            },
        ),
        ({"signature_name": "spin", "inputs": 0}, {"outputs": 65536.0}),
    ],
)
def test_predict_answers_by_rows_and_by_columns(server: Running, body: Any, answer: Any) -> None:
    told = server.post("predict", body, "/versions/1")
    assert (told.status, told.headers["content-type"], told.json) == (200, "application/json", answer)


def test_requests_reach_the_version_that_they_name(server: Running) -> None:
    body = {"instances": [10]}
    answers = [server.post("predict", body, version).json for version in ("/versions/1", "/versions/2", "")]
    assert answers == [{"predictions": [7.0]}, {"predictions": [32.0]}, {"predictions": [32.0]}]


def test_numbers_that_json_does_not_know_pass(server: Running) -> None:
    told = server.post("predict", b'{"instances": [NaN, Infinity, -Infinity, 1e400]}')
    values = told.json["predictions"]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf, math.inf]


def test_classify_and_regress_take_examples(server: Running) -> None:
    body = {"signature_name": "classify", "examples": [{"x": 0.25}, {"x": [1]}, {}]}
    assert server.post("classify", {**body, "examples": body["examples"][:1]}, "/versions/1").json == {
        "results": [[["low", 0.75], ["high", 0.25]]]
    }
    assert server.post("classify", body).status == 400, "an integer is no float for tf.io.parse_example"
    regress = {"signature_name": "regress", "context": {"x": 4.0}, "examples": [{}, {"x": 6.0}]}
    assert server.post("regress", regress, "/versions/1").json == {"results": [4.0, 5.0]}


def test_a_client_can_ask_for_the_models_name(server: Running) -> None:
    assert server.ask("GET", "/v1/models").json == {"models": [{"name": "half"}]}
    assert server.ask("POST", "/v1/models", {}).status == 405


def test_status_lists_versions_as_tensorflow_serving_does(server: Running) -> None:
    good = {"error_code": "OK", "error_message": ""}
    states = [{"version": version, "state": "AVAILABLE", "status": good} for version in ("2", "1")]
    assert server.ask("GET", f"/v1/models/{NAME}").json == {"model_version_status": states}
    assert server.ask("GET", f"/v1/models/{NAME}/versions/1").json == {"model_version_status": states[1:]}


def test_metadata_describes_the_signatures(server: Running) -> None:
    told = server.ask("GET", f"/v1/models/{NAME}/versions/1/metadata").json
    assert told["model_spec"] == {"name": NAME, "signature_name": "", "version": "1"}
    signatures = told["metadata"]["signature_def"]["signature_def"]
    assert sorted(signatures) == ["classify", "pair", "picky", "regress", "reverse", "serving_default", "spin"]
    (name, x), *others = signatures["serving_default"]["inputs"].items()
    shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert (name, x["dtype"], x["tensor_shape"], others) == ("x", "DT_FLOAT", shape, [])
    assert signatures["serving_default"]["method_name"] == "tensorflow/serving/predict"


@pytest.mark.parametrize(
    ("method", "path", "status", "said"),
    [
        ("GET", "/v1/models/other", 404, "Servable not found for request: Latest(other)"),
        ("GET", "/v1/models/half/versions/9", 404, "Could not find version 9 of model half"),
        ("GET", "/v1/models/half/versions/9/metadata", 404, "Servable not found for request: Specific(half, 9)"),
        ("GET", f"/v1/models/half/versions/{2**63}", 404, "larger than any version"),
        ("GET", f"/v1/models/half/versions/{'9' * 5000}", 404, "Malformed request"),
        ("POST", "/v1/models/other:predict", 404, "Servable not found for request: Latest(other)"),
        ("POST", "/v1/models/half/versions/9:predict", 404, "Specific(half, 9)"),
        ("POST", "/v1/models/half:fly", 404, "Malformed request: POST /v1/models/half:fly"),
        ("POST", "/v1/models/half/labels/stable:predict", 404, "Malformed request"),
        ("GET", "/v1/models/half:predict", 405, "use POST"),
        ("POST", "/v1/models/half", 405, "use GET"),
        ("DELETE", "/v1/models/half", 405, "Malformed request: DELETE"),
        ("GET", "/", 404, "Malformed request: GET /"),
        ("GET", "/v1/models/", 404, "Malformed request"),
    ],
)
def test_wrong_paths_get_clear_errors(server: Running, method: str, path: str, status: int, said: str) -> None:
    told = server.ask(method, path, {"instances": [1]} if method == "POST" else None)
    assert (told.status, told.headers["content-type"]) == (status, "application/json")
    assert said in told.error


@pytest.mark.parametrize(
    ("verb", "body", "said"),
    [
        ("predict", b"", "the body is empty"),
        ("predict", b"{", "JSON Parse error"),
        ("predict", b"\xff\xfe\xfd", "JSON Parse error"),
        ("predict", b"[" * 90000, "nested too deep"),
        ("predict", b'{"instances": ' + b"[" * 500 + b"1" + b"]" * 500 + b"}", "nested too deep"),
        ("predict", b'{"instances": [' + b"9" * 5000 + b"]}", "JSON Parse error"),
        ("predict", [1], "the body is a JSON list, but must be an object"),
        ("predict", {}, "either as a list, in instances, or input by input, in inputs"),
        ("predict", {"inputs": [1], "instances": [1]}, "either as a list"),
        ("predict", {"instances": []}, "at least one element"),
        ("predict", {"instances": 1}, "must be a list"),
        ("predict", {"instances": ["a"]}, "input x: the values are not of the type float32"),
        ("predict", {"instances": [None]}, "input x: the values are not of the type float32"),
        ("predict", {"instances": [1, "2"]}, "input x: the values are not of the type float32"),
        ("predict", {"instances": [True]}, "input x: the values are not of the type float32"),
        ("predict", {"instances": [[1], [1, 2]]}, "of different lengths"),
        ("predict", {"instances": [[1], [2]]}, "input x: the shape is [2,1], but the model takes float32 [?]"),
        ("predict", {"instances": [10**400]}, "input x: the values are not of the type float32"),
        ("predict", {"instances": [{"x": 1}, 2]}, "all must be objects with the same names"),
        ("predict", {"instances": [{"x": 1}, {"y": 2}]}, "all must be objects with the same names"),
        ("predict", {"instances": [{"y": 2}]}, "unknown input y; the model takes x"),
        ("predict", {"inputs": {}}, "input x is missing; the model takes x float32 [?]"),
        ("predict", {"instances": [{}]}, "input x is missing"),
        ("predict", {"signature_name": 3, "instances": [1]}, "signature_name: number is not a string"),
        ("predict", {"signature_name": "no", "instances": [1]}, "'no' not found in signature def; the model has"),
        ("predict", {"signature_name": "pair", "instances": [1]}, "the model takes 2 inputs: give each by its name"),
        ("predict", {"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [1.5]}}, "input b: the values are not"),
        ("predict", {"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [2**63]}}, "is out of range for int64"),
        ("predict", {"signature_name": "pair", "inputs": {"a": [[1, 2]], "b": [1, 2]}}, "different numbers of exam"),
        ("predict", {"signature_name": "reverse", "instances": [1]}, "number is neither a string nor"),
        ("predict", {"signature_name": "reverse", "instances": [{"b64": "*"}]}, "not a valid string"),
        ("predict", {"signature_name": "reverse", "instances": ["\ud800"]}, "not a valid string"),
        ("predict", {"signature_name": "reverse", "instances": ["a", ["b"]]}, "neither a string nor"),
        ("predict", {"signature_name": "spin", "instances": [0]}, "the shape is [1], but the model takes int32 []"),
        ("predict", {"signature_name": "spin", "inputs": 2**31}, "is out of range for int32"),
        ("predict", {"signature_name": "picky", "instances": [1, -1]}, "x must not be negative"),
        ("classify", {"examples": [{"x": 1.0}]}, "signature serving_default cannot classify"),
        ("classify", {"signature_name": "classify", "examples": []}, "at least one object"),
        ("classify", {"signature_name": "classify", "examples": [3]}, "examples[0]: must be an object"),
        ("classify", {"signature_name": "classify", "examples": [{"x": [[1]]}]}, "examples[0].x: must be numbers or"),
        ("classify", {"signature_name": "classify", "examples": [{"x": 2**64}]}, "examples[0].x"),
        ("classify", {"signature_name": "classify", "examples": [{"x\ud800": 1}]}, "examples[0]"),
        ("regress", {"signature_name": "regress", "examples": [{}]}, "x"),
        ("regress", {"signature_name": "classify", "examples": [{"x": 1.0}]}, "cannot regress"),
    ],
)
def test_bad_bodies_get_clear_errors(server: Running, verb: str, body: object, said: str) -> None:
    told = server.post(verb, body)
    assert (told.status, told.headers["content-type"]) == (400, "application/json")
    assert said in told.error
    assert len(told.error) < 1100


def test_oversized_bodies_are_refused_unread(server: Running) -> None:
    assert server.post("predict", b" " * 100001).status == 413
    with socket.create_connection(server.rest.split(":"), timeout=10) as connection:  # type: ignore[arg-type]
        head = b"POST /v1/models/half:predict HTTP/1.1\r\nHost: a\r\n"
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"186a1\r\n" + b" " * 100001 + b"\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    with socket.create_connection(server.rest.split(":"), timeout=10) as connection:  # type: ignore[arg-type]
        connection.sendall(head + b"Content-Length: 99999999999999999999\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 4")


def test_compressed_bodies_are_refused(server: Running) -> None:
    told = server.ask("POST", "/v1/models/half:predict", b"x", {"content-encoding": "gzip"})
    assert (told.status, told.error) == (415, "Content-Encoding: gzip is not supported")


def test_a_client_that_leaves_harms_nothing(server: Running) -> None:
    for sent in (b"", b"P", b"POST /v1/models/half:predict HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"):
        with socket.create_connection(server.rest.split(":"), timeout=10) as connection:  # type: ignore[arg-type]
            connection.sendall(sent)
    assert server.post("predict", {"instances": [1]}).status == 200


def test_prometheus_reads_the_metrics(server: Running) -> None:
    assert server.post("predict", {"instances": [1]}).status == 200
    assert server.post("predict", {"instances": ["a"]}).status == 400
    told = server.ask("GET", "/metrics")
    for line in (
        'trainchart_serving_requests_total{code="OK",method="predict",protocol="rest"}',
        'trainchart_serving_requests_total{code="INVALID_ARGUMENT",method="predict",protocol="rest"}',
        'trainchart_serving_request_duration_seconds_bucket{le="0.005",method="predict",protocol="rest"}',
        "trainchart_serving_requests_in_flight 0.0",
        "trainchart_serving_queued_requests 0.0",
        "trainchart_serving_batch_examples_bucket",
        "trainchart_serving_model_call_duration_seconds_sum",
        'trainchart_serving_version_loads_total{result="success"} 2.0',
        "process_resident_memory_bytes",
    ):
        assert line in told.text
    assert 'trainchart_serving_version_state{content="sha256:' in told.text
    tool = shutil.which("promtool")
    if tool is None:
        pytest.skip("promtool is not installed")
    checked = subprocess.run([tool, "check", "metrics"], input=told.text, capture_output=True, text=True)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


def test_readiness_means_that_the_model_answers(tmp_path: Path, half: Path) -> None:
    base = tmp_path / "models"
    base.mkdir()
    broken = Path(shutil.copytree(half, tmp_path / "broken"))
    (broken / "saved_model.pb").write_bytes(b"")
    with running(base, is_ready=False) as server:
        assert server.ask("GET", "/healthz").text == "ok\n"
        hint = "has no folder named after a version"
        wait_until(lambda: hint in server.ask("GET", "/readyz").text, "the server has looked for versions")
        assert server.ask("GET", "/readyz").status == 503
        told = server.ask("GET", "/v1/models/half")
        assert (told.status, "Could not find any versions of model half" in told.error) == (404, True)
        copy_version(half, base / "1")
        copy_version(broken, base / "2")
        server.wait_ready()
        wait_until(lambda: '"END"' in server.ask("GET", "/v1/models/half").text, "the broken version is known")
        newest, oldest = server.ask("GET", "/v1/models/half").json["model_version_status"]
        assert (newest["version"], newest["state"], newest["status"]["error_code"]) == ("2", "END", "NOT_FOUND")
        assert (oldest["version"], oldest["state"]) == ("1", "AVAILABLE")
        assert json.loads(server.post("predict", {"instances": [1]}).text) == {"predictions": [2.5]}
