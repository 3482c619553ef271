"""The run controller as a process of its own, from its zipapp, against the small API server of fake_api.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.controller.fake_api import JOB_NAME, NAMESPACE, RUN_SETTINGS, STATE_NAME, FakeApi, make_pod
from trainchart_launcher.bundle import build_controller

SOURCES = Path(__file__).parents[2] / "training-images"
ROLES = {"chief": 1, "worker": 2, "ps": 1}
IMPATIENT = """\
import os, sys
from trainchart_controller.control import Controller
from trainchart_controller.pod_watch import WatchTimes
from trainchart_controller.settings import read_settings
seconds = {name: float(os.environ[name.upper()]) for name in ('silence', 'rollback')}
times = WatchTimes(**seconds, first_retry=0.02, refusal=0.5, record=0.3, objects=0.3)
code = Controller(read_settings(os.environ), times).run()
sys.stderr.flush()
os._exit(code)
"""
"""The same controller with less patience than the API servers of real clusters need."""


class ControllerProcess:
    """One controller; its log is read when it has ended."""

    def __init__(self, command: list[str], environ: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, env=environ, stderr=file, stdout=file)

    def wait(self) -> int:
        return self.process.wait(timeout=60)

    @property
    def log(self) -> str:
        return self._log.read_text()


@pytest.fixture(scope="session")
def controller_pyz(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("controller") / "controller.pyz"
    path.write_bytes(build_controller(SOURCES / "controller", SOURCES / "runtime"))
    return path


@pytest.fixture
def api(tmp_path: Path) -> Iterator[FakeApi]:
    folder = tmp_path / "service-account"
    folder.mkdir()
    server = FakeApi(folder)
    server.replicas = {f"exp1-mnist-{role}": 1 for role in ROLES}
    for role in ROLES:
        server.put_pod(make_pod(f"{role}-0"))
    with server.serve():
        yield server


@pytest.fixture
def start(api, controller_pyz: Path, tmp_path: Path):
    """Start a controller: impatient unless told otherwise, with changed variables, any number of times."""
    started = []
    roles = {role: {"name": f"exp1-mnist-{role}", "replicas": number} for role, number in ROLES.items()}
    cluster = {"strategy": "parameter-server", "service": "exp1", "port": 2222, "roles": roles}

    def start(
        python=sys.executable,
        flags=(),
        patient=False,
        wrapper=(),
        settings=RUN_SETTINGS,
        status_port=2223,
        **variables,
    ):
        (tmp_path / "cluster.json").write_text(json.dumps({**cluster, "statusPort": status_port}))
        environ = {
            "PATH": os.environ["PATH"],
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(api.port),
            "TRAINCHART_SERVICE_ACCOUNT_DIR": str(api.folder),
            "TRAINCHART_RELEASE": "exp1",
            "TRAINCHART_NAMESPACE": NAMESPACE,
            "TRAINCHART_POD_NAME": "exp1-mnist-controller-x7k2p",
            "TRAINCHART_JOB_NAME": JOB_NAME,
            "TRAINCHART_RUN_ID": "run-1",
            "TRAINCHART_PLAN_ID": "plan-1",
            "TRAINCHART_STATE_NAME": STATE_NAME,
            "TRAINCHART_CLUSTER_FILE": str(tmp_path / "cluster.json"),
            "TRAINCHART_RUN_SETTINGS": json.dumps(settings),
            "SILENCE": "100",
            "ROLLBACK": "0.5",
            **variables,
        }
        program = [str(controller_pyz)] if patient else ["-c", IMPATIENT]
        if not patient:
            environ["PYTHONPATH"] = str(controller_pyz)
        process = ControllerProcess(
            [*wrapper, python, *flags, *program], environ, tmp_path / f"controller-{len(started)}.log"
        )
        started.append(process)
        return process

    yield start
    for each in started:
        if each.process.poll() is None:
            each.process.kill()
            each.process.wait()


@pytest.fixture
def run_to_phase(api):
    """Let the missing worker come, and wait until a phase is recorded."""

    def run_to_phase(phase: str) -> None:
        api.wait_for(lambda: api.state() and api.replicas["exp1-mnist-worker"] == 2, "workers scaled")
        api.put_pod(make_pod("worker-1"))
        api.wait_for(lambda: api.state()["phase"] == phase, phase)
        api.wait_for(api.open_watches, "a watch")

    return run_to_phase
