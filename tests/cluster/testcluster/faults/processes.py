"""Kill processes of containers, and let containers run out of memory; Kubernetes repairs both by itself.

Acts on processes of the machine, where those of a cluster are visible too; numbers are the machine's, not the pod's.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import psutil
from lightkube.resources.core_v1 import Pod

from .. import cgroups
from .site import Site

_FIRST_TO_DIE, _NEVER_TO_DIE = 1000, -1000
"""Values of oom_score_adj: the two ends. The eater has one between.

What the eater holds is freed only once it has quite ended, later than the kernel waits after it has killed it; of all
that could be killed next, the container's own processes would be the first.
"""

_EAT = """
import os, pathlib, sys
group, victim, limit = pathlib.Path(sys.argv[1]), pathlib.Path("/proc", sys.argv[2], "stat"), int(sys.argv[3])
pathlib.Path("/proc/self/oom_score_adj").write_text("500")
(group / "cgroup.procs").write_text(str(os.getpid()))
memory, bite = os.memfd_create("eaten"), bytes(64 << 10)
for _ in range(2 * limit // len(bite)):
    try:
        state = victim.read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        sys.exit()
    if state in "ZX":
        sys.exit()
    os.write(memory, bite)
sys.exit("twice the limit is eaten and nobody has died")
"""
"""Eats in small bites and looks after each: the end of a small victim frees little, and nobody else shall die.

What it eats is a file in memory, which counts for the container but not as the eater's own, so that it is not taken
for the culprit.
"""


class ProcessNotFound(Exception):
    """The container does not run, or has no such process."""


class NoMemoryLimit(Exception):
    """The container may use all memory of the machine."""


class Victim(Enum):
    """Which processes of a container."""

    LAUNCHER = "launcher"
    """The container's first process."""
    TRAINING = "training"
    """The children of the first process."""
    EVERY = "every"


@dataclass(frozen=True)
class Container:
    """A container of a pod."""

    namespace: str
    pod: str
    name: str | None = None
    """None means the pod's first."""


def find_processes(site: Site, container: Container, victim: Victim) -> list[psutil.Process]:
    """Return running processes of a container; ProcessNotFound where there are none."""
    pod = site.access.client().get(Pod, container.pod, namespace=container.namespace)
    assert pod.spec is not None
    assert pod.status is not None
    name = container.name or pod.spec.containers[0].name
    status = next((s for s in pod.status.containerStatuses or [] if s.name == name), None)
    parents: dict[psutil.Process, int] = {}
    if status and status.containerID:
        node = next(node for node in site.cluster.config.nodes if node.name == pod.spec.nodeName)
        identity = status.containerID.rpartition("/")[2]
        for pid in cgroups.read_processes(site.cluster.config.cgroup(node), identity):
            # It may end while it is looked at.
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                parents[process] = process.ppid()
    own = {process.pid for process in parents}
    first = {process.pid for process, parent in parents.items() if parent not in own}
    chosen = {
        Victim.LAUNCHER: [process for process in parents if process.pid in first],
        Victim.TRAINING: [process for process, parent in parents.items() if parent in first],
        Victim.EVERY: list(parents),
    }
    found = chosen[victim]
    if not found:
        raise ProcessNotFound(f"{container} has no process {victim.value!r}; its status: {status and status.to_dict()}")
    return found


def kill_process(
    site: Site, container: Container, victim: Victim = Victim.TRAINING, number: int = signal.SIGKILL
) -> None:
    """Send a signal to processes of a container."""
    for process in find_processes(site, container, victim):
        # The end of one may be the end of another.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def exceed_memory(site: Site, container: Container, victim: Victim = Victim.TRAINING) -> None:
    """Fill a container's memory up to its limit until the kernel's out-of-memory killer takes the victim.

    Where the victim is not the first process, the container lives on, as it does when a real training grows too big;
    on cgroup v2, the kubelet has the kernel kill the whole container.
    """
    victims = find_processes(site, container, victim)
    group, limit = _find_memory_group(victims[0].pid)
    if limit > psutil.virtual_memory().total:
        raise NoMemoryLimit(f"{container} has no memory limit")
    scores = {
        process: _set_score(process, _FIRST_TO_DIE if process in victims else _NEVER_TO_DIE)
        for process in find_processes(site, container, Victim.EVERY)
    }
    argv = [sys.executable, "-S", "-c", _EAT, str(group), str(victims[0].pid), str(limit)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    for process, score in scores.items():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            _set_score(process, score)
    # The eater may be next, when others need memory while it still holds all there is; or go with the container.
    if done.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"cannot fill the memory of {container}: {done.stderr.strip()}")


def _set_score(process: psutil.Process, score: int) -> int:
    """Set which process the kernel kills first when memory runs out, and return what it was."""
    file = Path(f"/proc/{process.pid}/oom_score_adj")
    old = int(file.read_text())
    file.write_text(str(score))
    return old


def _find_memory_group(pid: int) -> tuple[Path, int]:
    """Return the folder of a process' memory cgroup and its limit in bytes."""
    root = Path("/sys/fs/cgroup")
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if controllers == "memory":
            folder = root / "memory" / path.lstrip("/")
            return folder, int((folder / "memory.limit_in_bytes").read_text())
        if number == "0" and (root / path.lstrip("/") / "memory.max").exists():
            folder = root / path.lstrip("/")
            text = (folder / "memory.max").read_text().strip()
            return folder, sys.maxsize if text == "max" else int(text)
    raise ProcessNotFound(f"process {pid} is in no memory cgroup")
