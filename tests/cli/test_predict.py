"""`trainchart predict` against servers that are not ours: TensorFlow Serving's answers, and those of anything else."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.support.command_line import call

TENSOR = {"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}}
SIGNATURE = {"inputs": {"x": TENSOR}, "outputs": {"y": TENSOR}, "method_name": "tensorflow/serving/predict"}
METADATA = json.dumps({"metadata": {"signature_def": {"signature_def": {"serving_default": SIGNATURE}}}}).encode()
NOT_FOUND = (404, b'{"error": "Malformed request: GET /v1/models"}')

Predict = Callable[..., CompletedProcess[str]]


@pytest.fixture
def answers() -> dict[str, tuple[int, bytes]]:
    """What the server answers, by method and path."""
    return {"GET /v1/models/half/metadata": (200, METADATA)}


@pytest.fixture
def predict(tmp_path: Path, answers: dict[str, tuple[int, bytes]]) -> Iterator[Predict]:
    """Return a function that sends 3.0 to a server without a list of models."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            status, body = answers.get(f"{self.command} {self.path}", NOT_FOUND)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

    (tmp_path / "x.json").write_text("3.0")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}"
        yield lambda *words: call(tmp_path, "predict", "x.json", "--url", url, *words)
        server.shutdown()
        thread.join()


def answer(answers: dict[str, tuple[int, bytes]], body: bytes, status: int = 200) -> None:
    answers["POST /v1/models/half:predict"] = (status, body)


def test_a_server_that_lists_no_models_needs_a_name(predict: Predict, answers: dict[str, tuple[int, bytes]]) -> None:
    answer(answers, b'{"predictions": [4.5]}')
    done = predict()
    assert done.returncode == 2
    assert "--model NAME" in done.stderr
    assert predict("--model", "half").stdout == "y  4.5\n"


def test_numbers_that_json_lacks_are_shown(predict: Predict, answers: dict[str, tuple[int, bytes]]) -> None:
    answer(answers, b'{"predictions": [NaN, -Infinity, 1.5]}')
    done = predict("--model", "half")
    assert done.stdout == "example  output  value\n0        y       nan\n1        y       -inf\n2        y       1.5\n"
    shown = json.loads(predict("--model", "half", "--format", "json").stdout, parse_constant=pytest.fail)
    assert shown["outputs"] == {"y": ["NaN", "-Infinity", 1.5]}


@pytest.mark.parametrize(
    ("status", "body", "code", "told"),
    [
        (400, b'{"error": "\\u001b[31mred"}', 4, "x.json does not fit the model: \\x1b[31mred"),
        (400, b'{"error": "a\\nerror: b"}', 4, "x.json does not fit the model: a error: b\n"),
        (500, b'{"error": "' + b"a" * 100_000 + b'"}', 7, f"the server failed: {'a' * 1000}…\n"),
        (500, b"oops", 7, "the server failed: status 500"),
        (302, b"", 7, "the server failed: status 302"),
        (200, b"<html>", 7, "cannot be read: it is not JSON"),
        (200, b"[" * 300_000, 7, "cannot be read: it is not JSON"),
        (200, b'{"predictions": [' + b"9" * 5000 + b"]}", 7, "cannot be read: it is not JSON"),
        (200, b'{"predictions": {"a": 1}}', 7, "cannot be read: its outputs have different numbers"),
        (200, b'{"predictions": [' + b"[]," * 3_000_000 + b"[]]}", 7, "cannot be read: it holds more than 5000000"),
        (200, b"[]", 7, "cannot be read: it has neither predictions nor outputs"),
    ],
)
def test_any_answer_is_one_clear_error(
    predict: Predict, answers: dict[str, tuple[int, bytes]], status: int, body: bytes, code: int, told: str
) -> None:
    answer(answers, body, status)
    done = predict("--model", "half")
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert told in done.stderr


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_a_port_that_no_server_can_have_is_refused(tmp_path: Path, port: str) -> None:
    (tmp_path / "x.json").write_text("3.0")
    done = call(tmp_path, "predict", "x.json", "--url", f"http://127.0.0.1:{port}")
    assert done.returncode == 2
    assert "is not the address of a model server" in done.stderr


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"metadata": 3}', b"[" * 300_000])
def test_metadata_that_are_none_are_refused(
    predict: Predict, answers: dict[str, tuple[int, bytes]], body: bytes
) -> None:
    answers["GET /v1/models/half/metadata"] = (200, body)
    done = predict("--model", "half")
    assert done.returncode == 7
    assert "the metadata of half at http://127.0.0.1" in done.stderr


def test_an_answer_without_end_is_cut_off(predict: Predict, answers: dict[str, tuple[int, bytes]]) -> None:
    answer(answers, b" " * (64 * 1024 * 1024 + 1))
    done = predict("--model", "half")
    assert done.returncode == 7
    assert "is larger than 67108864 bytes" in done.stderr


@pytest.mark.parametrize(
    ("asked", "status"),
    [("POST /v1/models/half:predict", 500), ("GET /v1/models/half/metadata", 200), ("GET /v1/models", 200)],
)
def test_what_is_no_prediction_is_cut_off_sooner(
    predict: Predict, answers: dict[str, tuple[int, bytes]], asked: str, status: int
) -> None:
    answers[asked] = (status, b" " * (1024 * 1024 + 1))
    done = predict(*([] if asked.endswith("models") else ["--model", "half"]))
    assert done.returncode == 7
    assert "is larger than 1048576 bytes" in done.stderr


@pytest.mark.parametrize("port", ["1", "99999"])
def test_the_password_of_an_address_is_not_shown(tmp_path: Path, port: str) -> None:
    (tmp_path / "x.json").write_text("3.0")
    done = call(tmp_path, "predict", "x.json", "--url", f"http://me:s3cret@127.0.0.1:{port}")
    assert done.returncode != 0
    assert "s3cret" not in done.stdout + done.stderr
    assert "me:***@127.0.0.1" in done.stderr
