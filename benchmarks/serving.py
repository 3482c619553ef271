"""The model server beside a bare loop over the same function, on the same cores that its client uses, too."""

from __future__ import annotations

import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.generator import ROOT
from benchmarks.measure import Row
from benchmarks.serving_case import DIGITS, PICTURES

_LEAST = 0.8
_TURNS = 7
_SECONDS = 1.0
_CASE = "benchmarks.serving_case"
_BARE, _JOINED, _SINGLE, _REST = "bare", "batching", "no batching", "REST, batching"


@dataclass(frozen=True)
class Case:
    """A model, and what its clients send."""

    model: str
    what: str
    examples: int
    in_flight: int


CASES = (
    Case(DIGITS, "28 × 28 digits, small network", 1, 32),
    Case(DIGITS, "28 × 28 digits, small network", 32, 4),
    Case(PICTURES, "96 × 96 pictures, MobileNetV2 0.35", 1, 32),
    Case(PICTURES, "96 × 96 pictures, MobileNetV2 0.35", 16, 4),
)


@dataclass(frozen=True)
class Turn:
    """What one contender did for a moment."""

    rate: float
    p50: float
    p99: float
    cpu: float
    """Cores that the client took."""
    server_cpu: float = 0.0


class _Asker:
    """A process that takes turns: the bare loop, or a client of a server."""

    def __init__(self, process: subprocess.Popen[str], server: psutil.Process | None = None) -> None:
        self._process = process
        self._server = server

    def take_turn(self, examples: int, in_flight: int, seconds: float) -> Turn:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before = self._read_cpu()
        self._process.stdin.write(f"{examples} {in_flight} {seconds}\n")
        self._process.stdin.flush()
        measured = json.loads(self._process.stdout.readline())
        return Turn(**measured, server_cpu=(self._read_cpu() - before) / seconds)

    def _read_cpu(self) -> float:
        if self._server is None:
            return 0.0
        times = self._server.cpu_times()
        return float(times.user + times.system)


def measure_serving() -> list[Row]:
    """Return throughput and latency of the server, with its part of the bare loop's throughput."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(_python(_CASE, "export", name), cwd=ROOT, env=_quiet(), check=True, stderr=subprocess.DEVNULL)
        for model in (DIGITS, PICTURES):
            with _start_all(folder / model) as askers:
                for case in (case for case in CASES if case.model == model):
                    rows += _list_rows(case, _take_turns(case, askers))
    return [*rows, Row("", 0, "", note=_NOTE)]


_NOTE = (
    "Bare loop: one call after the other of the same signature in one process, with as many examples as one request"
    " has. The server's requests come over loopback from a client on the same cores, whose share is given beside each"
    " line. The client sends prepared bytes and does not parse answers."
)


def _take_turns(case: Case, askers: Mapping[str, _Asker]) -> dict[str, list[Turn]]:
    turns: dict[str, list[Turn]] = {name: [] for name in askers}
    for number in range(_TURNS + 1):
        for name, asker in askers.items():
            turn = asker.take_turn(case.examples, case.in_flight, _SECONDS)
            if number:
                turns[name].append(turn)
    return turns


def _list_rows(case: Case, turns: Mapping[str, list[Turn]]) -> Iterator[Row]:
    sent = f"{case.what}; {case.examples} example{'s' * (case.examples > 1)} a request"
    bare = turns[_BARE]
    yield Row(f"{sent}: bare loop", _median(bare, "rate") * case.examples, "examples/s", note=_describe(bare))
    for name in (_JOINED, _SINGLE, _REST):
        found = turns[name]
        protocol = "" if name == _REST else "gRPC, "
        what = f"{sent}: server, {protocol}{name}, {case.in_flight} in flight"
        yield Row(what, _median(found, "rate") * case.examples, "examples/s", note=_describe(found))
        ratio = statistics.median(mine.rate / theirs.rate for mine, theirs in zip(found, bare, strict=True))
        mark = _LEAST if name == _JOINED else None
        yield Row("ratio, median of neighbours", ratio, "of the loop", mark, lowest=True)


def _describe(turns: list[Turn]) -> str:
    latency = f"p50 {_median(turns, 'p50'):.3g} ms, p99 {_median(turns, 'p99'):.3g} ms"
    if not any(turn.server_cpu for turn in turns):
        return latency
    return f"{latency}; server {_median(turns, 'server_cpu'):.2f} cores, client {_median(turns, 'cpu'):.2f}"


def _median(turns: list[Turn], field: str) -> float:
    return float(statistics.median(getattr(turn, field) for turn in turns))


@contextlib.contextmanager
def _start_all(folder: Path) -> Iterator[dict[str, _Asker]]:
    """Start the contenders; all wait for their turns."""
    with contextlib.ExitStack() as stack:
        joined, rest, grpc = _start_server(stack, folder, "--enable_batching=true")
        single, _, single_grpc = _start_server(stack, folder, "--enable_batching=false")
        yield {
            _BARE: _Asker(_start(stack, "bare", str(folder))),
            _JOINED: _Asker(_start(stack, "grpc", str(folder), grpc), joined),
            _SINGLE: _Asker(_start(stack, "grpc", str(folder), single_grpc), single),
            _REST: _Asker(_start(stack, "rest", str(folder), rest), joined),
        }


def _start_server(stack: contextlib.ExitStack, folder: Path, *flags: str) -> tuple[psutil.Process, str, str]:
    ports = ["--host=127.0.0.1", "--rest_api_port=0", "--port=0", "--drain_delay_seconds=0"]
    named = ["--model_name=model", f"--model_base_path={folder}"]
    process = _enter(stack, _python("trainchart_serving", *named, *ports, *flags))
    assert process.stdout is not None
    found = re.search(r"REST at (\S+), gRPC at (\S+)", process.stdout.readline())
    assert found is not None, "the server did not start"
    return psutil.Process(process.pid), found[1], found[2]


def _start(stack: contextlib.ExitStack, *arguments: str) -> subprocess.Popen[str]:
    return _enter(stack, _python(_CASE, *arguments))


def _enter(stack: contextlib.ExitStack, command: list[str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=_quiet(),
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    stack.enter_context(process)
    stack.callback(process.terminate)
    return process


def _python(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _quiet() -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
