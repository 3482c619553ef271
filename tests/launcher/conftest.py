"""A pod without Kubernetes: the launcher's zipapp as a real process, with the files and variables a chart gives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from tests.support.free_ports import find_free_port
from trainchart_launcher import cgroup
from trainchart_launcher.bundle import build_installed_launcher
from trainchart_runtime import contract
from trainchart_runtime.termination import parse_termination

DEADLINE_SECONDS = 60.0
"""Of every wait for a condition; only a failing test waits so long."""


def wait_until(condition, what):
    """Return the first true result of `condition`."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what}")


def is_alive(pid):
    """Say whether a process runs; a zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass
class Pod:
    """One pod of a two-worker release; a launcher may be started in it again and again, as the kubelet does."""

    folder: Path
    launcher: Path
    python: str = sys.executable
    prefix: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    strategy: str = "between-graph-async"
    variables: dict[str, str] = field(default_factory=dict)
    started: list[subprocess.Popen] = field(default_factory=list)

    def __post_init__(self):
        self.status_port = find_free_port()
        self.ps_port = find_free_port()
        self.variables = {
            contract.TASK_TYPE: "worker",
            contract.POD_NAME: "exp-worker-1",
            contract.CLUSTER_FILE: str(self.folder / "cluster.json"),
            contract.STATE_DIR: str(self.folder / "state"),
            contract.TERMINATION_FILE: str(self.folder / "termination"),
            contract.RUN_ID: "run-1",
            contract.MAX_RESTARTS: "0",
            contract.STOP_GRACE_SECONDS: "10",
            contract.ADDRESSES: json.dumps(
                {
                    "exp-worker-1.exp:2223": f"127.0.0.1:{self.status_port}",
                    "exp-ps-0.exp:2222": f"127.0.0.1:{self.ps_port}",
                }
            ),
            **self.variables,
        }
        self.write_cluster()

    def write_cluster(self, **replicas):
        replicas = replicas or {"worker": 2, "ps": 1}
        roles = {role: {"name": f"exp-{role}", "replicas": number} for role, number in replicas.items()}
        document = {"strategy": self.strategy, "service": "exp", "port": 2222, "statusPort": 2223, "roles": roles}
        (self.folder / "cluster.json").write_text(json.dumps(document))

    def start(self, *command, **popen):
        """Start the launcher with `command`; a single text is a Python program."""
        if len(command) == 1:
            program = self.folder / "program.py"
            program.write_text(command[0])
            command = (self.python, str(program))
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINCHART_", "TF_"))}
        popen = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, **popen}
        argv = [*self.prefix, self.python, *self.flags, str(self.launcher), "--", *command]
        process = subprocess.Popen(argv, env={**environ, **self.variables}, **popen)
        self.started.append(process)
        return process

    def run(self, *command, **popen):
        """Run the launcher to its end and return (exit code, stdout, stderr) as text."""
        process = self.start(*command, **popen)
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
        return process.returncode, (stdout or b"").decode(), (stderr or b"").decode()

    @property
    def message(self):
        """The termination message as its reader would parse it."""
        body = (self.folder / "termination").read_bytes()
        assert len(body) <= contract.TERMINATION_MESSAGE_LIMIT
        return parse_termination(body.decode())

    def attempts(self):
        """How often the program has written a line into the file `attempts`."""
        with contextlib.suppress(FileNotFoundError):
            return len((self.folder / "attempts").read_text().splitlines())
        return 0

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.status_port}{path}", timeout=5) as answer:
            return answer.read().decode()

    def status(self, query=""):
        """Return /status, or None while nobody answers."""
        try:
            return json.loads(self.get(f"/status{query}"))
        except OSError:
            return None

    def wait_for_file(self, name):
        path = self.folder / name
        return wait_until(lambda: path.exists() and path.read_text(), f"{name} written")

    def wait_for_status(self, condition, query=""):
        """Return the first /status for which `condition` holds."""

        def look():
            status = self.status(query)
            return status if status and condition(status) else None

        return wait_until(look, "the expected status")

    def first_child_of(self, pid):
        return psutil.Process(pid).children()[0].pid

    wait = staticmethod(wait_until)
    is_alive = staticmethod(is_alive)

    @staticmethod
    def kill(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def close(self):
        """End every launcher with its program, as the end of a container would."""
        for process in self.started:
            family = []
            if process.poll() is None:
                process.send_signal(signal.SIGSTOP)  # or it would start its program again meanwhile
                family = psutil.Process(process.pid).children(recursive=True)
                process.send_signal(signal.SIGKILL)
            for member in family:
                self.kill(member.pid)
            process.communicate()


@pytest.fixture(scope="session")
def launcher(tmp_path_factory):
    path = tmp_path_factory.mktemp("image") / "launcher.pyz"
    path.write_bytes(build_installed_launcher())
    return path


@pytest.fixture
def make_pod(tmp_path, launcher):
    pods = []

    def make(**fields):
        folder = tmp_path / f"pod-{len(pods)}"
        folder.mkdir()
        pods.append(Pod(folder, launcher, **fields))
        return pods[-1]

    yield make
    for pod in pods:
        pod.close()


@pytest.fixture
def pod(make_pod):
    return make_pod()


@pytest.fixture
def files(monkeypatch):
    """The files in which a launcher of this process finds its cgroup: path → text."""
    found = {"/proc/self/cgroup": "0::/\n"}
    monkeypatch.setattr(cgroup, "_read", lambda path: found.get(path, ""))
    return found
