"""What fails first is named: its pod, its cause and its own words, for every cause that can be brought about here.

All runs fail side by side, in one namespace. Where a group trains, its other tasks fail within 0.2 s of the culprit
with the error that TensorFlow raises for a lost peer, and their clocks are 5 s slow: by these they failed first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.releases import PROJECT, Release, digits_values, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED, TINY, read_replicas, training_pods, wait_for_job, wait_for_phase

pytestmark = pytest.mark.cluster

GROUP = """
import argparse, errno, os, socket, sys, time
folder, task = os.environ["TRAINCHART_CHECKPOINTS_DIR"], os.environ["TASK_TYPE"]
class UnavailableError(Exception):
    __module__ = "tensorflow.python.framework.errors_impl"
def is_there(name):
    return os.path.exists(folder + "/" + name)
def leave(name):
    open(folder + "/" + name, "w").close()
if task == sys.argv[1]:
    while not all(is_there(peer) for peer in {"chief", "worker", "ps"} - {task}):
        time.sleep(0.05)
    leave("failed")
    exec(sys.argv[2])
else:
    leave(task)
    while not is_there("failed"):
        time.sleep(0.05)
    raise UnavailableError("failed to connect to all addresses; last error: Connection refused")
"""
"""Stands in for every task of a group; its arguments are the culprit's role and what that does once all are there."""
SLOW_CLOCK = """
import time
def behind(right=time.time):
    return right() - 5
time.time = behind
"""
"""Python's start-up runs it in launcher and program."""
SLOW_CLOCK_FOLDER = "/slow-clock"
SLEEP = ["python3", "-c", "import signal; signal.pause()"]
BUSY = ["python3", "-c", "while True: pass"]
ROOMY = {"requests.cpu": "64", "requests.memory": "64Gi", "requests.nvidia.com/gpu": "1k", "pods": "200"}


@dataclass(frozen=True)
class Case:
    """A way to fail, and what the record must say about it."""

    cause: str
    words: str
    """A pattern of the verdict's error: the program's own words, or Kubernetes'."""
    program: str = ""
    """What the culprit of a group does; empty for a release of one pod, which never trains."""
    culprit: str = "worker"
    values: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int | None = None
    is_missing: bool = False
    """Whether no pod of the culprit's name ever had a node."""


def worker(**settings: Any) -> dict[str, Any]:
    return {"roles": {"worker": settings}}


def make_init(command: str) -> dict[str, Any]:
    return {
        "name": "fetch",
        "image": f"{REGISTRY_HOST}/ml/digits:1.0.0",
        "command": ["sh", "-c", command],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "64Mi"}},
    }


CASES = {
    # Those that wait for a deadline come first, and wait while the others are installed.
    "throttled": Case(
        "active-deadline",
        r"^not finished after 120 s; throttled-digits-worker-0 was .*: its CPU limit is 20m \[cpu-throttled\]$",
        values={"run": {"activeDeadline": 120}, **worker(command=BUSY, cpu="20m", cpuLimit="")},
    ),
    "deadline": Case(
        "active-deadline",
        "^not finished after 30 s$",
        "time.sleep(600)",
        culprit="chief",
        values={"run": {"activeDeadline": 30}},
    ),
    "unschedulable": Case(
        "unschedulable", "Insufficient nvidia.com/gpu", values=worker(command=SLEEP, gpus=64), is_missing=True
    ),
    "image": Case("image-pull", "ml/digits:none", values={"image": {"tag": "none"}}),
    "secret": Case(
        "config-missing",
        'secret "bucket" not found',
        values=worker(command=SLEEP, envFrom=[{"secretRef": {"name": "bucket"}}]),
    ),
    "init": Case(
        "init-failed",
        "init container fetch ended with exit code 3: ",
        values=worker(
            command=SLEEP,
            initContainers=[make_init("exit 3")],
        ),
    ),
    "init-waits": Case(
        "start-deadline",
        r"^its init container fetch still ran, since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
        values=worker(command=SLEEP, initContainers=[make_init("exec sleep 600")]),
    ),
    "quota": Case(
        "quota-exceeded",
        "exceeded quota: tests, requested: requests.memory=900Gi",
        values=worker(command=SLEEP, memory="900Gi"),
        is_missing=True,
    ),
    "pod-security": Case(
        "admission-refused",
        'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
        values=worker(command=SLEEP, containerSecurityContext={"allowPrivilegeEscalation": True}),
        is_missing=True,
    ),
    "volume": Case(
        "storage-class-missing",
        'storageclass.storage.k8s.io "fast" not found',
        values=merge_values(worker(command=SLEEP), {"volumes": {"checkpoints": {"storageClass": "fast"}}}),
        is_missing=True,
    ),
    "exception": Case("program-error", "^ValueError: no data today$", "raise ValueError('no data today')", exit_code=1),
    "exit-code": Case(
        "program-exit",
        "^error: 3 shards are bad$",
        "print('error: 3 shards are bad'); sys.exit(3)",
        culprit="ps",
        exit_code=3,
    ),
    "memory": Case(
        "out-of-memory",
        "killed the program for memory; the container's limit is 64 MiB|^OOMKilled$",
        "hoard = [bytes(1 << 20) + bytes([1]) * (1 << 20) for _ in range(1000)]",
        exit_code=137,
    ),
    "segfault": Case(
        "crashed",
        "^fatal: illegal instruction in libdevice$",
        "print('fatal: illegal instruction in libdevice', flush=True); os.kill(os.getpid(), 11)",
        exit_code=139,
    ),
    "name-unresolved": Case(
        "peer-unresolvable",
        r"^socket\.gaierror: .*\(\d restarts without a step\)$",
        "socket.getaddrinfo('storage.invalid', 80)",
        culprit="chief",
    ),
    "module-missing": Case(
        "module-missing",
        "^ModuleNotFoundError: No module named 'horovod'$",
        "import horovod",
        exit_code=1,
    ),
    "syntax": Case("syntax-error", "^SyntaxError: ", "compile('def', 'train.py', 'exec')", exit_code=1),
    "program-missing": Case(
        "program-missing", "no-such-program", values=worker(command=["no-such-program"]), exit_code=127
    ),
    "bad-arguments": Case(
        "bad-arguments",
        "^train: error: argument --steps: invalid int value: 'many'$",
        "parser = argparse.ArgumentParser('train'); parser.add_argument('--steps', type=int);"
        "parser.parse_args(['--steps=many'])",
        exit_code=2,
    ),
    "disk-full": Case(
        "disk-full",
        r"^OSError: \[Errno 28\] No space left on device: '/checkpoints/model'$",
        "raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), '/checkpoints/model')",
        culprit="chief",
        exit_code=1,
    ),
    "permission": Case(
        "permission-denied",
        r"^PermissionError: \[Errno 13\] Permission denied: '/etc/shadow' \(/etc/shadow belongs to 0:",
        "open('/etc/shadow')",
        exit_code=1,
    ),
    "port-in-use": Case(
        "port-in-use",
        r"^OSError: \[Errno 98\] Address already in use",
        "first = socket.create_server(('', 2222)); socket.create_server(('', 2222))",
        culprit="ps",
        exit_code=1,
    ),
    "no-progress": Case(
        "no-progress",
        r"^\(the program waited in <module> \(<string>:1\)\)$",
        "print('step 7', flush=True); leave('../run/trainchart/progress.json'); time.sleep(600)",
        culprit="chief",
        values={"run": {"noProgressTimeout": 1}},
        exit_code=143,
    ),
    "killed": Case(
        "killed",
        r"worker-0: attempt 1 ended after .* killed \(signal 9\)",
        "time.sleep(0.2); os.kill(os.getppid(), 9)",
        values={"run": {"maxRestarts": 1}},
        exit_code=137,
    ),
    "probe": Case(
        "probe-failed",
        "stopped the container, but not its pod",
        "time.sleep(600)",
        values=merge_values(
            {"run": {"maxRestarts": 0}},
            # Once the launcher listens for signals, on a machine that starts all these releases at a time.
            worker(
                livenessProbe={
                    "exec": {"command": ["false"]},
                    "initialDelaySeconds": 10,
                    "periodSeconds": 1,
                    "failureThreshold": 2,
                }
            ),
        ),
        exit_code=143,
    ),
}


