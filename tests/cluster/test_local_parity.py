"""`trainchart run` starts what a cluster starts: for every pod, what the program itself finds is compared.

Pods and local processes run the same stand-in from the same chart and values. What may differ is listed, with reasons,
in testcluster/parity.py.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.parity import (
    ALLOWED,
    Comparison,
    Maps,
    Side,
    compare_tables,
    read_printed_addresses,
    table_of_pod,
    table_of_process,
)
from tests.cluster.testcluster.releases import PROJECT, Release, merge_values
from tests.cluster.testcluster.stand_in import Report, parse_report, plan_stand_ins, wait_for_reports

pytestmark = pytest.mark.cluster

LOCAL_SECONDS = 60
DEPLOYMENTS = [("pss", "mnist", 5), ("one", "digits", 1)]


def plan_release(access: Access, namespace: str, release: str, model: str) -> Release:
    """Plan a release with every kind of argument, variable and volume that a container can get from a chart."""
    plain = plan_stand_ins(access, namespace, release, model)
    changes = {
        "args": [
            "--job_name=$(TASK_TYPE)",
            "--ps_hosts=$(PS_HOSTS)",
            "--rate=$(TRAINCHART_HP_LEARNING_RATE)",
            "--out=/checkpoints/export",
            "--greeting=$(GREETING)",
            "--unknown=$(NOBODY)",
        ],
        "env": {
            "GREETING": "I am $(TRAINCHART_POD_NAME)",
            "NUMBER": 0.25,
            "PRICE": "$$(GREETING)",
            "EXPORT": "/checkpoints/export:/database",
            "PASSWORD": {"valueFrom": {"secretKeyRef": {"name": f"{release}-secret", "key": "password"}}},
            "A_NODE": {"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            "AN_ADDRESS": {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            "A_UID": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            "A_LIMIT": {"valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
            "STRATEGY": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['trainchart/strategy']"}}},
            "NOTE": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['note']"}}},
            "SET": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['statefulset.kubernetes.io/pod-name']"}}},
            "AN_ACCOUNT": {"valueFrom": {"fieldRef": {"fieldPath": "spec.serviceAccountName"}}},
        },
        "podAnnotations": {"note": "$(GREETING) /checkpoints"},
        # A local run allows no restarts unless it is told to.
        "run": {"maxRestarts": 3},
        "envFrom": [{"prefix": "ALL_", "configMapRef": {"name": f"{release}-settings"}}],
        "volumes": {"checkpoints": {"subPath": "runs/one"}},
        "hyperparameters": {"learningRate": 0.03125},
        "extraManifests": [
            *plain.values["extraManifests"],
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{release}-settings"},
                "data": {"COLOUR": "green", "lines.txt": "one\ntwo\n"},
            },
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": f"{release}-secret"},
                "stringData": {"password": "/checkpoints is no path in a password"},
            },
        ],
        "extraVolumes": [
            *plain.values["extraVolumes"],
            {"name": "scratch", "emptyDir": {}},
            {
                "name": "settings",
                "projected": {
                    "sources": [
                        {"configMap": {"name": f"{release}-settings", "items": [{"key": "lines.txt", "path": "a/b"}]}},
                        {"secret": {"name": f"{release}-secret"}},
                    ]
                },
            },
        ],
        "extraVolumeMounts": [
            *plain.values["extraVolumeMounts"],
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "scratch", "mountPath": "/mine", "subPathExpr": "$(TRAINCHART_POD_NAME)"},
            {"name": "settings", "mountPath": "/settings", "readOnly": True},
            {"name": "settings", "mountPath": "/etc/one-file", "subPath": "a/b"},
        ],
        "roles": {"worker": {"workingDir": "/scratch/deep/er", "env": {"NUMBER": 7}}},
    }
    return dataclasses.replace(plain, values=merge_values(plain.values, changes))


@dataclass(frozen=True)
class LocalRun:
    """What a run on this machine printed, and what its processes said."""

    plan: Mapping[str, Any]
    """From --dry-run; only its ports are not those of the run."""
    addresses: Mapping[str, str]
    reports: Mapping[str, Report]
    """Pod name → report."""

    def table(self, pod: str) -> dict[str, str]:
        planned = next(item for item in self.plan["pods"] if item["name"] == pod)
        paths = {**planned["paths"], "python3": sys.executable}
        return table_of_process(self.reports[pod], planned, self.plan["claims"], Maps(paths, self.addresses))


@dataclass(frozen=True)
class Deployment:
    """One release, in both places."""

    pods: Mapping[str, dict[str, str]]
    """Pod name → its table."""
    here: LocalRun

    def compare(self, pod: str) -> Comparison:
        return compare_tables(self.pods[pod], self.here.table(pod), ALLOWED)


@pytest.fixture(scope="module")
def deployments(
    admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Deployment]]:
    """Both releases on the cluster and here; pods start while the local ones run."""
    releases = {name: plan_release(admin, module_namespace, name, model) for name, model, _ in DEPLOYMENTS}
    for release in releases.values():
        release.install()
    here = {name: run_here(releases[name], tmp_path_factory.mktemp(name)) for name in releases}
    deployments = {}
    for name, _, count in DEPLOYMENTS:
        reports = wait_for_reports(releases[name], count)
        live = releases[name].pods(admin.client())
        tables = {pod: table_of_pod(report, live[pod]) for pod, report in reports.items()}
        deployments[name] = Deployment(tables, here[name])
    yield deployments


def run_here(release: Release, folder: Path) -> LocalRun:
    """Run a release as local processes until every one of them has said everything, then stop it."""
    values = folder / "values.json"
    values.write_text(json.dumps(release.values))
    argv = [
        *(sys.executable, "-m", "trainchart", "run", str(release.chart), "--values", str(values)),
        *("--release", release.name, "--namespace", release.namespace, "--runs-dir", str(folder)),
        *("--code", str(PROJECT / "examples" / release.chart.name)),
    ]
    # A caller whose environment is known: the last one must not reach a pod, and PYTHONPATH is for trainchart alone.
    names = ("PATH", "HOME", "PYTHONPATH")
    caller = {name: os.environ[name] for name in names if name in os.environ}
    caller |= {"LANG": "C.UTF-8", "TF_CONFIG": "{}", "STRAY": "1"}
    preview = subprocess.run([*argv, "--dry-run", "--format=json"], env=caller, capture_output=True, text=True)
    assert preview.returncode == 0, preview.stderr
    plan = json.loads(preview.stdout)
    printed = folder / "printed.txt"
    with printed.open("w") as output:
        process = subprocess.Popen(argv, env=caller, stdout=output, stderr=output)
        try:
            reports = wait_for_logs(process, plan, printed)
        finally:
            process.terminate()
            process.wait(LOCAL_SECONDS)
    return LocalRun(plan, read_printed_addresses(printed.read_text().splitlines()), reports)


def wait_for_logs(process: subprocess.Popen[bytes], plan: Mapping[str, Any], printed: Path) -> dict[str, Report]:
    deadline = time.monotonic() + LOCAL_SECONDS
    while True:
        logs = {pod["name"]: Path(pod["log"]) for pod in plan["pods"]}
        found = {name: parse_report(log.read_text().splitlines()) for name, log in logs.items() if log.exists()}
        if len(found) == len(logs) and all(report.is_complete for report in found.values()):
            return found
        assert process.poll() is None, f"the run ended early:\n{printed.read_text()[-4000:]}"
        assert time.monotonic() < deadline, f"the local run is not complete:\n{printed.read_text()[-4000:]}"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("name", "pod"),
    [
        *(("pss", f"pss-mnist-{task}") for task in ("chief-0", "worker-0", "worker-1", "ps-0", "evaluator-0")),
        ("one", "one-digits-worker-0"),
    ],
)
def test_a_local_process_is_what_the_pod_is(deployments: dict[str, Deployment], name: str, pod: str) -> None:
    comparison = deployments[name].compare(pod)

    assert not comparison.unexpected, f"{pod} (-) and its local process (+):\n{comparison.unexpected}"


def test_the_pods_are_the_same(deployments: dict[str, Deployment]) -> None:
    for deployment in deployments.values():
        assert set(deployment.pods) == set(deployment.here.reports)


def test_tf_config_is_equal_but_for_the_printed_addresses(deployments: dict[str, Deployment]) -> None:
    deployment = deployments["pss"]
    for pod, table in deployment.pods.items():
        in_pod = json.loads(table["program.environment.TF_CONFIG"])
        here = deployment.here.reports[pod].tf_config
        assert here != in_pod
        addresses = deployment.here.addresses
        translated = {task: [addresses[host] for host in hosts] for task, hosts in in_pod["cluster"].items()}
        assert here == {"cluster": translated, "task": in_pod["task"]}


def test_what_was_compared_is_what_containers_can_get(deployments: dict[str, Deployment]) -> None:
    """Guards the test itself: an empty table equals an empty table."""
    table = deployments["pss"].pods["pss-mnist-worker-1"]
    assert table["program.argv.2"] == "--job_name=worker"
    assert table["program.argv.3"] == "--ps_hosts=pss-mnist-ps-0.pss-mnist:2222"
    assert table["program.argv.7"] == "--unknown=$(NOBODY)"
    assert table["launcher.argv.1"] == "/opt/trainchart/launcher.pyz"
    assert table["program.workingDirectory"] == "/scratch/deep/er"
    assert table["program.environment.NUMBER"] == "7"
    assert table["program.environment.PRICE"] == "$(GREETING)"
    assert table["program.environment.ALL_COLOUR"] == "green"
    assert table["mounts./checkpoints.kind"] == "claim"
    assert table["mounts./checkpoints.claim"] == "pss-mnist-checkpoints"
    assert table["mounts./checkpoints.sub-path"] == "runs/one"
    assert table["mounts./mine.sub-path"] == "pss-mnist-worker-1"
    assert table["mounts./settings.read-only"] == "true"
    assert table["mounts./dev/shm.kind"] == "scratch"
    assert '"learningRate": 0.03125' in table["files./etc/trainchart/hyperparameters.json"]


def test_every_allowed_difference_is_one_that_there_is(deployments: dict[str, Deployment]) -> None:
    used = {rule for item in deployments.values() for pod in item.pods for rule in item.compare(pod).used}

    assert [rule.place for rule in ALLOWED if rule not in used] == []


@pytest.mark.parametrize(
    ("pod", "here"),
    [
        ({"program.environment.A": "1"}, {}),
        ({}, {"program.environment.TRAINCHART_LOCAL_PARENT": "1"}),
        ({"program.argv.0": "python3"}, {"program.argv.0": "python"}),
        ({"mounts./data.kind": "claim"}, {"mounts./data.kind": "scratch"}),
        ({"mounts./data.read-only": "false"}, {"mounts./data.read-only": "true"}),
        ({"mounts./dev.kind": "claim"}, {}),
        ({"program.environment.TF_CONFIG": '{"task":1}'}, {"program.environment.TF_CONFIG": '{"task":2}'}),
        ({"program.environment.HOME": "/root"}, {"program.environment.HOME": "/home/me"}),
    ],
)
def test_other_differences_are_told(pod: dict[str, str], here: dict[str, str]) -> None:
    assert compare_tables(pod, here, ALLOWED).unexpected
    assert not compare_tables(pod, pod, ALLOWED).unexpected


def test_every_allowed_difference_has_its_reason() -> None:
    assert all(rule.reason and rule.side in Side for rule in ALLOWED)
