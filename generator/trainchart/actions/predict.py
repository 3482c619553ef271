"""The use case `trainchart predict`: send what a file holds to a model server, and read its answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainchart.errors import PlanError, Problem, ToolError, UsageError
from trainchart.host.files import read_bytes
from trainchart.serving.io.rest_client import ModelClient, NoAnswer, Reply
from trainchart.serving.request import Prediction, make_request, parse_input, read_answer, read_signature_name
from trainchart.serving.signature import DEFAULT_SIGNATURE, Signature, expect_inputs, parse_metadata

INPUT_LIMIT = 64 * 1024 * 1024
"""Bytes of a file, and of what it unpacks to."""
_STDIN = "-"
_TOO_LARGE = 413


@dataclass(frozen=True)
class PredictRequest:
    """What the user asked for."""

    file: str
    """- for standard input."""
    url: str
    model: str = ""
    signature: str = ""


@dataclass(frozen=True)
class Predicted:
    """An answer, and who has given it."""

    model: str
    signature: str
    prediction: Prediction


def predict(request: PredictRequest) -> Predicted:
    """Send the examples of a file to a model.

    Raises:
        UsageError: the address cannot be one of a server.
        PlanError: the model takes something else than what the file holds.
        ToolError: the file cannot be read, or the server does not answer.
    """
    client = ModelClient(request.url)
    path = Path("/dev/stdin") if request.file == _STDIN else Path(request.file)
    content = read_bytes(path, limit=INPUT_LIMIT)
    where = "standard input" if request.file == _STDIN else request.file
    try:
        value = parse_input(request.file, content, INPUT_LIMIT)
    except ValueError as error:
        kind = "a .npy or .npz file" if request.file.endswith((".npy", ".npz")) else "JSON"
        hint = "correct the JSON there" if request.file.endswith(".json") else "give a .json, .npy or .npz file"
        raise ToolError(f"{where} is not {kind}: {error}", hint=hint) from error
    try:
        model = request.model or _find_only_model(client)
        signature = _find_signature(client, model, request.signature or read_signature_name(value))
        try:
            made = make_request(value, signature, is_named=bool(request.signature))
        except ValueError as error:
            raise _refuse(where, str(error), signature) from error
        reply = client.predict(model, made.body)
    except NoAnswer as error:
        hint = "start one: trainchart serve RUN; for a release on a cluster: kubectl port-forward service/NAME 8501"
        raise ToolError(error.message, hint=error.hint or hint) from error
    if not reply.is_done:
        raise _explain(reply, where, signature)
    try:
        prediction = read_answer(reply.parse(), signature, is_single=made.is_single)
    except ValueError as error:
        raise ToolError(f"the response of {client.url} cannot be read: {error}") from error
    return Predicted(model, signature.name, prediction)


def _find_only_model(client: ModelClient) -> str:
    """Return the model of a server that has just one and says so, as trainchart's does."""
    document = client.ask("GET", "/v1/models").document
    listed = document.get("models") if isinstance(document, dict) else None
    names = [each["name"] for each in listed or () if isinstance(each, dict) and isinstance(each.get("name"), str)]
    if len(names) == 1:
        return str(names[0])
    hint = f"its models: {', '.join(names)}" if names else "as in its address: /v1/models/NAME"
    raise UsageError(f"{client.url} does not say which single model it serves: add --model NAME", hint=hint)


def _find_signature(client: ModelClient, model: str, name: str) -> Signature:
    reply = client.read_model(model, "metadata")
    if not reply.is_done:
        reason = reply.error or f"it responds with status {reply.status}"
        raise ToolError(f"{client.url} serves no model {model}: {reason}", hint="name its model: --model NAME")
    try:
        signatures = parse_metadata(reply.parse())
    except ValueError as error:
        raise ToolError(f"the metadata of {model} at {client.url} cannot be read: {error}") from error
    wanted = name or DEFAULT_SIGNATURE
    if wanted not in signatures:
        known = ", ".join(signatures)
        raise UsageError(f"--signature: {model} has no signature {wanted!r}", hint=f"its signatures: {known}")
    return signatures[wanted]


def _refuse(where: str, reason: str, signature: Signature) -> PlanError:
    return PlanError(
        f"{where} does not fit the model: {reason}", problems=(Problem(f"the signature {expect_inputs(signature)}"),)
    )


def _explain(reply: Reply, where: str, signature: Signature) -> PlanError | ToolError:
    reason = reply.error or f"status {reply.status}"
    if reply.status == _TOO_LARGE:
        return PlanError(f"{where} is too large for the server: {reason}", hint="send fewer examples at a time")
    if 400 <= reply.status < 500:
        return _refuse(where, reason, signature)
    return ToolError(
        f"the server failed: {reason}", hint="see its log: the output of trainchart serve, or kubectl logs"
    )
