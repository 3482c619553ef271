"""The first process inside a cluster's namespaces: brings the cluster up and answers the control socket.

When it ends, however it ends, the kernel ends every process of the namespaces and takes away their mounts and
interfaces. `cluster.py` starts it and writes the ingredients to its standard input.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

from . import control, network
from .bring_up import BringUp, Ingredients
from .components import Component
from .config import GO_SETTINGS, INSIDE, ClusterConfig, Programs
from .supervisor import ComponentDied, NotInTime, Supervisor

READY = "ready"
FAILED = "failed"


def main() -> int:
    """Serve until killed; on failure leave the reason in the file FAILED of the run's folder."""
    folder = int(sys.argv[1])
    order = json.loads(sys.stdin.readline())
    cluster = ClusterConfig(slot=order["slot"])
    ingredients = Ingredients(**{**order["ingredients"], "programs": Programs(**order["ingredients"]["programs"])})
    os.chdir("/")
    # Pods of any user read what is written here, however strict the caller is with his own files.
    os.umask(0o022)
    os.environ.clear()
    os.environ["HOME"] = "/run"
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    os.environ.update(GO_SETTINGS)
    _mount_folder(folder)
    supervisor = Supervisor(Path(INSIDE, "logs"))
    try:
        network.apply_inside(cluster)
        BringUp(cluster, Path(order["folder"]), ingredients, supervisor).run()
    except (ComponentDied, NotInTime, RuntimeError) as error:
        Path(INSIDE, FAILED).write_text(str(error))
        return 1
    except Exception:
        Path(INSIDE, FAILED).write_text(traceback.format_exc())
        return 1
    return _serve(supervisor)


def _mount_folder(descriptor: int) -> None:
    # A /run of the cluster's own hides the machine's, which is why the run's folder is mounted through a descriptor
    # that was opened before. The other folders are where programs keep state by habit.
    for path in ("/run", "/var/lib/cni", "/var/lib/kubelet", "/var/log/containers"):
        Path(path).mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "tmpfs", path)
    Path(INSIDE).mkdir()
    _mount("--bind", f"/proc/self/fd/{descriptor}", str(INSIDE), pass_fds=(descriptor,))
    # Volumes that are mounted by one process must be seen in containers that another one started.
    _mount("--make-rshared", str(INSIDE))


def _mount(*arguments: str, pass_fds: tuple[int, ...] = ()) -> None:
    subprocess.run(["mount", *arguments], check=True, pass_fds=pass_fds)


def _serve(supervisor: Supervisor) -> int:
    wakeup, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    server = control.listen(Path(INSIDE))
    sources: list[int | socket.socket] = [server, wakeup]
    Path(INSIDE, READY).touch()
    while True:
        supervisor.reap_orphans()
        readable, _, _ = select.select(sources, [], [])
        if wakeup in readable:
            os.read(wakeup, 512)
        if server in readable:
            connection, _ = server.accept()
            with connection:
                control.serve(connection, lambda request: answer(supervisor, request))


def answer(supervisor: Supervisor, request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked; an answer with an `error` says why that cannot be."""
    name = request.get("component")
    if request.get("do") == "run":
        supervisor.start(Component(**request["description"]))
        return {}
    if name is not None and name not in supervisor.known():
        return {"error": f"no component {name!r}; there are {', '.join(supervisor.known())}"}
    match request.get("do"):
        case "stop" if name not in supervisor.started():
            return {"error": f"{name} is stopped already"}
        case "stop":
            supervisor.stop(str(name), request.get("signal", signal.SIGKILL))
        case "start":
            supervisor.restart(str(name))
        case "check":
            try:
                supervisor.raise_for_dead()
            except ComponentDied as error:
                return {"error": str(error)}
        case other:
            return {"error": f"unknown request {other!r}"}
    return {}


if __name__ == "__main__":
    sys.exit(main())
