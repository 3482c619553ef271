"""Real processes to look at: Prometheus with the rules of the family monitoring, run controllers and launchers.

Everything listens on 127.0.0.1 and ends with the test.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.controller.fake_api import NAMESPACE, RUN_SETTINGS, STATE_NAME, FakeApi
from tests.support.free_ports import find_free_port
from trainchart_launcher.bundle import build_controller, build_installed_launcher
from trainchart_runtime import contract

SOURCES = Path(__file__).parents[2] / "training-images"
ROLES = {"chief": 1, "worker": 2, "ps": 1}
DEADLINE_SECONDS = 60.0
"""Of every wait for a condition; only a failing test waits so long."""


def wait_until(condition: Callable[[], Any], what: Callable[[], object]) -> Any:
    """Return the first true result of `condition`."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    raise AssertionError(f"not within {DEADLINE_SECONDS} s: {what()}")


def find_debian_program(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed (Debian and Ubuntu: apt-get install prometheus)")
    return found


@pytest.fixture(scope="session")
def promtool() -> str:
    return find_debian_program("promtool")


class Processes:
    """The processes of a test; `close` ends them and what they have started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[bytes]] = []
        self._launcher, self._controller = folder / "launcher.pyz", folder / "controller.pyz"
        self._launcher.write_bytes(build_installed_launcher())
        self._controller.write_bytes(build_controller(SOURCES / "controller", SOURCES / "runtime"))

    def start(self, command: Sequence[str], environ: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        with log.open("ab") as file:
            process = subprocess.Popen(command, env=environ, stdout=file, stderr=file, cwd=log.parent)
        self._started.append(process)
        return process

    def folder_of(self, release: str) -> Path:
        """Return where the program of a launcher runs."""
        return self._folder / f"{release}-pod"

    def start_launcher(self, release: str, port: int, program: str, max_restarts: int = 0) -> subprocess.Popen[bytes]:
        """Start the launcher of the only worker of `release`; again in the same pod if it was started before."""
        folder = self.folder_of(release)
        folder.mkdir(exist_ok=True)
        roles = {"worker": {"name": f"{release}-worker", "replicas": 1}}
        cluster = {"strategy": "single", "service": release, "port": 2222, "statusPort": 2223, "roles": roles}
        (folder / "cluster.json").write_text(json.dumps(cluster))
        environ = {
            "PATH": os.environ["PATH"],
            contract.TASK_TYPE: "worker",
            contract.POD_NAME: f"{release}-worker-0",
            contract.CLUSTER_FILE: str(folder / "cluster.json"),
            contract.STATE_DIR: str(folder / "state"),
            contract.TERMINATION_FILE: str(folder / "termination"),
            contract.RUN_ID: "run-1",
            contract.MAX_RESTARTS: str(max_restarts),
            contract.STOP_GRACE_SECONDS: "10",
            contract.ADDRESSES: json.dumps({f"{release}-worker-0.{release}:2223": f"127.0.0.1:{port}"}),
        }
        command = [sys.executable, str(self._launcher), "--", sys.executable, "-S", "-c", program]
        return self.start(command, environ, folder / "log")

    def start_controller(self, release: str, port: int, api: FakeApi) -> subprocess.Popen[bytes]:
        """Start the run controller of `release`, for the objects that `api` holds."""
        folder = api.folder
        roles = {role: {"name": f"exp1-mnist-{role}", "replicas": number} for role, number in ROLES.items()}
        cluster = {"strategy": "parameter-server", "service": "exp1", "port": 2222, "statusPort": 2223, "roles": roles}
        (folder / "cluster.json").write_text(json.dumps(cluster))
        environ = {
            "PATH": os.environ["PATH"],
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(api.port),
            contract.SERVICE_ACCOUNT_DIR: str(folder),
            contract.RELEASE: release,
            contract.NAMESPACE: NAMESPACE,
            contract.POD_NAME: f"{release}-mnist-controller-x7k2p",
            contract.RUN_ID: "run-1",
            contract.PLAN_ID: "plan-1",
            contract.STATE_NAME: STATE_NAME,
            contract.CLUSTER_FILE: str(folder / "cluster.json"),
            contract.RUN_SETTINGS: json.dumps(RUN_SETTINGS),
            contract.METRICS_ADDRESS: f"127.0.0.1:{port}",
        }
        return self.start([sys.executable, str(self._controller)], environ, folder / "log")

    def close(self) -> None:
        for process in self._started:
            family = []
            if process.poll() is None:
                # Stopped first, or a launcher would start its program again meanwhile.
                process.send_signal(signal.SIGSTOP)
                family = psutil.Process(process.pid).children(recursive=True)
                process.kill()
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
            process.wait()


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    found = Processes(tmp_path_factory.mktemp("processes"))
    yield found
    found.close()


class Inbox:
    """A server that keeps what is posted to it: (path, JSON document)."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, Any]] = []
        messages = self.messages

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                messages.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def inbox() -> Iterator[Inbox]:
    """Where Alertmanager sends what it is to send."""
    found = Inbox()
    yield found
    found.close()


@pytest.fixture(scope="module")
def start_alertmanager(tmp_path_factory: pytest.TempPathFactory, processes: Processes) -> Callable[[str], str]:
    """Return a function that starts Alertmanager, waits until it is ready, and returns its address."""
    program = find_debian_program("prometheus-alertmanager")

    def start(configuration: str) -> str:
        folder = tmp_path_factory.mktemp("alertmanager")
        (folder / "alertmanager.yaml").write_text(configuration)
        address = f"127.0.0.1:{find_free_port()}"
        command = [
            program,
            f"--config.file={folder / 'alertmanager.yaml'}",
            f"--storage.path={folder / 'data'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",
        ]
        process = processes.start(command, {"PATH": os.environ["PATH"]}, folder / "log")

        def is_ready() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/-/ready", timeout=5):
                return True
            return process.poll() is not None

        wait_until(is_ready, (folder / "log").read_text)
        assert process.poll() is None, (folder / "log").read_text()
        return address

    return start


class Prometheus:
    """A running Prometheus."""

    wait_until = staticmethod(wait_until)

    def __init__(self, port: int) -> None:
        self._port = port
        self.fired: dict[tuple[str, str], dict[str, str]] = {}
        """(alert, release) of all that `look` has seen firing, with their latest annotations."""

    def ask(self, path: str, **query: str) -> Any:
        """Return the data of an answer of the HTTP API; None while it does not answer."""
        url = f"http://127.0.0.1:{self._port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def wait_for_metric(self, query: str) -> None:
        """Wait until `query` has a result."""
        self.wait_until(lambda: (self.ask("query", query=query) or {}).get("result"), lambda: self.ask("targets"))

    def look(self) -> set[tuple[str, str]]:
        """Return all alerts that have been seen firing so far."""
        for alert in (self.ask("alerts") or {}).get("alerts", ()):
            if alert["state"] == "firing":
                self.fired[alert["labels"]["alertname"], alert["labels"]["release"]] = alert["annotations"]
        return set(self.fired)


@pytest.fixture(scope="module")
def start_prometheus(tmp_path_factory: pytest.TempPathFactory, processes: Processes) -> Callable[[str], Prometheus]:
    """Return a function that starts Prometheus with a configuration, and waits until it is ready."""
    program = find_debian_program("prometheus")

    def start(configuration: str) -> Prometheus:
        folder = tmp_path_factory.mktemp("prometheus")
        (folder / "prometheus.yaml").write_text(configuration)
        port = find_free_port()
        command = [
            program,
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--log.level=warn",
        ]
        process = processes.start(command, {"PATH": os.environ["PATH"]}, folder / "log")
        found = Prometheus(port)
        wait_until(lambda: process.poll() is not None or found.ask("status/runtimeinfo"), (folder / "log").read_text)
        assert process.poll() is None, (folder / "log").read_text()
        return found

    return start
