"""The model server beside a bare loop over the same function, and LitServe, on the cores that its client uses, too."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.generator import ROOT
from benchmarks.measure import Row
from benchmarks.serving_case import DIGITS, PICTURES
from tests.cluster.testcluster.cache_folder import find_cache

_LEAST = 0.8
_TURNS = 7
_SECONDS = 1.0
_START_SECONDS = 60.0
_CASE = "benchmarks.serving_case"
_JOINED_EXAMPLES = 128
"""The most in one call, for batching: several requests of the larger cases."""
_BARE, _JOINED, _SINGLE, _REST, _PEER = "bare", "batching", "no batching", "REST, batching", "LitServe"
_PEER_CASE = "benchmarks.serving_peer"
_LITSERVE = "0.2.19"


@dataclass(frozen=True)
class Case:
    """A model, and what its clients send."""

    model: str
    what: str
    examples: int
    in_flight: int


CASES = (
    Case(DIGITS, "28 × 28 digits, small network", 1, 32),
    Case(DIGITS, "28 × 28 digits, small network", 32, 8),
    Case(PICTURES, "96 × 96 pictures, MobileNetV2 0.35", 1, 32),
    Case(PICTURES, "96 × 96 pictures, MobileNetV2 0.35", 16, 8),
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

    def __init__(
        self, process: subprocess.Popen[str], server: psutil.Process | None = None, *, single_only: bool = False
    ) -> None:
        self._process = process
        self._server = server
        self.single_only = single_only
        """Whether it can only send one example a request."""

    def take_turn(self, examples: int, in_flight: int, seconds: float) -> Turn:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        before, started = self._read_cpu(), time.perf_counter()
        self._process.stdin.write(f"{examples} {in_flight} {seconds}\n")
        self._process.stdin.flush()
        measured = json.loads(self._process.stdout.readline())
        return Turn(**measured, server_cpu=(self._read_cpu() - before) / (time.perf_counter() - started))

    def _read_cpu(self) -> float:
        if self._server is None:
            return 0.0
        processes = [self._server, *self._server.children(recursive=True)]
        return sum(times.user + times.system for times in (process.cpu_times() for process in processes))


def measure_serving() -> list[Row]:
    """Return throughput and latency of the server, with its part of the bare loop's throughput."""
    rows: list[Row] = []
    peer = _install_peer()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(_python(_CASE, "export", name), cwd=ROOT, env=_quiet(), check=True, stderr=subprocess.DEVNULL)
        for model in (DIGITS, PICTURES):
            with _start_all(folder / model, peer) as askers:
                for case in (case for case in CASES if case.model == model):
                    able = {
                        name: asker for name, asker in askers.items() if case.examples == 1 or not asker.single_only
                    }
                    rows += _list_rows(case, _take_turns(case, able))
    return [
        *rows,
        Row("", 0, "", note=_NOTE if peer else f"{_NOTE} LitServe is not measured: pip could not install it"),
    ]


