"""Requests joined into one call of the model: what waits while all threads are busy is computed together.

A request that a full queue cannot hold is refused at once, so that a client can ask another server. Where a joined call
fails, each of its requests is computed alone, and only the bad one fails. All but the calls of the model belongs to the
event loop's thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainchart_serving.failures import Code, ServingError
from trainchart_serving.model import Model
from trainchart_serving.signature import Arrays, Signature

Outputs = dict[str, np.ndarray[Any, Any]]
Answer = Outputs | ServingError
Observe = Callable[[int, float], None]
"""Takes the examples of a call, and its seconds."""


@dataclass(frozen=True)
class BatchSettings:
    """How requests are joined. `max_examples` 1 joins none."""

    max_examples: int = 32
    timeout_seconds: float = 0.0
    """How long the first of a batch waits for others while a thread is free."""
    max_waiting: int = 1000
    threads: int = 2


@dataclass
class _Request:
    inputs: Arrays
    examples: int
    answer: asyncio.Future[Outputs]


@dataclass
class _Group:
    """Requests that can be joined: to one signature of one version, with inputs of one shape but for the examples."""

    model: Model
    signature: Signature
    due: float
    """When the oldest has waited long enough."""
    requests: deque[_Request] = field(default_factory=deque)
    examples: int = 0


class Batcher:
    """Calls models in a few threads."""

    def __init__(self, settings: BatchSettings, observe: Observe = lambda examples, seconds: None) -> None:
        self._settings = settings
        self._observe = observe
        self._groups: dict[object, _Group] = {}
        self._free = settings.threads
        self._pool = ThreadPoolExecutor(settings.threads, "model")
        self._timer: asyncio.TimerHandle | None = None
        self.waiting = 0
        """Requests for which no thread was free yet."""

    async def run(self, model: Model, signature: Signature, inputs: Arrays, deadline: float | None = None) -> Outputs:
        """Return the outputs for inputs that the signature has checked; `deadline` is in the loop's time.

        Raises:
            ServingError: what the model says; RESOURCE_EXHAUSTED for a full queue; DEADLINE_EXCEEDED.
        """
        loop = asyncio.get_running_loop()
        if self.waiting >= self._settings.max_waiting:
            raise ServingError(Code.RESOURCE_EXHAUSTED, f"{self.waiting} requests are waiting: try again later")
        request = _Request(inputs, _count_examples(signature, inputs), loop.create_future())
        self._add(model, signature, request, loop.time())
        self._start_calls()
        try:
            async with asyncio.timeout_at(deadline):
                return await request.answer
        except TimeoutError as error:
            raise ServingError(Code.DEADLINE_EXCEEDED, "the request timed out before its answer") from error

    def close(self) -> None:
        """Start no more calls."""
        if self._timer is not None:
            self._timer.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _add(self, model: Model, signature: Signature, request: _Request, now: float) -> None:
        is_joinable = signature.is_batch and self._settings.max_examples > 1
        shapes = tuple(sorted((name, array.shape[1:]) for name, array in request.inputs.items())) if is_joinable else ()
        key = (id(model), signature.name, shapes) if is_joinable else request.answer
        group = self._groups.get(key)
        if group is None:
            wait = self._settings.timeout_seconds if is_joinable else 0.0
            group = self._groups[key] = _Group(model, signature, now + wait)
        group.requests.append(request)
        group.examples += request.examples
        self.waiting += 1

    def _start_calls(self) -> None:
        """Give every free thread a batch that is full or has waited; look again when the next one has."""
        loop = asyncio.get_running_loop()
        while self._free and self._groups:
            key, group = min(self._groups.items(), key=self._rank)
            if not self._is_full(group) and group.due > loop.time():
                if self._timer is not None:
                    self._timer.cancel()
                self._timer = loop.call_at(group.due, self._start_calls)
                return
            if batch := self._take(key, group, loop.time()):
                self._free -= 1
                call = loop.run_in_executor(self._pool, _compute, group.model, group.signature, batch, self._observe)
                call.add_done_callback(lambda done, batch=batch: self._finish(batch, done))  # type: ignore[misc]

    def _rank(self, entry: tuple[object, _Group]) -> tuple[bool, float]:
        return not self._is_full(entry[1]), entry[1].due

    def _is_full(self, group: _Group) -> bool:
        return group.examples >= self._settings.max_examples

    def _take(self, key: object, group: _Group, now: float) -> list[_Request]:
        """Return the oldest requests that fit into a batch; those whose client has gone are dropped."""
        batch: list[_Request] = []
        examples = 0
        while group.requests and (not batch or examples + group.requests[0].examples <= self._settings.max_examples):
            request = group.requests.popleft()
            group.examples -= request.examples
            self.waiting -= 1
            if not request.answer.done():
                batch.append(request)
                examples += request.examples
        if not group.requests:
            del self._groups[key]
        else:
            # The rest waited for a thread, and not for others.
            group.due = now
        return batch

    def _finish(self, batch: Sequence[_Request], done: asyncio.Future[list[Answer]]) -> None:
        self._free += 1
        problem = None if done.cancelled() else done.exception()
        for index, request in enumerate(batch):
            if request.answer.done():
                continue
            if done.cancelled():
                request.answer.cancel()
            elif problem is not None:
                request.answer.set_exception(problem)
            elif isinstance(answer := done.result()[index], ServingError):
                request.answer.set_exception(answer)
            else:
                request.answer.set_result(answer)
        if not done.cancelled():
            self._start_calls()


def _count_examples(signature: Signature, inputs: Arrays) -> int:
    return next(iter(inputs.values())).shape[0] if signature.is_batch else 1


def _compute(model: Model, signature: Signature, batch: Sequence[_Request], observe: Observe) -> list[Answer]:
    """Return the answer of each request. Runs in a thread."""
    started = time.perf_counter()
    answers: list[Answer] | None = None
    if len(batch) > 1:
        answers = _compute_joined(model, signature, batch)
    if answers is None:
        answers = [_compute_one(model, signature, request) for request in batch]
    observe(sum(request.examples for request in batch), time.perf_counter() - started)
    return answers


def _compute_one(model: Model, signature: Signature, request: _Request) -> Answer:
    try:
        return model.run(signature, request.inputs)
    except ServingError as error:
        return error


def _compute_joined(model: Model, signature: Signature, batch: Sequence[_Request]) -> list[Answer] | None:
    """Return the answers from one call; None where that failed, or did not return a row for each example."""
    inputs = {name: np.concatenate([request.inputs[name] for request in batch]) for name in signature.inputs}
    try:
        outputs = model.run(signature, inputs)
    except ServingError:
        return None
    ends = np.cumsum([request.examples for request in batch])
    if any(array.ndim == 0 or array.shape[0] != ends[-1] for array in outputs.values()):
        return None
    starts = [0, *ends[:-1]]
    return [
        {name: array[start:end] for name, array in outputs.items()} for start, end in zip(starts, ends, strict=True)
    ]
