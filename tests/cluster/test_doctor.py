"""trainchart doctor on a real cluster: every check with the fault that it is for, and none on a healthy cluster."""

from __future__ import annotations

import dataclasses
import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import REGISTRY_HOST
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import IDLE, PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED
from tests.cluster.testcluster.users import make_user

pytestmark = pytest.mark.cluster

CHART = PROJECT / "charts" / "mnist"
VALUES = merge_values(mnist_values(), CONTROLLED)
ADD_PROXY = """[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{
  name: "proxy", image: "proxy", securityContext: object.spec.containers[0].securityContext,
  resources: object.spec.containers[0].resources}}]"""
KINDS = "pods,jobs,configmaps,services,persistentvolumeclaims,networkpolicies"


@dataclasses.dataclass(frozen=True)
class Doctor:
    """Examines charts/mnist for one namespace."""

    access: Access
    namespace: str
    folder: Path

    def examine(self, changes: dict[str, Any] | None = None, *arguments: str, code: int = 0) -> list[dict[str, str]]:
        """Return the results; the exit code must be `code`."""
        file = self.folder / f"{secrets.token_hex(3)}.json"
        file.write_text(json.dumps(merge_values(VALUES, changes or {})))
        argv = [sys.executable, "-m", "trainchart", "doctor", str(CHART), "--release=exp", f"--values={file}"]
        argv += ["--format=json", *(arguments or (f"--namespace={self.namespace}", "--no-probe"))]
        argv += [f"--context={self.access.context}"] if self.access.context else []
        done = self.access.run(argv, check=False)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        results: list[dict[str, str]] = json.loads(done.stdout)["results"]
        return results

    def start(self) -> subprocess.Popen[str]:
        """Start an examination with pods."""
        file = self.folder / "values.json"
        file.write_text(json.dumps(VALUES))
        argv = [sys.executable, "-m", "trainchart", "doctor", str(CHART), "--release=exp", f"--values={file}"]
        argv += [f"--namespace={self.namespace}"] + (
            [f"--context={self.access.context}"] if self.access.context else []
        )
        return subprocess.Popen(argv, env=self.access.environment, stdout=subprocess.PIPE, text=True)

    def find(self, outcome: str, changes: dict[str, Any] | None = None, *arguments: str) -> dict[str, str]:
        """Return check and message of the results of one outcome; the other checks must be ok."""
        results = self.examine(changes, *arguments, code=6 if outcome == "failed" else 0)
        return {each["check"]: each["message"] for each in results if each["outcome"] == outcome}


@pytest.fixture(scope="module")
def doctor(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Doctor:
    return Doctor(admin, module_namespace, tmp_path_factory.mktemp("doctor"))


def list_names(doctor: Doctor) -> set[str]:
    return set(doctor.access.kubectl("get", KINDS, "-n", doctor.namespace, "-o", "name").split())


def test_a_healthy_cluster_passes_and_stays_as_it_was(doctor: Doctor) -> None:
    before = list_names(doctor)
    results = doctor.examine(None, f"--namespace={doctor.namespace}")
    assert {each["outcome"] for each in results} == {"ok"}
    assert {each["check"] for each in results} == {
        *("version", "objects", "rights", "pods", "sidecars", "quota", "fit", "storage"),
        *("images", "network", "network-policy", "clock"),
    }
    assert any("node1, node2 wrote, renamed and read each other's files" in each["message"] for each in results)
    assert list_names(doctor) == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_examination_that_is_ended_leaves_nothing(doctor: Doctor, number: int) -> None:
    before = list_names(doctor)
    process = doctor.start()
    doctor.access.wait_for(
        lambda _: any("trainchart-doctor" in name for name in list_names(doctor)), "a probe", namespace=doctor.namespace
    )
    process.send_signal(number)
    process.communicate(timeout=90)
    assert process.returncode == 128 + number
    assert list_names(doctor) == before


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "class": ({"volumes": {"checkpoints": {"storageClass": "none"}}}, "storage", "there is no StorageClass none"),
    "claim": ({"volumes": {"checkpoints": {"existingClaim": "none"}}}, "storage", "the claim none does not exist"),
    "quota": ({"roles": {"worker": {"replicas": 30}}}, "quota", "quota tests: the release needs"),
    "room": ({"roles": {"worker": {"cpu": "7", "cpuLimit": "7"}}}, "fit", "2 of worker (each asks for cpu 7, "),
    "resource": (
        {"gpu": {"resourceName": "example.com/tpu"}, "roles": {"worker": {"gpus": 1}}},
        "gpu",
        "no node has example.com/tpu",
    ),
    "security": ({"containerSecurityContext": {"allowPrivilegeEscalation": True}}, "pods", "violates PodSecurity"),
    "priority": ({"priorityClassName": "none"}, "pods", "no PriorityClass with name none was found"),
    "runtime": ({"runtimeClassName": "none"}, "pods", 'RuntimeClass "none" not found'),
    "queue": ({"run": {"queue": "team"}}, "queue", "the cluster has no Kueue"),
    "kind": (
        {"extraManifests": [{"apiVersion": "example.com/v1", "kind": "Disk", "metadata": {"name": "d"}}]},
        "objects",
        "the cluster does not know example.com/v1 Disk",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_values_is_named(doctor: Doctor, fault: str) -> None:
    changes, check, words = FAULTS[fault]
    assert words in doctor.find("failed", changes)[check]


def test_a_missing_namespace_is_named(doctor: Doctor) -> None:
    assert doctor.find("failed", None, "--namespace=none-such")["namespace"] == "there is no namespace none-such"


@contextmanager
def applied(access: Access, namespace: str, *objects: dict[str, Any]) -> Iterator[None]:
    """Have objects in the cluster for a while."""
    access.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(*objects))
    try:
        yield
    finally:
        access.kubectl("delete", "-n", namespace, "-f", "-", text=dump_objects(*objects))


def test_the_limits_of_the_namespace_count(doctor: Doctor) -> None:
    limits = [{"type": "Container", "max": {"cpu": "1"}}]
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": {"limits": limits}}
    with applied(doctor.access, doctor.namespace, limit_range):
        assert "maximum cpu usage per Container is 1" in doctor.find("failed")["pods"]


def test_cordoned_nodes_are_named(doctor: Doctor) -> None:
    doctor.access.kubectl("cordon", "node1", "node2")
    try:
        found = doctor.find("failed")
    finally:
        doctor.access.kubectl("uncordon", "node1", "node2")
    assert "2 of 2 nodes: taint node.kubernetes.io/unschedulable:NoSchedule" in found["fit"]


def test_containers_that_a_policy_adds_are_named(doctor: Doctor) -> None:
    name = f"doctor-{secrets.token_hex(3)}"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    selector = {"matchLabels": {"kubernetes.io/metadata.name": doctor.namespace}}
    group = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": group,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": ADD_PROXY}}],
        },
    }
    binding = {
        "apiVersion": group,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "matchResources": {"namespaceSelector": selector}},
    }
    with applied(doctor.access, doctor.namespace, policy, binding):
        doctor.access.wait_for(
            lambda _: "sidecars" in doctor.find("warning"), "a policy that adds a container", namespace=doctor.namespace
        )
        assert "something puts proxy into the pods of" in doctor.find("warning")["sidecars"]


