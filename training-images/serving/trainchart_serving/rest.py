"""TensorFlow Serving's REST API, health and metrics: one ASGI application.

Bodies are read here and turned into tensors in json_tensors.py and json_examples.py.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from trainchart_serving.examples import (
    check_classifies,
    check_regresses,
    make_classifications,
    make_regressions,
    serialize_examples,
)
from trainchart_serving.failures import Code, ServingError, invalid
from trainchart_serving.json_examples import dump_classifications, dump_regressions, read_examples
from trainchart_serving.json_tensors import (
    dump_prediction,
    is_by_rows,
    parse_object,
    read_inputs,
    read_signature_name,
)
from trainchart_serving.metadata import describe_metadata, describe_status
from trainchart_serving.metrics import Metrics
from trainchart_serving.predictor import Predictor, Target
from trainchart_serving.signature import Arrays, Signature

log = logging.getLogger(__name__)

_PATH = re.compile(
    r"(?P<model>[^/:]+)(?:/versions/(?P<version>[0-9]{1,19}))?(?:(?P<metadata>/metadata)|:(?P<verb>[a-z]+))?"
)
_LARGEST_VERSION = 2**63 - 1
_PROBLEM_CODES = {404: Code.NOT_FOUND, 405: Code.UNIMPLEMENTED}


@dataclass(frozen=True)
class RestLimits:
    """What a request may take."""

    body_bytes: int = 16 * 2**20
    seconds: float = 30.0


class RestApi:
    """The application, in `app`."""

    def __init__(self, predictor: Predictor, metrics: Metrics, limits: RestLimits) -> None:
        self._predictor = predictor
        self._metrics = metrics
        self._limits = limits
        self._verbs: Mapping[str, Callable[[Target, dict[str, Any], float], Awaitable[bytes]]] = {
            "predict": self._predict,
            "classify": self._classify,
            "regress": self._regress,
        }
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._answer_models),
                Route("/v1/models/{path:path}", self._answer_model, methods=["GET", "POST"]),
                Route("/healthz", self._answer_healthz),
                Route("/readyz", self._answer_readyz),
                Route("/metrics", self._answer_metrics),
            ],
            exception_handlers={HTTPException: self._answer_problem, Exception: self._answer_failure},
        )

    async def _answer_models(self, _: Request) -> Response:
        # TensorFlow Serving has no such list; who has just one model need not know its name.
        return self._respond(200, json.dumps({"models": [{"name": self._predictor.live.name}]}).encode())

    async def _answer_model(self, request: Request) -> Response:
        started = time.perf_counter()
        match = _PATH.fullmatch(request.path_params["path"])
        method = _name_method(match)
        self._metrics.in_flight.inc()
        code = Code.OK
        try:
            return self._respond(200, await self._find_answer(request, match))
        except ServingError as error:
            code = error.code
            return self._refuse(error)
        except ClientDisconnect:
            code = Code.CANCELLED
            return self._refuse(ServingError(Code.CANCELLED, "the client disconnected"))
        except Exception as error:
            code = Code.INTERNAL
            log.exception("a request of %s failed", method)
            return self._refuse(ServingError(code, f"the server failed: {type(error).__name__}"))
        finally:
            self._metrics.in_flight.dec()
            self._metrics.observe_request("rest", method, code, time.perf_counter() - started)

    async def _find_answer(self, request: Request, match: re.Match[str] | None) -> bytes:
        if match is None or (match["verb"] and match["verb"] not in self._verbs):
            raise ServingError(Code.NOT_FOUND, f"Malformed request: {request.method} {request.url.path}")
        wanted = "POST" if match["verb"] else "GET"
        if request.method != wanted:
            message = f"Malformed request: {request.method} {request.url.path}; use {wanted}"
            raise ServingError(Code.INVALID_ARGUMENT, message, 405)
        version = int(match["version"]) if match["version"] else None
        if version is not None and version > _LARGEST_VERSION:
            raise ServingError(Code.NOT_FOUND, f"version {version} is larger than any version can be")
        target = Target(match["model"], version)
        if match["verb"]:
            body = parse_object(await self._read_body(request))
            target = Target(match["model"], version, read_signature_name(body))
            deadline = asyncio.get_running_loop().time() + self._limits.seconds
            return await self._verbs[match["verb"]](target, body, deadline)
        describe = describe_metadata if match["metadata"] else describe_status
        return json.dumps(describe(self._predictor, target), indent=1).encode()

    async def _predict(self, target: Target, body: dict[str, Any], deadline: float) -> bytes:
        is_row = is_by_rows(body)
        found = await self._predictor.call(target, partial(read_inputs, body=body), deadline)
        return dump_prediction(found.outputs, found.examples, is_row=is_row)

    async def _classify(self, target: Target, body: dict[str, Any], deadline: float) -> bytes:
        found = await self._predictor.call(target, partial(_read_examples, check_classifies, body), deadline)
        return dump_classifications(make_classifications(found.outputs, found.examples))

    async def _regress(self, target: Target, body: dict[str, Any], deadline: float) -> bytes:
        found = await self._predictor.call(target, partial(_read_examples, check_regresses, body), deadline)
        return dump_regressions(make_regressions(found.outputs, found.examples))

    async def _read_body(self, request: Request) -> bytes:
        """Return the body, and no more of it than the limit."""
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise ServingError(Code.INVALID_ARGUMENT, f"Content-Encoding: {encoding} is not supported", 415)
        limit = self._limits.body_bytes
        too_large = ServingError(Code.INVALID_ARGUMENT, f"the body is larger than {limit} bytes", 413)
        length = request.headers.get("content-length", "")
        if length.isdecimal() and (len(length) > 18 or int(length) > limit):
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self._limits.seconds):
                async for part in request.stream():
                    size += len(part)
                    if size > limit:
                        raise too_large
                    parts.append(part)
        except TimeoutError as error:
            raise ServingError(Code.DEADLINE_EXCEEDED, "the body took too long to arrive", 408) from error
        if not size:
            raise invalid("the body is empty")
        return b"".join(parts)

    async def _answer_healthz(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _answer_readyz(self, _: Request) -> Response:
        try:
            await self._predictor.probe()
        except ServingError as error:
            problem = self._predictor.live.problem or error.message
            return PlainTextResponse(f"not ready: {problem}\n", 503)
        return PlainTextResponse("ready\n")

    async def _answer_metrics(self, _: Request) -> Response:
        return Response(self._metrics.render(), media_type=CONTENT_TYPE_LATEST)

    async def _answer_problem(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        code = _PROBLEM_CODES.get(error.status_code, Code.INVALID_ARGUMENT)
        message = f"Malformed request: {request.method} {request.url.path}"
        return self._refuse(ServingError(code, message, error.status_code))

    async def _answer_failure(self, _: Request, error: Exception) -> Response:
        return self._refuse(ServingError(Code.INTERNAL, f"the server failed: {type(error).__name__}"))

    def _refuse(self, error: ServingError) -> Response:
        response = self._respond(error.http_status, json.dumps({"error": error.message}).encode())
        if error.http_status == 503:
            response.headers["retry-after"] = "1"
        return response

    def _respond(self, status: int, body: bytes) -> Response:
        response = Response(body, status, media_type="application/json")
        if self._predictor.is_draining:
            # The client's next request finds another server.
            response.headers["connection"] = "close"
        return response


def _name_method(match: re.Match[str] | None) -> str:
    if match is None:
        return "unknown"
    if match["verb"]:
        return match["verb"] if match["verb"] in ("predict", "classify", "regress") else "unknown"
    return "metadata" if match["metadata"] else "status"


def _read_examples(check: Callable[[Signature], None], body: Mapping[str, Any], signature: Signature) -> Arrays:
    check(signature)
    return serialize_examples(signature, read_examples(body))
