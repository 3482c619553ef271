"""What both protocols ask: a model and a signature are found, the request fits, the model is called in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from trainchart_serving.batching import Batcher, Outputs
from trainchart_serving.failures import Code, ServingError
from trainchart_serving.live import LiveModel
from trainchart_serving.model import Model
from trainchart_serving.signature import Arrays, Signature, make_synthetic_inputs

PROBE_SECONDS = 10.0
"""An answer is proof for so long that the model answers; without one, a probe asks the model itself."""


@dataclass(frozen=True)
class Target:
    """What a request names: a model, one of its versions (None for the newest), and a signature."""

    model: str
    version: int | None = None
    signature: str = ""


@dataclass(frozen=True)
class Prediction:
    """What a version has answered."""

    version: int
    signature: Signature
    outputs: Outputs
    examples: int


class Predictor:
    """Answers requests to one model."""

    def __init__(self, live: LiveModel, batcher: Batcher) -> None:
        self.live = live
        self.is_draining = False
        self._batcher = batcher
        self._answered = float("-inf")

    def check_name(self, name: str, version: int | None = None) -> None:
        """Check that the server serves a model called `name`.

        Raises:
            ServingError: NOT_FOUND.
        """
        if name != self.live.name:
            which = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise ServingError(Code.NOT_FOUND, f"Servable not found for request: {which}; served is {self.live.name}")

    async def call(
        self, target: Target, read: Callable[[Signature], Arrays], deadline: float | None = None
    ) -> Prediction:
        """Return the answer to the request that `read` makes of its body once the signature is known.

        Raises:
            ServingError: for the client.
        """
        self.check_name(target.model, target.version)
        with self.live.lease(target.version) as model:
            signature = model.find_signature(target.signature)
            inputs = read(signature)
            signature.check(inputs)
            return await self._run(model, signature, inputs, deadline)

    async def probe(self) -> None:
        """Return once the model has answered within the last seconds; ask it where no client has.

        Under load its clients' answers are the proof, so that a long queue does not look like a dead model.

        Raises:
            ServingError: no version serves, or the model does not answer.
        """
        if self.is_draining:
            raise ServingError(Code.UNAVAILABLE, "the server is draining")
        with self.live.lease() as model:
            now = asyncio.get_running_loop().time()
            if now - self._answered < PROBE_SECONDS:
                return
            signature = next(iter(model.signatures.values()))
            signature = model.signatures.get("serving_default", signature)
            try:
                await self._run(model, signature, make_synthetic_inputs(signature), now + PROBE_SECONDS)
            except ServingError as error:
                # The model may refuse zeros: that is an answer, too.
                if error.code not in (Code.INVALID_ARGUMENT, Code.OUT_OF_RANGE):
                    raise

    async def _run(self, model: Model, signature: Signature, inputs: Arrays, deadline: float | None) -> Prediction:
        outputs = await self._batcher.run(model, signature, inputs, deadline)
        self._answered = asyncio.get_running_loop().time()
        examples = next((array.shape[0] for array in inputs.values() if array.ndim), 1)
        return Prediction(model.version, signature, outputs, examples)
