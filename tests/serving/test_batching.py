"""Requests joined into one call: who shares a call, who waits, and who is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.serving.running import NAME, running, wait_until
from trainchart_serving.batching import Batcher, BatchSettings, Outputs
from trainchart_serving.failures import Code, ServingError
from trainchart_serving.model import Model, load_model

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def model(half: Path) -> Model:
    return load_model(half, 1)


class Scene:
    """A batcher, and the size of every call that it made."""

    def __init__(self, model: Model, **settings: object) -> None:
        self.calls: list[int] = []
        self.model = model
        self.batcher = Batcher(BatchSettings(**{"threads": 1, **settings}), lambda size, _: self.calls.append(size))  # type: ignore[arg-type]

    def ask(self, *values: float, signature: str = "", deadline: float | None = None) -> asyncio.Task[Outputs]:
        found = self.model.find_signature(signature)
        inputs = {"x": np.array(values, np.float32)}
        return asyncio.create_task(self.batcher.run(self.model, found, inputs, deadline))

    async def occupy(self) -> asyncio.Task[Outputs]:
        """Keep the one thread busy for a moment."""
        signature = self.model.find_signature("spin")
        task = asyncio.create_task(self.batcher.run(self.model, signature, {"turns": np.array(400, np.int32)}))
        await asyncio.sleep(0)
        assert self.batcher.waiting == 0
        return task


def run(body: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(body(), 60))


async def outcome(task: asyncio.Task[Outputs]) -> object:
    try:
        (array,) = (await task).values()
    except ServingError as error:
        return error.code
    return array.tolist()


def test_what_waits_for_a_thread_is_computed_together(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model, max_examples=16)
        await scene.occupy()
        tasks = [scene.ask(float(number), 100.0) for number in range(10)]
        assert [await outcome(task) for task in tasks] == [[number / 2 + 2, 52.0] for number in range(10)]
        assert scene.calls == [1, 16, 4]

    run(body)


def test_a_batch_waits_for_others_until_it_is_full(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model, max_examples=4, timeout_seconds=30.0)
        tasks = [scene.ask(1.0) for _ in range(4)]
        await asyncio.gather(*tasks)
        assert scene.calls == [4]

    run(body)


def test_a_lone_request_waits_for_the_timeout_only(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model, max_examples=4, timeout_seconds=0.05)
        assert await outcome(scene.ask(1.0)) == [2.5]
        assert scene.calls == [1]

    run(body)


def test_different_signatures_are_not_joined(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model)
        await scene.occupy()
        tasks = [scene.ask(4.0), scene.ask(4.0, signature="picky"), scene.ask(16.0), scene.ask(16.0, signature="picky")]
        assert [await outcome(task) for task in tasks] == [[4.0], [2.0], [10.0], [4.0]]
        assert scene.calls == [1, 2, 2]

    run(body)


def test_without_batching_every_request_is_a_call(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model, max_examples=1)
        await scene.occupy()
        await asyncio.gather(*[scene.ask(1.0) for _ in range(3)])
        assert scene.calls == [1, 1, 1, 1]

    run(body)


def test_a_request_larger_than_a_batch_is_a_call_alone(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model, max_examples=4)
        await scene.occupy()
        await asyncio.gather(scene.ask(1.0), scene.ask(*[1.0] * 9), scene.ask(1.0))
        assert scene.calls == [1, 1, 9, 1]

    run(body)


def test_a_bad_request_fails_alone(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model)
        await scene.occupy()
        tasks = [scene.ask(value, signature="picky") for value in (4.0, -1.0, 9.0)]
        assert [await outcome(task) for task in tasks] == [[2.0], Code.INVALID_ARGUMENT, [3.0]]

    run(body)


def test_a_full_queue_refuses(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model, max_waiting=2)
        busy = await scene.occupy()
        tasks = [scene.ask(1.0) for _ in range(3)]
        assert [await outcome(task) for task in tasks] == [[2.5], [2.5], Code.RESOURCE_EXHAUSTED]
        await busy
        assert scene.batcher.waiting == 0

    run(body)


def test_requests_out_of_time_are_not_computed(model: Model) -> None:
    async def body() -> None:
        scene = Scene(model)
        busy = await scene.occupy()
        late = scene.ask(1.0, deadline=asyncio.get_running_loop().time() + 0.01)
        gone = scene.ask(1.0)
        await asyncio.sleep(0)
        gone.cancel()
        assert await outcome(late) is Code.DEADLINE_EXCEEDED
        await busy
        assert await outcome(scene.ask(1.0)) == [2.5]
        assert (scene.calls, scene.batcher.waiting) == ([1, 1], 0)

    run(body)


def test_clients_see_a_full_queue_as_such(base: Path) -> None:
    with running(base, "--max_enqueued_requests=1", "--num_batch_threads=1") as server:
        request = predict_pb2.PredictRequest()
        request.model_spec.name, request.model_spec.signature_name = NAME, "spin"
        request.inputs["turns"].CopyFrom(tf.make_tensor_proto(np.int32(4000)))
        with grpc.insecure_channel(server.grpc) as channel:
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            busy = [stub.Predict.future(request, timeout=30)]
            line = "trainchart_serving_requests_in_flight"
            wait_until(lambda: f"{line} 1.0" in server.ask("GET", "/metrics").text, "the thread is busy")
            busy.append(stub.Predict.future(request, timeout=30))
            wait_until(lambda: f"{line} 2.0" in server.ask("GET", "/metrics").text, "the queue is full")
            told = server.post("predict", {"instances": [1]})
            assert (told.status, told.headers["retry-after"]) == (503, "1")
            assert told.error == "1 requests are waiting: try again later"
            with pytest.raises(grpc.RpcError) as caught:
                stub.Predict(request, timeout=30)
            assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            # Its clients' requests are under way: it is busy, and not dead.
            assert server.ask("GET", "/readyz").status == 200
            for call in busy:
                call.cancel()
