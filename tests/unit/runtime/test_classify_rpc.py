"""Errors of gRPC, whose own line says nothing: status and details stand in the lines below."""

from __future__ import annotations

import pytest

from trainchart_runtime import causes
from trainchart_runtime.classify import Diagnosis, Ending, classify, identify_failure

HEAD = 'Traceback (most recent call last):\n  File "/app/train.py", line 66, in main\n    call(str(size).encode())\n'
TOO_LARGE = "Received message larger than max (8388608 vs. 4194304)"


def diagnose(error: str, status: str, details: str) -> Diagnosis:
    text = (
        f"{HEAD}{error} of RPC that terminated with:\n\tstatus = StatusCode.{status}\n"
        f'\tdetails = "{details}"\n\tdebug_error_string = "{status}:{details}"\n>'
    )
    return classify(Ending(1, None, text.splitlines(), ("python", "train.py")))


@pytest.mark.parametrize(
    "error",
    [
        "grpc._channel._InactiveRpcError: <_InactiveRpcError",
        "grpc._channel._MultiThreadedRendezvous: <_MultiThreadedRendezvous",
        "grpc.aio._call.AioRpcError: <AioRpcError",
    ],
)
def test_an_rpc_error_has_its_status_and_details(error: str) -> None:
    name = error.partition(":")[0]
    assert diagnose(error, "NOT_FOUND", "no such shard") == (
        causes.PROGRAM_ERROR,
        f"{name}: NOT_FOUND: no such shard",
    )
    assert diagnose(error, "INTERNAL", "") == (causes.PROGRAM_ERROR, f"{name}: INTERNAL")


@pytest.mark.parametrize(
    ("cause", "status", "details"),
    [
        # As gRPC 1.76 says it.
        (causes.MESSAGE_TOO_LARGE, "RESOURCE_EXHAUSTED", f"Stream removed (CLIENT: {TOO_LARGE})"),
        (causes.MESSAGE_TOO_LARGE, "RESOURCE_EXHAUSTED", "CLIENT: Sent message larger than max (9 vs. 8)"),
        (causes.PROGRAM_ERROR, "RESOURCE_EXHAUSTED", "quota exceeded"),
        (causes.OUT_OF_MEMORY, "RESOURCE_EXHAUSTED", "out of memory"),
        (causes.ACCESS_REFUSED, "UNAUTHENTICATED", "the token has expired"),
        (causes.ACCESS_REFUSED, "PERMISSION_DENIED", "not yours"),
        (causes.PEER_LOST, "UNAVAILABLE", "failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:9"),
        (causes.PEER_UNRESOLVABLE, "UNAVAILABLE", "DNS resolution failed for ps:50051: C-ares status"),
    ],
)
def test_the_cause_of_an_rpc_error_is_in_its_details(cause: causes.Cause, status: str, details: str) -> None:
    assert diagnose("grpc._channel._InactiveRpcError: <_InactiveRpcError", status, details).cause is cause


def test_an_rpc_error_of_the_network_may_pass() -> None:
    error = "grpc._channel._InactiveRpcError: <_InactiveRpcError"
    assert identify_failure(diagnose(error, "RESOURCE_EXHAUSTED", TOO_LARGE), 198, 1.0)
    assert not identify_failure(diagnose(error, "UNAVAILABLE", "server is shutting down"), 198, 1.0)


def test_a_message_too_large_is_known_without_grpc() -> None:
    lines = [*HEAD.splitlines(), f"a.errors_impl.ResourceExhaustedError: CLIENT: {TOO_LARGE}"]
    assert classify(Ending(1, None, lines)).cause is causes.MESSAGE_TOO_LARGE


def test_an_error_cut_off_at_its_first_line_stays() -> None:
    line = "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:"
    assert classify(Ending(1, None, [*HEAD.splitlines(), line])) == (causes.PROGRAM_ERROR, line)
    lines = [*HEAD.splitlines(), line, "bye"]
    assert classify(Ending(1, None, lines)) == (causes.PROGRAM_ERROR, line)


@pytest.mark.parametrize(
    ("below", "reason"),
    [("\tMissing key(s): a.weight.", " Missing key(s): a.weight."), ("bye", ""), ("", "")],
)
def test_an_error_that_ends_in_a_colon_goes_on_indented(below: str, reason: str) -> None:
    line = "RuntimeError: Error(s) in loading state_dict for Net:"
    lines = [*HEAD.splitlines(), line, below, "\tUnexpected key(s): b"]
    assert classify(Ending(1, None, lines)) == (causes.PROGRAM_ERROR, f"{line}{reason}")
