"""Runs in the pods that `trainchart doctor` starts: tries volumes, network and clocks, and tells what it has found.

Standard library only, for Python 3.8 and newer: it goes into the pod as text, and the pod's image brings the Python.
Its settings are one JSON file; its report is one JSON object in the termination message, 4096 bytes at most.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any

BLOCK = 1024 * 1024
"""Bytes that each pod writes into each volume."""
POLL_SECONDS = 0.2
CONNECT_SECONDS = 3.0
POLICY_SECONDS = 15.0
"""How long a network plug-in may take to apply a new NetworkPolicy."""
MESSAGE_LIMIT = 300
DONE = threading.Event()
"""Set when this pod has tried everything."""


def main(arguments: list[str]) -> None:
    """Try everything that the settings file named first asks for, and write the report to the second file."""
    settings = json.loads(Path(arguments[0]).read_text())
    index = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))
    ends = time.monotonic() + settings["seconds"]
    for port in settings["ports"]:
        serve_clock(port)
    peers = [peer for peer in settings["peers"] if peer["index"] != index]
    report: dict[str, Any] = {"node": os.environ.get("NODE_NAME", "")}
    report["volumes"] = {each["claim"]: try_volume(each, settings, index, peers, ends) for each in settings["volumes"]}
    for peer in peers:
        report["peer"] = try_peer(peer["host"], settings["ports"], ends)
    DONE.set()
    folders = [Path(each["path"], settings["folder"]) for each in settings["volumes"] if each["writes"]]
    if folders:
        meet_in(folders, index, peers, ends)
    else:
        meet_at([peer["host"] for peer in peers], settings["ports"][0], ends)
    Path(arguments[1]).write_text(json.dumps(report))


def try_volume(
    volume: dict[str, Any], settings: dict[str, Any], index: int, peers: list[dict[str, Any]], ends: float
) -> dict[str, Any]:
    """Write, rename and read in a volume as checkpoints are; return what came of it."""
    found: dict[str, Any] = {}
    try:
        facts = os.statvfs(volume["path"])
        found["free"] = facts.f_bavail * facts.f_frsize
        if not volume["writes"]:
            with os.scandir(volume["path"]) as entries:
                found["isEmpty"] = next(entries, None) is None
            return found
        folder = Path(volume["path"], settings["folder"])
        folder.mkdir(exist_ok=True)
        with contextlib.suppress(OSError):
            folder.chmod(0o777)  # the other pod may have another user, and this one another umask
        found["seconds"] = round(write(folder, index), 3)
        for peer in peers:
            problem = read(folder, peer["index"], ends)
            if problem:
                found["error"] = problem
    except OSError as error:
        found["error"] = describe(error)
    return found


def write(folder: Path, index: int) -> float:
    """Write a file as checkpoints are written, with the sum of its bytes in its first line; return the seconds."""
    started = time.monotonic()
    data = os.urandom(BLOCK)
    draft = folder / f"{index}.draft"
    with draft.open("wb") as file:
        file.write(hashlib.sha256(data).hexdigest().encode() + b"\n" + data)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(folder / str(index))
    return time.monotonic() - started


def read(folder: Path, index: int, ends: float) -> str:
    """Wait for the file of another pod and read it; return what is wrong with it, or ""."""
    path = folder / str(index)
    while not path.exists():
        if time.monotonic() > ends:
            return "the file of the other pod does not appear: it sees another volume, or its writes come late"
        time.sleep(POLL_SECONDS)
    with path.open("rb") as file:
        total, data = file.readline().strip(), file.read()
    if hashlib.sha256(data).hexdigest().encode() != total:
        return f"the file of the other pod does not contain the bytes that it wrote: {len(data)} of {BLOCK} came"
    return ""


def meet_in(folders: list[Path], index: int, peers: list[dict[str, Any]], ends: float) -> None:
    """Wait until the other pods have read all files, so that none is removed too early; then remove them."""
    for folder in folders:
        with contextlib.suppress(OSError):
            (folder / f"{index}.done").touch()
            marks = [folder / f"{peer['index']}.done" for peer in peers]
            # Where the folder is gone, another pod has seen all marks.
            while folder.is_dir() and not all(map(Path.exists, marks)) and time.monotonic() < ends:
                time.sleep(POLL_SECONDS)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def meet_at(hosts: list[str], port: int, ends: float) -> None:
    """Stay until the other pods have tried everything, or are gone."""
    for host in hosts:
        with contextlib.suppress(OSError, ValueError):
            while not ask(host, port)["isDone"] and time.monotonic() < ends:
                time.sleep(POLL_SECONDS)


def try_peer(host: str, ports: list[int], ends: float) -> dict[str, Any]:
    """Resolve another pod, connect to its open port and to the one that a NetworkPolicy closes; compare the clocks."""
    opened, closed = ports
    found: dict[str, Any] = {}
    while "skew" not in found:
        try:
            found["address"] = socket.gethostbyname(host)
            before = time.time()
            now = ask(host, opened)["time"]
            after = time.time()
            found["skew"] = round(now - (before + after) / 2, 3)
        except (OSError, ValueError, KeyError) as error:
            if time.monotonic() > ends:
                found["error"] = describe(error)
                return found
            time.sleep(POLL_SECONDS)
    found["isClosed"] = wait_until_closed(host, closed)
    return found


def wait_until_closed(host: str, port: int) -> bool:
    """Say whether a port that no policy admits gets unreachable in time."""
    ends = time.monotonic() + POLICY_SECONDS
    while time.monotonic() < ends:
        try:
            ask(host, port)
        except (OSError, ValueError):
            return True
        time.sleep(1.0)
    return False


def ask(host: str, port: int) -> Any:
    """Return what the other pod answers: the time there, and whether it has tried everything."""
    with socket.create_connection((host, port), CONNECT_SECONDS) as connection:
        return json.loads(connection.makefile("rb").read(256))


def serve_clock(port: int) -> None:
    """Answer every connection with the time of this node."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.sendall(json.dumps({"time": time.time(), "isDone": DONE.is_set()}).encode())

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    server = Server(("", port), Handler)
    threading.Thread(target=server.serve_forever, name=f"clock-{port}", daemon=True).start()


def describe(error: BaseException) -> str:
    """Return an error in one line."""
    return f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT]


if __name__ == "__main__":
    main(sys.argv[1:])
