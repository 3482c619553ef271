"""The server's settings from its command line, whose flags are called as in TensorFlow Serving where that has them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainchart_serving.batching import BatchSettings
from trainchart_serving.rest import RestLimits
from trainchart_serving.versions import VersionPolicy

_CONTENT = re.compile(r"([0-9]+)=((?:sha256:)?[0-9a-f]{64})")
_SWITCH = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class Settings:
    """All that a server is started with."""

    model_name: str
    model_base_path: Path
    host: str
    rest_port: int
    grpc_port: int
    policy: VersionPolicy
    poll_seconds: float
    batches: BatchSettings
    limits: RestLimits
    is_packed: bool
    """gRPC answers hold tensors as packed bytes: faster, where all clients use tf.make_ndarray."""
    drain_delay_seconds: float
    """After SIGTERM: how long requests are still accepted, until all load balancers have seen it is not ready."""
    drain_seconds: float
    """How long the requests under way may then take."""


def parse_settings(arguments: Sequence[str]) -> Settings:
    """Return the settings of a command line; a wrong one ends the program with a message, exit code 2."""
    parser = _make_parser()
    given = parser.parse_args([_normalize(argument) for argument in arguments])
    # A call computes on several cores by itself: with a thread for each, small batches get into each other's way.
    threads = given.num_batch_threads or max(1, (os.cpu_count() or 1) // 2)
    return Settings(
        model_name=given.model_name,
        model_base_path=Path(given.model_base_path),
        host=given.host,
        rest_port=given.rest_api_port,
        grpc_port=given.port,
        policy=VersionPolicy(given.latest_versions, tuple(given.version), dict(given.content)),
        poll_seconds=given.file_system_poll_wait_seconds,
        batches=BatchSettings(
            max_examples=given.max_batch_size if given.enable_batching else 1,
            timeout_seconds=given.batch_timeout_micros / 1e6,
            max_waiting=given.max_enqueued_requests,
            threads=threads,
        ),
        limits=RestLimits(given.max_request_bytes, given.rest_api_timeout_in_ms / 1e3),
        is_packed=given.enable_serialization_as_tensor_content,
        drain_delay_seconds=given.drain_delay_seconds,
        drain_seconds=given.drain_timeout_seconds,
    )


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainchart_serving",
        description="Serve the versions of a SavedModel over TensorFlow Serving's REST and gRPC API.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--model_name", required=True, help="name of the model in the API")
    add("--model_base_path", required=True, help="folder with a folder for each version, named by its number")
    add("--host", default="0.0.0.0", help="address to listen at")
    add("--rest_api_port", type=_port, default=8501, help="port of REST, health and metrics; 0 takes any free one")
    add("--port", type=_port, default=8500, help="port of gRPC; 0 takes any free one")
    add("--latest_versions", type=_count, default=1, help="serve this many of the newest versions that load")
    add("--version", type=_count, action="append", default=[], help="serve only this version; repeatable")
    add(
        "--content", type=_content, action="append", default=[], metavar="VERSION=SHA256", help="hash that it must have"
    )
    add("--file_system_poll_wait_seconds", type=_seconds, default=1.0, help="how often to look for versions")
    add("--enable_batching", type=_switch, nargs="?", const=True, default=True, help="batch requests")
    add("--max_batch_size", type=_count, default=32, help="examples in one call of the model")
    add("--batch_timeout_micros", type=_whole, default=0, help="how long a request waits for others to join")
    add("--num_batch_threads", type=_whole, default=0, help="model calls at once; 0: one per two CPUs")
    add("--max_enqueued_requests", type=_count, default=1000, help="requests that may wait; others get 503")
    add("--max_request_bytes", type=_count, default=16 * 2**20, help="size of a request; larger ones get 413")
    add("--rest_api_timeout_in_ms", type=_count, default=30000, help="time limit of a REST answer")
    add(
        "--enable_serialization_as_tensor_content",
        type=_switch,
        nargs="?",
        const=True,
        default=False,
        help="pack tensors",
    )
    add("--drain_delay_seconds", type=_seconds, default=5.0, help="how long to accept requests after SIGTERM")
    add("--drain_timeout_seconds", type=_seconds, default=30.0, help="then how long to wait for those in flight")
    return parser


def _normalize(argument: str) -> str:
    """Return a flag as TensorFlow Serving writes it, also where it is given with dashes."""
    if not argument.startswith("--"):
        return argument
    flag, equals, value = argument.partition("=")
    return f"--{flag[2:].replace('-', '_')}{equals}{value}"


def _switch(text: str) -> bool:
    if text.lower() not in _SWITCH:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return _SWITCH[text.lower()]


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _count(text: str) -> int:
    if not (number := _whole(text)):
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _port(text: str) -> int:
    if (number := _whole(text)) > 65535:
        raise argparse.ArgumentTypeError(f"{number} is not a port")
    return number


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def _content(text: str) -> tuple[int, str]:
    if not (match := _CONTENT.fullmatch(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form 3=sha256:…")
    return int(match[1]), match[2]
