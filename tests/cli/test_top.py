"""`trainchart top` against a small API: the metrics API, launchers that may not be asked, and their answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import trainchart.actions.top as top
from tests.cli.test_releases import run_to
from tests.small_cluster.cluster_objects import NAMESPACE, make_pod, make_pods, make_set, make_sets, unschedulable
from tests.small_cluster.small_api import METRICS, SmallApi, serve_small_api
from trainchart.cli.app import app
from trainchart.errors import Unreachable

GIBIBYTE = 1 << 30
PORT_FORWARDS = "portforward"


@pytest.fixture
def api() -> Iterator[SmallApi]:
    """A cluster with exp1, which runs, and without a metrics API."""
    with serve_small_api() as server:
        server.objects = {"statefulsets": make_sets(), "pods": make_pods()}
        yield server


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What launchers tell: pod → list of answers, of which the last stays."""
    answers: dict[str, Any] = {}

    def read(_: object, namespace: str, pod: str, port: int, path: str) -> bytes:
        assert (namespace, port, path) == (NAMESPACE, 2223, "/status?use")
        uses = answers.get(pod, [Unreachable("no answer within 4 seconds")])
        use = uses.pop(0) if len(uses) > 1 else uses[0]
        if isinstance(use, Exception):
            raise use
        return json.dumps({"use": use}).encode()

    monkeypatch.setattr(top, "read_pod_page", read)
    monkeypatch.setattr(top, "_SECOND_LOOK_SECONDS", 0.0)
    return answers


