"""Runs in the helper pods of `trainchart checkpoints`: does one thing with a folder of checkpoints, prints the result.

Standard library only, for Python 3.8 and newer: it goes into the pod as a zipapp, and the pod's image has the Python.
The result is packed into lines of its log, between notes of its progress. Bytes of files go to stdout, alone.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trainchart.actions.support.checkpoint_folder import read_list
from trainchart.actions.support.checkpoint_saved_model import read_saved_model
from trainchart.actions.support.checkpoint_work import (
    find_checkpoint,
    plan_folder_pruning,
    prune_folder,
    refuse_users,
    verify_folder,
)
from trainchart.checkpoints import wire
from trainchart.checkpoints.results import Pruning
from trainchart.checkpoints.saved_model import dump_saved_model
from trainchart.errors import TrainchartError
from trainchart.host.files import read_bytes
from trainchart.json_documents import parse_json
from trainchart_runtime.io.files import open_regular

LIST, SERVE, VERIFY, PLAN, PRUNE, EXPORT = "list", "serve", "verify", "plan", "prune", "export"
SEND = "send"
_BLOCK = 256 * 1024
_BLOCK_SECONDS = 60
"""How long a block may wait to be taken: nothing tells that the other end is gone."""
_IDLE_SECONDS = 120.0
"""How long a pod from which files are copied waits for the next copy."""
_POLL_SECONDS = 1.0


def main() -> None:
    """Do what the settings file says that is named first, or send the bytes of a file from an offset on."""
    arguments = sys.argv[1:]
    if arguments[0] == SEND:
        send(Path(arguments[1]), int(arguments[2]))
        return
    # The first process of a container ignores what it has no handler for.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    settings = parse_json(read_bytes(Path(arguments[0])))
    try:
        document = work(settings)
    except TrainchartError as error:
        document = wire.dump_error(error)
    for line in wire.pack_lines(document):
        print(line, flush=True)
    if settings["action"] == SERVE and "error" not in document:
        wait()


def work(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result as a document. Raises TrainchartError where there is none."""
    folder, action, step = Path(settings["folder"]), settings["action"], settings.get("step")
    if action in (LIST, SERVE):
        found = read_list(folder)
        if step is not None:
            find_checkpoint(found, step)
        return wire.dump_list(found, step)
    if action == EXPORT:
        return dump_saved_model(read_saved_model(folder))
    if action == VERIFY:
        return wire.dump_verified(verify_folder(folder, step, tell))
    alive = settings["alive"]
    refuse_users(folder, lambda pod: alive is not None and pod not in alive)
    if action == PLAN:
        return wire.dump_pruning(plan_folder_pruning(folder, settings["keep"], tell))
    pruning = Pruning(str(folder), settings["kept"], settings["removed"], settings["size"])
    prune_folder(pruning)
    return wire.dump_pruning(pruning)


def tell(text: str) -> None:
    print(f"{wire.NOTE}{text}", flush=True)


def send(path: Path, offset: int) -> None:
    """Write the bytes of a regular file from an offset on to stdout; end where nothing takes them any more."""
    with os.fdopen(open_regular(path), "rb") as source:
        source.seek(offset)
        while True:
            block = source.read(_BLOCK)
            if not block:
                break
            signal.alarm(_BLOCK_SECONDS)
            sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()
            signal.alarm(0)


def wait() -> None:
    """Return when nothing has been sent for a while: who asked for it is gone."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _IDLE_SECONDS:
        time.sleep(_POLL_SECONDS)
        if is_sending(Path("/proc")):
            quiet_since = time.monotonic()


def is_sending(processes: Path) -> bool:
    """Return whether a process of this container sends a file."""
    for process in processes.iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if SEND.encode() in words:
                return True
    return False


if __name__ == "__main__":
    main()
