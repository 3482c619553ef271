"""The life of a server: no request is lost while versions change, nor when it is told to end."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.serving.running import running, wait_until
from tests.serving.small_models import copy_version

pytestmark = pytest.mark.tensorflow


class Clients:
    """Clients of REST and gRPC that ask all the time, each on one connection as long as it is kept."""

    def __init__(self, rest: str, rpc: str, number: int) -> None:
        self.answers: list[float] = []
        self.failures: list[object] = []
        self._rest, self._rpc = rest, rpc
        self._end = threading.Event()
        bodies = [self._ask_rest, self._ask_grpc]
        self._threads = [threading.Thread(target=self._repeat, args=(bodies[index % 2],)) for index in range(number)]
        for thread in self._threads:
            thread.start()

    def _repeat(self, body: object) -> None:
        try:
            body()  # type: ignore[operator]
        except Exception as error:
            self.failures.append(error)

    def _ask_rest(self) -> None:
        connection = http.client.HTTPConnection(self._rest, timeout=30)
        while not self._end.is_set():
            connection.request("POST", "/v1/models/half:predict", b'{"instances": [10]}')
            response = connection.getresponse()
            data = response.read()
            assert response.status == 200, data
            self.answers.append(json.loads(data)["predictions"][0])
        connection.close()

    def _ask_grpc(self) -> None:
        request = predict_pb2.PredictRequest()
        request.model_spec.name = "half"
        request.inputs["x"].CopyFrom(tf.make_tensor_proto(np.array([10.0], np.float32)))
        with grpc.insecure_channel(self._rpc) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            while not self._end.is_set():
                self.answers.append(stub.Predict(request, timeout=30).outputs["y"].float_val[0])

    def wait(self, more: int) -> None:
        enough = len(self.answers) + more
        wait_until(lambda: self.failures or len(self.answers) >= enough, f"{more} more answers")

    def end(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(30)
        assert self.failures == []


def test_no_client_notices_that_versions_change(base: Path, half: Path, third: Path) -> None:
    with running(base) as server:
        clients = Clients(server.rest, server.grpc, 4)
        for version, source, answer in ((2, third, 32.0), (3, half, 7.0), (4, third, 32.0)):
            clients.wait(50)
            copy_version(source, base / str(version))
            wait_until(lambda: clients.failures or clients.answers[-1] == answer, f"version {version}")  # noqa: B023
        (base / "5").mkdir()
        wait_until(lambda: '"END"' in server.ask("GET", "/v1/models/half/versions/5").text, "the broken version")
        clients.wait(50)
        clients.end()
        assert set(clients.answers) == {7.0, 32.0}
        assert server.post("predict", {"instances": [10]}).json == {"predictions": [32.0]}


@pytest.fixture
def program(base: Path) -> Iterator[subprocess.Popen[str]]:
    """The server as a process of its own."""
    ports = ["--rest-api-port=0", "--port=0", "--host=127.0.0.1"]
    flags = ["--model_name=half", f"--model_base_path={base}", "--drain_delay_seconds=4", *ports]
    command = [sys.executable, "-m", "trainchart_serving", *flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def get(address: str, path: str) -> int:
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_sigterm_drains_without_a_lost_request(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    line = program.stdout.readline()
    match = re.fullmatch(r"serving half: REST at (\S+), gRPC at (\S+)\n", line)
    assert match, line
    rest, rpc = match.groups()
    wait_until(lambda: get(rest, "/readyz") == 200, "the model answers")
    clients = Clients(rest, rpc, 4)
    clients.wait(20)
    request = predict_pb2.PredictRequest()
    request.model_spec.name, request.model_spec.signature_name = "half", "spin"
    request.inputs["turns"].CopyFrom(tf.make_tensor_proto(np.int32(12000)))
    with grpc.insecure_channel(rpc) as channel:
        program.send_signal(signal.SIGTERM)
        program.send_signal(signal.SIGINT)  # `timeout` and others send a process more than one
        wait_until(lambda: get(rest, "/readyz") == 503, "the server is not ready any more")
        assert get(rest, "/healthz") == 200
        # Load balancers learn of it meanwhile: what they still send is answered.
        clients.wait(20)
        clients.end()
        slow = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict.future(request, timeout=60)
        assert np.isfinite(slow.result().outputs["sum"].float_val[0])
    assert program.stderr is not None
    log = program.stderr.read()
    assert program.wait(30) == 0, log
    assert "drained: all requests have ended" in log
    with pytest.raises(ConnectionRefusedError):
        get(rest, "/healthz")


def test_a_taken_port_is_named(base: Path) -> None:
    with running(base, is_ready=False) as server:
        port = server.rest.rpartition(":")[2]
        flags = [f"--model_base_path={base}", "--model_name=half", f"--rest_api_port={port}", "--host=127.0.0.1"]
        ended = subprocess.run([sys.executable, "-m", "trainchart_serving", *flags], capture_output=True, text=True)
    assert ended.returncode == 1
    assert f"cannot listen at 127.0.0.1:{port}: Address already in use" in ended.stderr
    assert "Traceback" not in ended.stderr, os.fspath(base)
