"""A running test cluster as tests see it: start it, ask it, reach inside it, end it. Acts on the machine.

Everything inside lives in namespaces of a keeper process, so that ending is one SIGKILL, and a killed test run takes
its cluster with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from . import control, network, slots
from .bring_up import Ingredients
from .components import Component
from .config import ClusterConfig
from .keeper import FAILED, READY

_START_SECONDS = 400
_DESCRIPTION = "cluster.json"
CHECKOUT = Path(__file__).parents[3]


class ClusterError(Exception):
    """The cluster did not start, or a command inside it failed."""


@dataclass(frozen=True)
class Cluster:
    """Handle of a running cluster; valid in any process of the machine with the same rights."""

    config: ClusterConfig
    folder: Path
    """Holds kubeconfig, logs/ and everything the nodes keep; gone after `stop`."""
    keeper_pid: int
    programs: Path
    """Folder with kubectl and helm, to be put on PATH."""
    started_by: str = ""
    """Checkout where it was started by hand; empty for one that ends with the process that started it."""

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of a cluster administrator, which works on this machine."""
        return self.folder / "kubeconfig"

    def run_inside(
        self, argv: Sequence[str], *, node: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the cluster's namespaces, in the network of a node if one is named."""
        prefix = ["nsenter", f"--target={self.keeper_pid}", "--mount", "--pid", "--net", "--"]
        inner = network.in_namespace(node) if node else ()
        done = subprocess.run([*prefix, *inner, *argv], capture_output=True, text=True)
        if check and done.returncode != 0:
            raise ClusterError(f"{' '.join(argv)} exited with {done.returncode}: {done.stderr.strip()[-2000:]}")
        return done

    def stop_component(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a component, such as kubelet-node1 or kube-apiserver."""
        control.ask(self.folder, {"do": "stop", "component": name, "signal": number})

    def start_component(self, name: str) -> None:
        """Start a component that was stopped."""
        control.ask(self.folder, {"do": "start", "component": name})

    def run_component(self, component: Component) -> None:
        """Start a process that is no part of every cluster; `stop_component` ends it."""
        control.ask(self.folder, {"do": "run", "description": asdict(component)})

    def check(self) -> None:
        """Raise control.ControlError with the last lines of a component that died by itself."""
        control.ask(self.folder, {"do": "check"})

    def stop(self) -> None:
        """End the cluster and remove everything of it."""
        _end(self.keeper_pid)
        slots.remove_leftovers()


def start_cluster(ingredients: Ingredients, home: Path, *, detached: bool = False) -> Cluster:
    """Start a cluster with a folder of its own below `home`; ClusterError says why it did not start.

    Unless `detached`, the cluster ends with the process that calls this.
    """
    slots.remove_leftovers()
    slots.remove_forgotten(home, psutil.boot_time())
    home.mkdir(parents=True, exist_ok=True)
    folder = home / f"{os.getpid()}-{time.time_ns():x}"
    slot = slots.take_slot(folder)
    config = ClusterConfig(slot=slot.number)
    with contextlib.ExitStack() as undo:
        undo.callback(slots.remove_leftovers)
        try:
            # Only for us: it holds the keys of the cluster, and its pods may do anything to this machine.
            folder.mkdir(mode=0o700)
            frame, keeper_pid = _start_keeper(config, folder, slot.descriptor, detached)
        finally:
            os.close(slot.descriptor)
        undo.callback(frame.wait)
        undo.callback(_end, keeper_pid)
        started_by = str(CHECKOUT) if detached else ""
        cluster = _furnish(Cluster(config, folder, keeper_pid, folder / "bin", started_by), ingredients)
        _give_order(frame, cluster, ingredients)
        _wait_until_ready(frame, folder)
        undo.pop_all()
    return cluster


def _end(keeper_pid: int) -> None:
    """Kill a keeper and wait until the kernel has ended everything in its namespaces."""
    with contextlib.suppress(psutil.NoSuchProcess):
        keeper = psutil.Process(keeper_pid)
        frame = keeper.parent()
        keeper.kill()
        psutil.wait_procs([process for process in (keeper, frame) if process], timeout=20)


def _furnish(cluster: Cluster, ingredients: Ingredients) -> Cluster:
    """Write what other processes need to find the cluster, and join it to this machine."""
    description = {
        "slot": cluster.config.slot,
        "keeper_pid": cluster.keeper_pid,
        "started_by": cluster.started_by,
    }
    (cluster.folder / _DESCRIPTION).write_text(json.dumps(description))
    cluster.programs.mkdir()
    kubectl = cluster.programs / "kubectl"
    kubectl.write_text(f'#!/bin/sh\nexec "{ingredients.programs.kubernetes}" kubectl "$@"\n')
    kubectl.chmod(0o755)
    (cluster.programs / "helm").symlink_to(ingredients.programs.helm)
    network.apply(network.plan_machine(cluster.config, cluster.keeper_pid))
    return cluster


def _give_order(frame: subprocess.Popen[bytes], cluster: Cluster, ingredients: Ingredients) -> None:
    order = {"slot": cluster.config.slot, "folder": str(cluster.folder), "ingredients": asdict(ingredients)}
    assert frame.stdin is not None
    frame.stdin.write(json.dumps(order).encode() + b"\n")
    frame.stdin.close()


def find_clusters() -> list[Cluster]:
    """Return the clusters that run on this machine and are ready."""
    found = []
    for folder in slots.find_folders():
        if (folder / READY).exists():
            description = json.loads((folder / _DESCRIPTION).read_text())
            config = ClusterConfig(slot=description["slot"])
            keeper_pid, started_by = description["keeper_pid"], description["started_by"]
            found.append(Cluster(config, folder, keeper_pid, folder / "bin", started_by))
    return found


def _start_keeper(
    config: ClusterConfig, folder: Path, lock: int, detached: bool
) -> tuple[subprocess.Popen[bytes], int]:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    bound = [] if detached else ["setpriv", "--pdeathsig", "KILL"]
    frame = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    with (folder / "keeper.log").open("wb") as log:
        process = subprocess.Popen(
            [*bound, *frame, sys.executable, "-m", f"{__package__}.keeper", str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(descriptor, lock),
            # Ctrl-C is for the tests, which end the cluster in their own order.
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
    os.close(descriptor)
    deadline = time.monotonic() + 60
    while not (children := psutil.Process(process.pid).children()):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            raise ClusterError(f"namespaces cannot be made here: {(folder / 'keeper.log').read_text().strip()}")
        time.sleep(0.01)
    return process, children[0].pid


def _wait_until_ready(frame: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / READY).exists():
        if frame.poll() is not None:
            failed = folder / FAILED
            reason = failed if failed.exists() else folder / "keeper.log"
            words = reason.read_text().strip() or "its last words could not be written; is the disk full?"
            raise ClusterError(f"the test cluster did not start: {words}")
        if time.monotonic() > deadline:
            raise ClusterError(f"the test cluster did not start within {_START_SECONDS} s")
        time.sleep(0.05)
