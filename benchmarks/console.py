"""The page of all runs of `trainchart console`: how soon it is there, and what the console needs for it."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx2
import psutil

from benchmarks.measure import Row
from tests.small_cluster.cluster_objects import make_pod, make_set
from tests.small_cluster.small_api import serve_small_api

RUNS = 500
STARTS = 5
MARK_SECONDS = 1.0
MARK_MIB = 150.0
_ROLES = ("chief-0", "worker-0", "worker-1", "ps-0")
_ROW = '<tr id="row'
_WATCHED_SECONDS = 10.0


@dataclass(frozen=True)
class _Seen:
    """What one start of the console took."""

    first: float
    """Seconds until the page is there, with nothing read before."""
    whole: float
    """Seconds until it has all runs."""
    again: float
    mib: float
    share: float
    """Of a core, while a page is open."""


def measure_console() -> list[Row]:
    """Measure with as many local runs, then with as many releases on an API server that has nothing else to do."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
        environment = {**kept, "HOME": name, "KUBECONFIG": str(folder / "kubeconfig")}
        for number in range(RUNS):
            _write_run(folder / ".trainchart" / "runs" / f"mnist-{number}")
        rows = _measure(f"{RUNS} local runs", folder, environment)
    with tempfile.TemporaryDirectory() as name, serve_small_api() as api:
        releases = [f"exp-{number}" for number in range(RUNS)]
        api.objects = {
            "statefulsets": [make_set("worker", release=each, wanted=1) for each in releases],
            "pods": [make_pod("worker-0", release=each) for each in releases],
        }
        api.write_kubeconfig(Path(name) / "kubeconfig")
        rows += _measure(f"{RUNS} releases", Path(name), {**environment, "KUBECONFIG": f"{name}/kubeconfig"})
    return rows


def _measure(what: str, folder: Path, environment: Mapping[str, str]) -> list[Row]:
    seen = [_open(folder, environment) for _ in range(STARTS)]
    return [
        Row(f"first page, {what}", statistics.median(each.first for each in seen), "s", MARK_SECONDS),
        Row(f"all of them on the page, {what}", statistics.median(each.whole for each in seen), "s"),
        Row(f"the page loaded again, {what}", statistics.median(each.again for each in seen), "s"),
        Row(f"memory, {what}", max(each.mib for each in seen), "MiB", MARK_MIB),
        Row(f"CPU while the page is open, {what}", statistics.median(each.share for each in seen), "cores"),
    ]


def _open(folder: Path, environment: Mapping[str, str]) -> _Seen:
    command = [sys.executable, "-m", "trainchart", "console", "--no-browser"]
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            text = "".join(process.stderr.readline() for _ in range(2))
            found = re.search(r"(http://\S+/)\ncode: +(\S+)", text)
            assert found is not None, text
            with httpx2.Client(base_url=found[1], timeout=60) as client:
                client.post("sign-in", data={"code": found[2]}).raise_for_status()
                start = time.perf_counter()
                first, count = _time_page(client)
                if count < RUNS:
                    _wait_for_rows(client)
                whole = time.perf_counter() - start
                again, count = _time_page(client)
                assert count == RUNS, "what is being read is kept for the next page"
                running = psutil.Process(process.pid)
                share = _watch(client, running)
                return _Seen(first, whole, again, running.memory_info().rss / 2**20, share)
        finally:
            process.terminate()


def _time_page(client: httpx2.Client) -> tuple[float, int]:
    """Return the seconds that the page takes, and how many runs are on it."""
    start = time.perf_counter()
    page = client.get("/").raise_for_status().text
    return time.perf_counter() - start, page.count(_ROW)


def _wait_for_rows(client: httpx2.Client) -> None:
    with client.stream("GET", "/events") as events:
        for line in events.iter_lines():
            if line.startswith("data: ") and sum(each.count(_ROW) for each in json.loads(line[6:]).values()) == RUNS:
                return


def _watch(client: httpx2.Client, running: psutil.Process) -> float:
    """Return the share of a core that the console needs while a page is open."""
    before, start = running.cpu_times(), time.monotonic()
    with client.stream("GET", "/events") as events:
        for _ in events.iter_bytes():
            if time.monotonic() - start > _WATCHED_SECONDS:
                break
    after, seconds = running.cpu_times(), time.monotonic() - start
    return (after.user + after.system - before.user - before.system) / seconds


def _write_run(folder: Path) -> None:
    """Write the folder of a run that is over."""
    folder.mkdir(parents=True)
    now = time.time()
    pods = [
        {"label": each, "name": f"{folder.name}-{each}", "role": each.partition("-")[0], "state": str(folder / each)}
        for each in _ROLES
    ]
    record = {
        "release": folder.name, "chart": "mnist-0.1.0", "target": "mnist", "command": "trainchart run mnist",
        "startedAt": now - 600, "hyperparameters": {"learningRate": 0.1}, "values": {}, "deciding": ["chief-0"],
        "pods": pods, "code": {"folder": "/code"},
    }  # fmt: skip
    history = [
        {"at": now - 600 + number, "phase": "Running", "message": "worker-0 was restarted"} for number in range(20)
    ]
    states = {each: {"state": "finished", "attempt": 1} for each in _ROLES}
    (folder / "run.json").write_text(json.dumps(record))
    (folder / "state.json").write_text(
        json.dumps({"phase": "Succeeded", "since": now - 60, "pods": states, "history": history})
    )
    (folder / "result.json").write_text(
        json.dumps(
            {"verdict": "Succeeded", "step": 2000, "metrics": {"chief-0": {"loss": 0.1}}, "finishedAt": now - 60}
        )
    )