def plan_release(access: Access, namespace: str, name: str, case: Case) -> Release:
    run = {"maxRestarts": 0, "startDeadline": "30m" if case.program or case.exit_code else 45}
    if not case.program:
        values = merge_values(digits_values(), merge_values(CONTROLLED, {"run": run, **worker(**TINY)}))
        return Release(access, namespace, name, PROJECT / "charts" / "digits", merge_values(values, case.values))
    clock = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{name}-clock"}}
    behind = {
        "env": {"PYTHONPATH": SLOW_CLOCK_FOLDER},
        "extraVolumes": [{"name": "clock", "configMap": {"name": f"{name}-clock"}}],
        "extraVolumeMounts": [{"name": "clock", "mountPath": SLOW_CLOCK_FOLDER}],
    }
    stop = {"saveWaitSeconds": 0, "stopGraceSeconds": 5}
    changes = {
        "command": ["python3", "-c", GROUP, case.culprit, case.program],
        "extraManifests": [{**clock, "data": {"sitecustomize.py": SLOW_CLOCK}}],
        "run": run,
        "roles": {
            role: {**TINY, **stop, **({} if role == case.culprit else behind)} for role in ("chief", "worker", "ps")
        },
    }
    changes["roles"]["worker"]["replicas"] = 1
    changes["roles"]["evaluator"] = {"replicas": 0}
    values = merge_values(merge_values(mnist_values(), CONTROLLED), changes)
    return Release(access, namespace, name, PROJECT / "charts" / "mnist", merge_values(values, case.values))


@pytest.fixture(scope="module")
def releases(admin: Access, module_namespace: str) -> Iterator[dict[str, Release]]:
    """Case → its release; all are on their way to fail."""
    patch = json.dumps({"spec": {"hard": ROOMY}})
    admin.kubectl("patch", "resourcequota", "tests", "-n", module_namespace, "--type=merge", f"--patch={patch}")
    releases = {name: plan_release(admin, module_namespace, name, case) for name, case in CASES.items()}
    for release in releases.values():
        release.install()
    yield releases


@pytest.mark.parametrize("release_name", CASES)
def test_the_first_failure_is_named(releases: dict[str, Release], release_name: str) -> None:
    case, release = CASES[release_name], releases[release_name]
    state = wait_for_phase(release, "Failed", deadline_seconds=180)
    verdict = state["verdict"]
    told = json.dumps(verdict, indent=1)

    assert verdict["cause"] == case.cause, told
    assert verdict["pod"] == f"{release_name}-{release.chart.name}-{case.culprit}-0", told
    assert re.search(case.words, verdict["error"]), told
    assert "UnavailableError" not in told
    assert verdict["exitCode"] == case.exit_code, told
    assert verdict["sentence"], told
    assert verdict["hint"], told
    assert bool(re.fullmatch(r"node\d", verdict["node"])) == (not case.is_missing), told
    client = release.access.client()
    assert set(read_replicas(release, client).values()) == {0}
    assert not training_pods(release, client)
    wait_for_job(release, "Failed")
