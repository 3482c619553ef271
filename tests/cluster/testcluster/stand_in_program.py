"""Stands in for a training program, in a pod and in a local run: says what it was given and which peers it reaches.

Not imported but run, with the standard library alone; stand_in.py puts it into charts and reads what it prints: one
JSON object a line. It ends when it is told to.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

_CONNECT_SECONDS = 1.0
_ROUND_SECONDS = 0.5


def main() -> None:
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    _leave_name(os.environ.get("TRAINCHART_CHECKPOINTS_DIR", ""))
    _print_line("given", _describe_given())
    addresses = {
        f"{task_type}-{index}": address
        for task_type, hosts in config.get("cluster", {}).items()
        for index, address in enumerate(hosts)
    }
    task = config.get("task", {})
    own_address = addresses.pop(f"{task.get('type')}-{task.get('index')}", "")
    if own_address:
        threading.Thread(target=_serve, args=(int(own_address.rpartition(":")[2]),), daemon=True).start()
    last: dict[str, Any] = {}
    while True:
        seen = {"peers": {name: _meet(address) for name, address in addresses.items()}, "files": _list_checkpoints()}
        if seen != last:
            _print_line("seen", seen)
            last = seen
        time.sleep(_ROUND_SECONDS)


def _describe_given() -> dict[str, Any]:
    named = (os.environ.get(name, "") for name in ("TRAINCHART_CLUSTER_FILE", "TRAINCHART_HYPERPARAMETERS_FILE"))
    return {
        "program": _describe_process("self"),
        "launcher": _describe_process(str(os.getppid())),
        "mounts": [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()],
        "files": {path: Path(path).read_text() for path in named if path},
        "resolver": Path("/etc/resolv.conf").read_text(),
    }


def _describe_process(number: str) -> dict[str, Any]:
    folder = Path("/proc", number)
    variables = (folder / "environ").read_text().split("\0")
    return {
        "argv": (folder / "cmdline").read_text().split("\0")[:-1],
        "environment": dict(variable.partition("=")[::2] for variable in variables if variable),
        "workingDirectory": str((folder / "cwd").readlink()),
    }


def _serve(port: int) -> None:
    """Tell everybody who connects which pod this is."""
    listener = socket.create_server(("", port))
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(os.environ["TRAINCHART_POD_NAME"].encode())


def _meet(address: str) -> dict[str, str]:
    host, _, port = address.rpartition(":")
    try:
        number = str(socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        return {"error": f"does not resolve: {error.strerror}"}
    try:
        with socket.create_connection((number, int(port)), _CONNECT_SECONDS) as connection:
            return {"address": number, "pod": connection.recv(1024).decode()}
    except OSError as error:
        return {"address": number, "error": str(error)}


def _leave_name(checkpoints: str) -> None:
    if checkpoints:
        Path(checkpoints, os.environ["TRAINCHART_POD_NAME"]).touch()


def _list_checkpoints() -> list[str]:
    """List what programs have left; the launcher's own folder is hidden."""
    folder = os.environ.get("TRAINCHART_CHECKPOINTS_DIR", "")
    return sorted(path.name for path in Path(folder).iterdir() if path.name[0] != ".") if folder else []


def _print_line(key: str, value: dict[str, Any]) -> None:
    print(json.dumps({"stand-in": {key: value}}), flush=True)


if __name__ == "__main__":
    main()
