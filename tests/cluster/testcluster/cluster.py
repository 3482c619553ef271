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

_START_SECONDS = 180
_DESCRIPTION = "cluster.json"
DETACHED = "detached"
"""File in the folder of a cluster that outlives the process that started it."""


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
    """Folder with kubectl, to be put on PATH."""

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
        with contextlib.suppress(psutil.NoSuchProcess):
            keeper = psutil.Process(self.keeper_pid)
            frame = keeper.parent()
            keeper.kill()
            # The keeper is gone only when the kernel has ended everything in its namespaces.
            psutil.wait_procs([process for process in (keeper, frame) if process], timeout=20)
        slots.remove_leftovers()


def start_cluster(ingredients: Ingredients, home: Path, *, detached: bool = False) -> Cluster:
    """Start a cluster with a folder of its own below `home`; ClusterError says why it did not start.

    Unless `detached`, the cluster ends with the process that calls this.
    """
    slots.remove_leftovers()
    home.mkdir(parents=True, exist_ok=True)
    folder = home / f"{os.getpid()}-{time.time_ns():x}"
    slot = slots.take_slot(folder)
    config = ClusterConfig(slot=slot.number)
    folder.mkdir()
    try:
        frame, keeper_pid = _start_keeper(config, folder, slot.descriptor, detached)
    finally:
        os.close(slot.descriptor)
    try:
        cluster = _furnish(Cluster(config, folder, keeper_pid, folder / "bin"), ingredients, detached)
        _give_order(frame, cluster, ingredients)
        _wait_until_ready(frame, folder)
    except BaseException:
        frame.kill()
        frame.wait()
        slots.remove_leftovers()
        raise
    return cluster


def _furnish(cluster: Cluster, ingredients: Ingredients, detached: bool) -> Cluster:
    """Write what other processes need to find the cluster, and join it to this machine."""
    if detached:
        (cluster.folder / DETACHED).touch()
    description = {"slot": cluster.config.slot, "keeper_pid": cluster.keeper_pid}
    (cluster.folder / _DESCRIPTION).write_text(json.dumps(description))
    cluster.programs.mkdir()
    kubectl = cluster.programs / "kubectl"
    kubectl.write_text(f'#!/bin/sh\nexec "{ingredients.programs.kubernetes}" kubectl "$@"\n')
    kubectl.chmod(0o755)
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
            found.append(Cluster(config, folder, description["keeper_pid"], folder / "bin"))
    return found


def _start_keeper(
    config: ClusterConfig, folder: Path, lock: int, detached: bool
) -> tuple[subprocess.Popen[bytes], int]:
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    bound = [] if detached else ["setpriv", "--pdeathsig", "KILL"]
    frame = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
    package = Path(__file__).parent
    with (folder / "keeper.log").open("wb") as log:
        process = subprocess.Popen(
            [*bound, *frame, sys.executable, "-m", f"{package.name}.keeper", str(descriptor)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=(descriptor, lock),
            # Ctrl-C is for the tests, which end the cluster in their own order.
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(package.parent)},
        )
    os.close(descriptor)
    deadline = time.monotonic() + 10
    while not (children := psutil.Process(process.pid).children()):
        if process.poll() is not None or time.monotonic() > deadline:
            raise ClusterError(f"namespaces cannot be made here: {(folder / 'keeper.log').read_text().strip()}")
        time.sleep(0.01)
    return process, children[0].pid


def _wait_until_ready(frame: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not (folder / READY).exists():
        if frame.poll() is not None:
            failed = folder / FAILED
            reason = failed if failed.exists() else folder / "keeper.log"
            raise ClusterError(f"the test cluster did not start: {reason.read_text().strip()}")
        if time.monotonic() > deadline:
            raise ClusterError(f"the test cluster did not start within {_START_SECONDS} s")
        time.sleep(0.05)