_CONTENDERS = {
    _JOINED: "server, gRPC, batching",
    _SINGLE: "server, gRPC, no batching",
    _REST: "server, REST, batching",
    _PEER: "LitServe, REST, batching",
}
_NOTE = (
    "Bare loop: one call after the other of the same signature in one process, with as many examples as one request"
    " has. The server's requests come over loopback from a client on the same cores, whose share is given beside each"
    " line. The client sends prepared bytes and does not parse answers. Batching joins up to"
    f" {_JOINED_EXAMPLES} examples, which is four times the default. LitServe {_LITSERVE} serves one example a request,"
    " with batches of the same size, in three processes."
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
    for name in (name for name in turns if name != _BARE):
        found = turns[name]
        what = f"{sent}: {_CONTENDERS[name]}, {case.in_flight} in flight"
        yield Row(what, _median(found, "rate") * case.examples, "examples/s", note=_describe(found))
        ratio = statistics.median(mine.rate / theirs.rate for mine, theirs in zip(found, bare, strict=True))
        mark = _LEAST if name == _JOINED else None
        yield Row("ratio in each round, median", ratio, "× the loop", mark, lowest=True)


def _describe(turns: list[Turn]) -> str:
    latency = f"p50 {_median(turns, 'p50'):.3g} ms, p99 {_median(turns, 'p99'):.3g} ms"
    if not any(turn.server_cpu for turn in turns):
        return latency
    return f"{latency}; server {_median(turns, 'server_cpu'):.2f} cores, client {_median(turns, 'cpu'):.2f}"


def _median(turns: list[Turn], field: str) -> float:
    return float(statistics.median(getattr(turn, field) for turn in turns))


@contextlib.contextmanager
def _start_all(folder: Path, peer: Path | None) -> Iterator[dict[str, _Asker]]:
    """Start the contenders; all wait for their turns. `peer` is the folder that LitServe is in."""
    with contextlib.ExitStack() as stack:
        joined, rest, grpc = _start_server(stack, folder, f"--max_batch_size={_JOINED_EXAMPLES}")
        single, _, single_grpc = _start_server(stack, folder, "--enable_batching=false")
        askers = {
            _BARE: _Asker(_start(stack, "bare", str(folder))),
            _JOINED: _Asker(_start(stack, "grpc", str(folder), grpc), joined),
            _SINGLE: _Asker(_start(stack, "grpc", str(folder), single_grpc), single),
            _REST: _Asker(_start(stack, "rest", str(folder), f"{rest}/v1/models/model:predict"), joined),
        }
        if peer is not None:
            litserve, address = _start_peer(stack, folder, peer)
            askers[_PEER] = _Asker(_start(stack, "rest", str(folder), address), litserve, single_only=True)
        yield askers


def _start_server(stack: contextlib.ExitStack, folder: Path, *flags: str) -> tuple[psutil.Process, str, str]:
    ports = ["--host=127.0.0.1", "--rest_api_port=0", "--port=0", "--drain_delay_seconds=0"]
    named = ["--model_name=model", f"--model_base_path={folder}"]
    process = _enter(stack, _python("trainchart_serving", *named, *ports, *flags))
    assert process.stdout is not None
    found = re.search(r"REST at (\S+), gRPC at (\S+)", process.stdout.readline())
    assert found is not None, "the server did not start"
    return psutil.Process(process.pid), found[1], found[2]


def _start_peer(stack: contextlib.ExitStack, folder: Path, peer: Path) -> tuple[psutil.Process, str]:
    """Start LitServe, and return it with its address once its model answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = _python(_PEER_CASE, str(folder), str(port), str(_JOINED_EXAMPLES))
    started = psutil.Process(_enter(stack, command, {"PYTHONPATH": f"{peer}{os.pathsep}{ROOT}"}).pid)
    stack.callback(_end_children, started)
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health"):
            return started, f"127.0.0.1:{port}/predict"
        assert time.monotonic() < deadline, "LitServe did not start"
        time.sleep(0.2)


def _end_children(process: psutil.Process) -> None:
    """End the processes that LitServe has started, which do not all follow it."""
    children = process.children(recursive=True)
    for child in children:
        child.terminate()
    psutil.wait_procs(children, timeout=_START_SECONDS)


def _install_peer() -> Path | None:
    """Return a folder in the user's cache that has LitServe in it, or None where pip cannot put it there."""
    folder = find_cache(os.environ, "benchmarks") / f"litserve-{_LITSERVE}"
    if (folder / "litserve").is_dir():
        return folder
    install = _python("pip", "install", "--quiet", "--target", str(folder), f"litserve=={_LITSERVE}")
    done = subprocess.run(install, capture_output=True, check=False)
    return folder if done.returncode == 0 else None


def _start(stack: contextlib.ExitStack, *arguments: str) -> subprocess.Popen[str]:
    return _enter(stack, _python(_CASE, *arguments))


def _enter(
    stack: contextlib.ExitStack, command: list[str], settings: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**_quiet(), **(settings or {})},
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
