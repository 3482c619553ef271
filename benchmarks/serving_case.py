"""What the section on the model server runs in processes of its own; each prints one JSON object a turn.

`python -m benchmarks.serving_case export FOLDER`, `bare FOLDER`, `grpc FOLDER ADDRESS`, `rest FOLDER ADDRESS/PATH`:
the last three wait for a line on stdin, `EXAMPLES IN_FLIGHT SECONDS`, ask for so long, and print what they measured.
The clients send prepared bytes and read no answer but its status, so that they take little of the two cores.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

DIGITS, PICTURES = "digits", "pictures"
SHAPES = {DIGITS: (28, 28, 1), PICTURES: (96, 96, 3)}
_PREDICT = "/tensorflow.serving.PredictionService/Predict"
Ask = Callable[[], Awaitable[None]]


def export(folder: Path) -> None:
    """Write both models, each with a version 1."""
    import keras
    import tensorflow as tf

    from benchmarks import library_case

    pictures = keras.applications.MobileNetV2(SHAPES[PICTURES], alpha=0.35, weights=None)
    for name, model in ((DIGITS, library_case.build_model(library_case.SETTINGS)), (PICTURES, pictures)):
        spec = tf.TensorSpec([None, *SHAPES[name]], tf.float32, name="inputs")
        module = tf.Module()
        module.model = model
        function = tf.function(lambda inputs, model=model: {"outputs": model(inputs, training=False)})
        tf.saved_model.save(module, str(folder / name / "1"), signatures=function.get_concrete_function(spec))


def run_bare(folder: Path) -> None:
    """Call the function in a loop: arrays in, arrays out, one call after the other."""
    import tensorflow as tf

    model = tf.saved_model.load(str(folder / "1"))
    function = model.signatures["serving_default"]
    for line in sys.stdin:
        examples, _, seconds = line.split()
        array = _make_examples(folder.name, int(examples))
        _print(*_repeat(partial(_call, function, array), float(seconds)), 0.0)


def _call(function: Any, array: Any) -> object:
    import tensorflow as tf

    # By name: where a loaded function gets its argument by position, it takes a way that costs 4 ms.
    return function(inputs=tf.constant(array))["outputs"].numpy()


def _repeat(call: Callable[[], object], seconds: float) -> tuple[list[float], float]:
    taken = []
    started = time.perf_counter()
    while (now := time.perf_counter()) < started + seconds:
        call()
        taken.append(time.perf_counter() - now)
    return taken, time.perf_counter() - started


def _make_examples(name: str, number: int) -> Any:
    import numpy as np

    return np.random.default_rng(1).random((number, *SHAPES[name]), "float32")


async def run_client(protocol: str, folder: Path, address: str) -> None:
    """Ask with so many requests in flight, each after the answer to the one before it."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        examples, in_flight, seconds = line.split()
        array = _make_examples(folder.name, int(examples))
        make = _make_grpc if protocol == "grpc" else _make_rest
        asks = await make(array, address, int(in_flight))
        taken: list[float] = []
        cpu, started = time.process_time(), time.perf_counter()
        await asyncio.gather(*[_ask_until(ask, started + float(seconds), taken) for ask in asks])
        _print(taken, time.perf_counter() - started, time.process_time() - cpu)


async def _ask_until(ask: Ask, end: float, taken: list[float]) -> None:
    while (now := time.perf_counter()) < end:
        await ask()
        taken.append(time.perf_counter() - now)


async def _make_grpc(array: Any, address: str, in_flight: int) -> list[Ask]:
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2

    request = predict_pb2.PredictRequest()
    request.model_spec.name = "model"
    request.inputs["inputs"].CopyFrom(tf.make_tensor_proto(array))
    body = request.SerializeToString()
    call = grpc.aio.insecure_channel(address).unary_unary(_PREDICT)

    async def ask() -> None:
        await call(body)

    return [ask] * in_flight


async def _make_rest(array: Any, address: str, in_flight: int) -> list[Ask]:
    body = json.dumps({"instances": array.astype(float).round(4).tolist()}).encode()
    place, _, path = address.partition("/")
    kind = "Content-Type: application/json"
    head = f"POST /{path} HTTP/1.1\r\nHost: model\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    host, _, port = place.partition(":")

    async def connect() -> Ask:
        reader, writer = await asyncio.open_connection(host, int(port))

        async def ask() -> None:
            writer.write(head.encode() + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 200"), answer
            length = answer.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
            await reader.readexactly(int(length))

        return ask

    return [await connect() for _ in range(in_flight)]


def _print(taken: list[float], seconds: float, cpu: float) -> None:
    cuts = statistics.quantiles(taken, n=100)
    found = {"rate": len(taken) / seconds, "p50": cuts[49] * 1e3, "p99": cuts[98] * 1e3, "cpu": cpu / seconds}
    print(json.dumps(found), flush=True)


def main() -> None:
    what, folder, *rest = sys.argv[1:]
    if what == "export":
        export(Path(folder))
    elif what == "bare":
        run_bare(Path(folder))
    else:
        asyncio.run(run_client(what, Path(folder), *rest))


if __name__ == "__main__":
    main()
