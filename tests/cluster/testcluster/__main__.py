"""The test cluster by hand: what `make cluster-up` and its siblings call."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import time

import psutil

from . import cluster as clusters
from . import slots
from .access import keep_direct
from .choice import Nowhere, Own
from .control import ControlError
from .images import ImageBuildError
from .ingredients import find_home, prepare_ingredients, tell
from .machine import find_choice, find_obstacle
from .programs import ProgramError, find_program


def main() -> int:
    """Do one thing and say what happened."""
    parser = argparse.ArgumentParser(prog="testcluster", description="The tests' Kubernetes, started by hand.")
    parser.add_argument("command", choices=("prepare", "up", "down", "shell", "status"))
    which = "which cluster, where several run; down: all that this checkout started if none; prepare: long, or nothing"
    parser.add_argument("name", nargs="?", help=which)
    given = parser.parse_args()
    commands = {"prepare": _prepare, "up": _up, "down": _down, "shell": _shell, "status": _status}
    try:
        return commands[given.command](given.name)
    except (clusters.ClusterError, ControlError, ProgramError, ImageBuildError, slots.NoSlotError) as error:
        print(error, file=sys.stderr)
    except PermissionError as error:
        print(f"{error}: test clusters need root", file=sys.stderr)
    return 1


def _prepare(which: str | None) -> int:
    """Build ahead what the tests need here, since that takes minutes on a new machine; `long` for the long tests."""
    for name in ("helm-3", "helm-4", "registry", *(("kueue", "metrics-server") if which == "long" else ())):
        find_program(name, tell)
    choice = find_choice(None)
    if isinstance(choice, Own):
        prepare_ingredients()
    elif isinstance(choice, Nowhere):
        print(choice.reason, file=sys.stderr)
    return 0


def _up(_: str | None) -> int:
    if obstacle := find_obstacle():
        print(obstacle, file=sys.stderr)
        return 1
    ingredients = prepare_ingredients()
    start = time.monotonic()
    print("Starting a cluster of two nodes ...", file=sys.stderr)
    cluster = clusters.start_cluster(ingredients, find_home(), detached=True)
    seconds = time.monotonic() - start
    print(f"{cluster.config.name} is up after {seconds:.1f} s; end it with: make cluster-down", file=sys.stderr)
    direct = "".join(f" {name}={shlex.quote(value)}" for name, value in _keep_direct(cluster).items())
    path = f'PATH={shlex.quote(str(cluster.programs))}:"$PATH"'
    print(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))} {path}{direct}")
    return 0


def _down(name: str | None) -> int:
    running = _started_by_hand(name)
    for cluster in running:
        cluster.stop()
        print(f"Removed {cluster.config.name}", file=sys.stderr)
    for folder in (*slots.remove_leftovers(), *slots.remove_forgotten(find_home(), psutil.boot_time())):
        print(f"Removed what was left of {folder}", file=sys.stderr)
    if name and not running:
        print(f"no cluster {name} was started by hand", file=sys.stderr)
    return int(bool(name and not running))


def _shell(name: str | None) -> int:
    running = _started_by_hand(name)
    if len(running) != 1:
        names = " or ".join(cluster.config.name for cluster in running)
        hint = f"say which: {names}" if running else "start one with: make cluster-up"
        print(f"{len(running)} clusters of this checkout are running; {hint}", file=sys.stderr)
        return 1
    cluster = running[0]
    environment = {
        **os.environ,
        **_keep_direct(cluster),
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{cluster.programs}:{os.environ['PATH']}",
        "PS1": f"({cluster.config.name}) $ ",
    }
    shell = os.environ.get("SHELL", "/bin/sh")
    print(f"kubectl and helm talk to {cluster.config.name} in this shell; leave it with exit", file=sys.stderr)
    return subprocess.run([shell], env=environment).returncode


def _status(name: str | None) -> int:
    for cluster in clusters.find_clusters():
        if name in (None, cluster.config.name):
            print(f"{cluster.config.name}: KUBECONFIG={cluster.kubeconfig} logs={cluster.folder / 'logs'}")
            cluster.check()
    return 0


def _keep_direct(cluster: clusters.Cluster) -> dict[str, str]:
    return keep_direct(os.environ, cluster.config.address)


def _started_by_hand(name: str | None) -> list[clusters.Cluster]:
    """Return those of this checkout, or the one of that name, whoever started it."""
    return [
        cluster
        for cluster in clusters.find_clusters()
        if cluster.config.name == name or (name is None and cluster.started_by == str(clusters.CHECKOUT))
    ]


if __name__ == "__main__":
    sys.exit(main())