def call(api: SmallApi, folder: Path, *arguments: str) -> str:
    environment = {"KUBECONFIG": str(api.write_kubeconfig(folder / "kubeconfig"))}
    done = CliRunner().invoke(app, ("top", *arguments), env=environment, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def make_metrics(task: str, cpu: str, memory: str) -> dict[str, Any]:
    metadata = {"name": f"exp1-mnist-{task}", "namespace": NAMESPACE}
    return {"metadata": metadata, "containers": [{"usage": {"cpu": cpu, "memory": memory}}]}


def test_top_shows_use_beside_requests(api: SmallApi, told: dict[str, Any], tmp_path: Path) -> None:
    api.objects[METRICS] = [make_metrics(task, "1500m", "3Gi") for task in ("chief-0", "worker-0", "ps-0")]
    gpu = {"memoryBytes": 5 * GIBIBYTE, "memoryTotalBytes": 16 * GIBIBYTE, "utilization": 7}
    told["exp1-mnist-worker-0"] = [{"cpu": 9.0, "gpus": [gpu]}]
    told["exp1-mnist-worker-1"] = [{"memoryBytes": GIBIBYTE}, {"cpu": 0.25, "memoryBytes": GIBIBYTE}]
    heading, chief, _, worker0, worker1, note, _ = call(api, tmp_path).splitlines()
    assert heading.split() == ["POD", "ROLE", "CPU", "CPU-REQUEST", "MEMORY", "MEMORY-LIMIT", "GPU-USE", "GPUS"]
    assert chief.endswith(" -") and chief.split()[:4] == ["exp1-mnist-chief-0", "chief", "1.50", "2.00"]
    assert worker0.split()[2:8] == ["1.50", "2.00", "3.0", "GiB", "8.0", "GiB"], "the metrics API comes first"
    assert worker0.endswith("7 % 5.0 GiB/16.0 GiB  1 nvidia.com/gpu")
    assert worker1.split()[1:5] == ["worker", "0.25", "2.00", "1.0"]
    assert worker1.split()[-3:] == ["-", "1", "nvidia.com/gpu"]
    assert note == (
        "note: CPU and memory from the metrics API (all containers of a pod) and the pods' launchers "
        "(the training container alone); GPUs from the pods' launchers"
    )
    assert [request for request in api.requests if "metrics" in request] == [
        f"/apis/metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/pods?limit=500"
    ]


def test_top_prints_plain_keys_as_json(api: SmallApi, told: dict[str, Any], tmp_path: Path) -> None:
    told["exp1-mnist-chief-0"] = [{"cpu": 0.5, "memoryBytes": 7}]
    document = json.loads(call(api, tmp_path, "exp1", "--format", "json"))
    chief = document["pods"][0]
    assert chief == {
        "namespace": NAMESPACE,
        "release": "exp1",
        "model": "mnist",
        "pod": "exp1-mnist-chief-0",
        "role": "chief",
        "state": "Running",
        "node": "node1",
        "source": "launcher",
        "cpu": 0.5,
        "cpuRequest": 2.0,
        "memoryBytes": 7,
        "memoryLimitBytes": 8.0 * GIBIBYTE,
        "gpuUse": [],
        "gpus": {},
    }
    assert [pod["cpu"] for pod in document["pods"]] == [0.5, None, None, None]
    assert "this cluster has no working metrics API (metrics-server provides one)" in document["notes"]
    assert "exp1-mnist-ps-0: no answer within 4 seconds" in document["notes"]


def test_top_says_that_launchers_may_not_be_asked(api: SmallApi, tmp_path: Path) -> None:
    api.refused[PORT_FORWARDS] = 403
    done = run_to(api, tmp_path, "top")
    assert (done.returncode, done.stderr) == (0, "")
    *_, first, second = done.stdout.splitlines()
    assert first == "note: this cluster has no working metrics API (metrics-server provides one)"
    assert second.startswith(f"note: launchers in {NAMESPACE} cannot be queried: ")
    shown = done.stdout.splitlines()[1].split()
    assert shown == ["exp1-mnist-chief-0", "chief", "-", "2.00", "-", "8.0", "GiB", "-", "-"]


def test_top_of_hostile_answers_stays_a_table(api: SmallApi, told: dict[str, Any], tmp_path: Path) -> None:
    api.objects[METRICS] = [make_metrics("chief-0", "\x1b[31m9", "9" * 5000), {"metadata": 5}]
    told["exp1-mnist-chief-0"] = [{"cpu": "\x1b[2J", "gpus": [{"utilization": "\x1b"}] * 1000}]
    told["exp1-mnist-ps-0"] = [Unreachable("\x1b[2Jbad\nnews")]
    shown = call(api, tmp_path)
    assert "\x1b" not in shown
    assert shown.splitlines()[1].split()[:4] == ["exp1-mnist-chief-0", "chief", "-", "2.00"]


def test_top_shows_waiting_pods_and_no_ended_ones(api: SmallApi, told: dict[str, Any], tmp_path: Path) -> None:
    api.objects["statefulsets"].append(make_set("worker", 1, release="waits"))
    api.objects["pods"].append(make_pod("worker-0", node="", release="waits", conditions=[unschedulable()]))
    api.objects["pods"][0]["status"]["phase"] = "Succeeded"
    shown = call(api, tmp_path, "-A")
    assert shown.splitlines()[0].startswith("NAMESPACE  POD")
    assert "waits-mnist-worker-0" in shown and "chief-0" not in shown
    assert "waits-mnist-worker-0:" not in shown, "a pod that does not run is not asked"
    only = call(api, tmp_path, "waits", "waits", "-A")
    assert "waits-mnist-worker-0" in only and "exp1" not in only


@pytest.mark.parametrize("options", [(), ("-A",)])
def test_top_of_an_unknown_release_fails_as_status(api: SmallApi, tmp_path: Path, options: tuple[str, ...]) -> None:
    done = run_to(api, tmp_path, "top", "exp9", *options, "--format", "json")
    assert (done.returncode, done.stdout) == (9, "")
    assert json.loads(done.stderr)["error"] == "NotFound"


def test_top_of_an_empty_namespace_is_no_error(api: SmallApi, tmp_path: Path) -> None:
    api.objects = {}
    done = run_to(api, tmp_path, "top")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no training pods here; try -A\n")
    assert json.loads(run_to(api, tmp_path, "top", "--format=json").stdout) == {"pods": [], "notes": []}


def test_top_says_what_a_user_may_not_list(api: SmallApi, tmp_path: Path) -> None:
    api.refused["pods"] = 403
    done = run_to(api, tmp_path, "top")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "note: exp1/mnist: could not read pods (forbidden)\n"


def test_top_says_why_gpu_use_is_missing(api: SmallApi, told: dict[str, Any], tmp_path: Path) -> None:
    told["exp1-mnist-worker-0"] = [{"cpu": 1.0}]
    assert "note: some launchers report no GPUs: the training image has no nvidia-ml-py" in call(api, tmp_path)
    told["exp1-mnist-worker-0"] = [{"cpu": 1.0, "gpus": [{"utilization": 5}]}]
    assert "report no GPUs" not in call(api, tmp_path)


def test_pods_beyond_the_time_limit_are_not_asked(
    api: SmallApi, told: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(top, "_ASK_SECONDS", -1.0)
    assert call(api, tmp_path).count("some pods were not queried") == 1
