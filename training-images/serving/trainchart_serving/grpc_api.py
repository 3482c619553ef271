"""TensorFlow Serving's gRPC API: PredictionService, ModelService, and the health service of gRPC."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from trainchart_serving.examples import (
    check_classifies,
    check_regresses,
    make_classifications,
    make_regressions,
    serialize_examples,
)
from trainchart_serving.failures import Code, ServingError, invalid
from trainchart_serving.metadata import make_signature_map
from trainchart_serving.metrics import Metrics
from trainchart_serving.predictor import Prediction, Predictor, Target
from trainchart_serving.settings import Settings
from trainchart_serving.signature import Arrays, Signature
from trainchart_serving.tensor_protos import dump_tensor, parse_tensor

log = logging.getLogger(__name__)

_SERVICES = ("", "tensorflow.serving.PredictionService", "tensorflow.serving.ModelService")
_HEALTH_SECONDS = 1.0
_HANDSHAKE_SECONDS = 10.0
"""In which a connection sends the first bytes of HTTP/2."""
_IDLE_SECONDS = 600.0
"""After which a connection without calls ends; clients connect again for their next one."""
_SIGNATURE_FIELD = "signature_def"
_STATUS = {code: grpc.StatusCode[code.name] for code in Code}


class GrpcApi:
    """The server of the gRPC port."""

    def __init__(self, predictor: Predictor, metrics: Metrics, settings: Settings) -> None:
        self._predictor = predictor
        self._metrics = metrics
        self._address = f"{f'[{settings.host}]' if ':' in settings.host else settings.host}:{settings.grpc_port}"
        self._is_packed = settings.is_packed
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", settings.limits.body_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
                ("grpc.server_handshake_timeout_ms", round(_HANDSHAKE_SECONDS * 1000)),
                ("grpc.max_connection_idle_ms", round(_IDLE_SECONDS * 1000)),
            ]
        )
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(_Predictions(self), self._server)
        model_service_pb2_grpc.add_ModelServiceServicer_to_server(_Models(self), self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)

    async def start(self) -> int:
        """Listen, and return the port. Raises OSError."""
        try:
            port: int = self._server.add_insecure_port(self._address)
        except RuntimeError as error:
            raise OSError(0, f"cannot listen at {self._address}: {error}") from error
        await self._server.start()
        return port

    async def watch_health(self) -> None:
        """Tell the health service forever whether the model answers."""
        while not self._predictor.is_draining:
            try:
                await self._predictor.probe()
                status = health_pb2.HealthCheckResponse.SERVING
            except ServingError:
                status = health_pb2.HealthCheckResponse.NOT_SERVING
            for service in _SERVICES:
                await self._health.set(service, status)
            await asyncio.sleep(_HEALTH_SECONDS)

    async def announce_end(self) -> None:
        """Tell the health service that the server is going."""
        await self._health.enter_graceful_shutdown()

    async def stop(self, seconds: float) -> None:
        """Accept nothing more, and return when the requests under way have ended, or `seconds` later."""
        await self._server.stop(seconds)

    async def answer(self, method: str, context: Any, make: Callable[[float | None], Awaitable[Any]]) -> Any:
        """Return what `make` answers before its deadline, or end the call with the status of its error."""
        started = time.perf_counter()
        code = Code.CANCELLED
        self._metrics.in_flight.inc()
        try:
            remaining = context.time_remaining()
            deadline = None if remaining is None else asyncio.get_running_loop().time() + remaining
            made = await make(deadline)
            code = Code.OK
            return made
        except ServingError as error:
            code = error.code
            await context.abort(_STATUS[code], error.message)
        except (asyncio.CancelledError, grpc.RpcError, grpc.aio.AbortError):
            raise
        except Exception as error:
            code = Code.INTERNAL
            log.exception("a request of %s failed", method)
            await context.abort(grpc.StatusCode.INTERNAL, f"the server failed: {type(error).__name__}")
        finally:
            self._metrics.in_flight.dec()
            self._metrics.observe_request("grpc", method, code, time.perf_counter() - started)

    async def predict(self, request: Any, deadline: float | None) -> Any:
        """Return the PredictResponse."""
        target = _read_target(request.model_spec)
        found = await self._predictor.call(target, partial(_read_tensors, request), deadline)
        names = list(request.output_filter) or list(found.outputs)
        response = predict_pb2.PredictResponse()
        _fill_spec(response.model_spec, request, found)
        for name in names:
            response.outputs[name].CopyFrom(dump_tensor(found.outputs[name], is_packed=self._is_packed))
        return response

    async def classify(self, request: Any, deadline: float | None) -> Any:
        """Return the ClassificationResponse."""
        target = _read_target(request.model_spec)
        found = await self._predictor.call(target, partial(_read_input, check_classifies, request), deadline)
        result = make_classifications(found.outputs, found.examples)
        response = classification_pb2.ClassificationResponse(result=result)
        _fill_spec(response.model_spec, request, found)
        return response

    async def regress(self, request: Any, deadline: float | None) -> Any:
        """Return the RegressionResponse."""
        target = _read_target(request.model_spec)
        found = await self._predictor.call(target, partial(_read_input, check_regresses, request), deadline)
        response = regression_pb2.RegressionResponse(result=make_regressions(found.outputs, found.examples))
        _fill_spec(response.model_spec, request, found)
        return response

    async def describe(self, request: Any, _: float | None) -> Any:
        """Return the GetModelMetadataResponse."""
        fields = list(request.metadata_field)
        if not fields or set(fields) != {_SIGNATURE_FIELD}:
            raise invalid(f"metadata_field: {', '.join(fields) or 'empty'}; this server knows {_SIGNATURE_FIELD}")
        version, signatures = make_signature_map(self._predictor, _read_target(request.model_spec))
        response = get_model_metadata_pb2.GetModelMetadataResponse()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version
        response.metadata[_SIGNATURE_FIELD].Pack(signatures)
        return response

    async def list_status(self, request: Any, _: float | None) -> Any:
        """Return the GetModelStatusResponse."""
        target = _read_target(request.model_spec)
        self._predictor.check_name(target.model, target.version)
        response = get_model_status_pb2.GetModelStatusResponse()
        for found in self._predictor.live.list_status(target.version):
            status = response.model_version_status.add(version=found.version, state=found.state.value)
            status.status.error_code = found.code.number
            status.status.error_message = found.message
        return response


class _Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):  # type: ignore[misc]
    def __init__(self, api: GrpcApi) -> None:
        self._api = api

    async def Predict(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._api.answer("predict", context, partial(self._api.predict, request))

    async def Classify(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._api.answer("classify", context, partial(self._api.classify, request))

    async def Regress(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._api.answer("regress", context, partial(self._api.regress, request))

    async def GetModelMetadata(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._api.answer("metadata", context, partial(self._api.describe, request))

    async def MultiInference(self, request: Any, context: Any) -> Any:  # noqa: N802
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "MultiInference is not supported: send each request alone")


class _Models(model_service_pb2_grpc.ModelServiceServicer):  # type: ignore[misc]
    def __init__(self, api: GrpcApi) -> None:
        self._api = api

    async def GetModelStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        return await self._api.answer("status", context, partial(self._api.list_status, request))

    async def HandleReloadConfigRequest(self, request: Any, context: Any) -> Any:  # noqa: N802
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "the served versions follow the folder and the flags")


def _read_target(spec: Any) -> Target:
    if spec.version_label:
        raise ServingError(Code.NOT_FOUND, f"Unrecognized servable version label: {spec.version_label}")
    if not spec.name:
        raise invalid("Missing ModelSpec: name the model")
    version = spec.version.value if spec.HasField("version") else None
    return Target(spec.name, version, spec.signature_name)


def _read_tensors(request: Any, signature: Signature) -> Arrays:
    if unknown := sorted(set(request.output_filter) - signature.outputs.keys()):
        raise invalid(f"output_filter: the signature has no output {', '.join(unknown)}")
    return {name: parse_tensor(name, proto) for name, proto in request.inputs.items()}


def _read_input(check: Callable[[Signature], None], request: Any, signature: Signature) -> Arrays:
    check(signature)
    return serialize_examples(signature, request.input)


def _fill_spec(spec: Any, request: Any, found: Prediction) -> None:
    spec.name = request.model_spec.name
    spec.version.value = found.version
    spec.signature_name = found.signature.name