def test_a_user_without_rights_is_told_which(doctor: Doctor, tmp_path: Path) -> None:
    user = make_user(doctor.access, doctor.namespace, "reader", "view", tmp_path)
    found = dataclasses.replace(doctor, access=user, folder=tmp_path)
    results = found.examine(code=6)
    told = {(each["check"], each["outcome"]): each["message"] for each in results}
    assert "you are not allowed to" in told["rights", "failed"]
    assert told["objects", "failed"].startswith("you are not allowed to create 16 objects: ")
    assert "you are not allowed to list nodes" in told["fit", "unknown"]


def test_whoever_administers_the_namespace_may_install(doctor: Doctor, tmp_path: Path) -> None:
    user = make_user(doctor.access, doctor.namespace, "owner", "admin", tmp_path)
    results = dataclasses.replace(doctor, access=user, folder=tmp_path).examine()
    outcomes = {each["check"]: each["outcome"] for each in results}
    assert {outcomes[check] for check in ("objects", "rights", "pods", "quota")} == {"ok"}
    assert {outcomes[check] for check in ("fit", "storage")} == {"unknown"}


def test_what_an_installed_release_holds_is_free(doctor: Doctor) -> None:
    """Beside its quota, which just holds the release, and when it has gone, with the claim that it has left."""
    release = Release(doctor.access, doctor.namespace, "exp", CHART, merge_values(VALUES, IDLE))
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "just"}}
    hard = {"pods": "6", "persistentvolumeclaims": "1"}
    with applied(doctor.access, doctor.namespace, {**quota, "spec": {"hard": hard}}):
        release.install()
        release.wait_until_running(6)
        outcomes = {each["check"]: each["outcome"] for each in doctor.examine(IDLE)}
        assert outcomes == {**dict.fromkeys(outcomes, "ok"), "objects": "warning"}
        release.uninstall()
        assert "an earlier release has left the claim" in doctor.find("failed")["storage"]
        release.access.wait_for(
            lambda client: not release.pods(client), "no pods of the release", namespace=doctor.namespace
        )
        outcomes = {each["check"]: each["outcome"] for each in doctor.examine({"run": {"resume": "latest"}})}
        assert set(outcomes.values()) == {"ok"}
    doctor.access.kubectl("delete", "pvc", "exp-mnist-checkpoints", "-n", doctor.namespace)


def test_an_image_that_is_not_there_is_named(doctor: Doctor) -> None:
    changes = {"image": {"repository": f"{REGISTRY_HOST}/ml/none"}}
    before = list_names(doctor)
    found = doctor.find("failed", changes, f"--namespace={doctor.namespace}")
    assert f"{REGISTRY_HOST}/ml/none:1.0.0" in found["images"]
    assert list_names(doctor) == before


def test_a_class_that_cannot_be_shared_is_found_by_trying(doctor: Doctor) -> None:
    changes = {"volumes": {"checkpoints": {"storageClass": "local-rwo"}}}
    found = doctor.find("failed", changes, f"--namespace={doctor.namespace}")
    assert "claim exp-mnist-checkpoints: " in found["storage"]
    assert "ReadWriteMany" in found["storage"]


def test_a_class_that_keeps_volumes_is_not_tried(doctor: Doctor) -> None:
    changes = {"volumes": {"checkpoints": {"storageClass": "shared-retained"}}}
    before = doctor.access.kubectl("get", "pv", "-o", "name")
    found = doctor.find("unknown", changes, f"--namespace={doctor.namespace}")
    assert "its class keeps volumes" in found["storage"]
    assert doctor.access.kubectl("get", "pv", "-o", "name") == before


def test_a_plugin_that_ignores_policies_is_named(doctor: Doctor, own_cluster: Cluster) -> None:
    names = ("networkpolicy-node1", "networkpolicy-node2")
    for name in names:
        own_cluster.stop_component(name)
    try:
        found = doctor.find("warning", None, f"--namespace={doctor.namespace}")
    finally:
        for name in names:
            own_cluster.start_component(name)
    assert found == {"network-policy": "no network plug-in applies NetworkPolicies here"}
