"""Rules of a pack in a real API server: what `trainchart pack admission` prints, applied, and attacked."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client

from tests.cluster.testcluster.access import Access, CommandFailed
from tests.cluster.testcluster.releases import IDLE, PROJECT, Release, merge_values, mnist_values

pytestmark = pytest.mark.cluster

POLICY = """\
apiVersion: trainchart/v1
kind: Policy
requires:
  registries: [{registry}]
  labels: [team]
  limits: [memory]
  devices: [nvidia.com/gpu]
  storageClasses: [shared]
  forbidden: [hostNetwork]
rules:
  no-privileges:
    expression: variables.containers.all(c, !c.?securityContext.?privileged.orValue(false))
    message: containers are not privileged
  no-load-balancers:
    kinds: [Service]
    expression: object.spec.?type.orValue('ClusterIP') != 'LoadBalancer'
    message: load balancers cost money
    severity: warning
waivers:
  - rule: registries
    models: ["*"]
    owner: ml@acme.example
    reason: the mirror is not there yet
    until: 2099-12-31
    namespaces: [{waived}]
"""
ANY_POD = "pod-security.kubernetes.io/enforce=privileged"
"""Label of namespaces in which Pod Security refuses nothing, so that rules have to."""
IMAGE = "registry.k8s.io/pause:3.10"
"""Never pulled: nothing here has to run."""


def container(**fields: Any) -> dict[str, Any]:
    limits = {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "16Mi"}
    return {"name": "a", "image": IMAGE, "resources": {"limits": limits, "requests": limits}, **fields}


def pod(**fields: Any) -> dict[str, Any]:
    return {"containers": [container()], "nodeSelector": {"of": "nothing"}, **fields}


def make(kind: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    version = {"Pod": "v1", "Service": "v1", "PersistentVolumeClaim": "v1", "Job": "batch/v1", "CronJob": "batch/v1"}
    about = {"name": "p", "labels": {"team": "a"}, **metadata}
    return {"apiVersion": version.get(kind, "apps/v1"), "kind": kind, "metadata": about, "spec": spec}


def job(spec: dict[str, Any]) -> dict[str, Any]:
    return {"template": {"spec": {"restartPolicy": "Never", **spec}}}


def deployment(spec: dict[str, Any]) -> dict[str, Any]:
    labels = {"app": "p"}
    return {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}


def claim(storage_class: str) -> dict[str, Any]:
    resources = {"requests": {"storage": "1Mi"}}
    return {"storageClassName": storage_class, "accessModes": ["ReadWriteMany"], "resources": resources}


EVIL = pod(containers=[container(image="evil.example/a:1")])
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a pod with another image": (make("Pod", EVIL), "images must come from"),
    "an init container": (
        make("Pod", pod(initContainers=[container(name="b", image="evil.example/a")])),
        "images must come from",
    ),
    "a registry that starts alike": (
        make("Pod", pod(containers=[container(image="registry.k8s.io.evil.example/a")])),
        "images must come from",
    ),
    "a job": (make("Job", job(EVIL)), "images must come from"),
    "a cron job": (
        make("CronJob", {"schedule": "0 0 * * *", "jobTemplate": {"spec": job(EVIL)}}),
        "images must come from",
    ),
    "a deployment": (make("Deployment", deployment(EVIL)), "images must come from"),
    "a stateful set": (make("StatefulSet", {**deployment(EVIL), "serviceName": "p"}), "images must come from"),
    "a daemon set": (make("DaemonSet", deployment(EVIL)), "images must come from"),
    "no labels": (make("Job", job(pod()), labels={}), "need the labels team"),
    "no limit": (make("Pod", pod(containers=[{"name": "a", "image": IMAGE}])), "limits for memory"),
    "another device": (
        make("Pod", pod(containers=[container(resources={"limits": {"memory": "1Mi", "amd.com/gpu": 1}})])),
        "only nvidia.com/gpu",
    ),
    "another storage class": (make("PersistentVolumeClaim", claim("local")), "the storage class shared"),
    "the node's network": (make("Pod", pod(hostNetwork=True)), "must not set hostNetwork"),
    "a privileged container": (
        make("Pod", pod(containers=[container(securityContext={"privileged": True})])),
        "not privileged",
    ),
}
ALLOWED = {
    "a pod": make("Pod", pod()),
    "a job": make("Job", job(pod())),
    "a claim": make("PersistentVolumeClaim", claim("shared")),
    "a configmap without labels": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
}


@pytest.fixture(scope="module")
def bounded(
    admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., str]]:
    """Try to create an object in a namespace in which the rules of a pack hold; return what the API server says."""
    folder = tmp_path_factory.mktemp("pack")
    name = name_pack(module_namespace)
    write_pack(folder, name, waived="nowhere")
    label = f"bounded={module_namespace}"
    apply_policies(admin, folder, label)
    admin.kubectl("label", "namespace", module_namespace, label, ANY_POD, "--overwrite")

    for document, reason in REFUSED.values():
        wait_until_refused(admin, module_namespace, document, reason)
    yield functools.partial(attempt, admin, module_namespace)
    delete_policies(admin, name)


def attempt(admin: Access, namespace: str, document: dict[str, Any], *arguments: str) -> str:
    """Return what the API server says of an object that it does not keep."""
    words = ("create", "-f", "-", "--dry-run=server", "-n", namespace, *arguments)
    done = admin.run(["kubectl", *words], text=json.dumps(document), check=False)
    return done.stderr + ("" if done.returncode else "created")


def wait_until_refused(admin: Access, namespace: str, document: dict[str, Any], reason: str) -> None:
    """Wait for a rule: each holds a moment after it is applied, and not all at the same time."""
    admin.wait_for(lambda _: reason in attempt(admin, namespace, document), f"refused: {reason}", namespace=namespace)


def name_pack(namespace: str) -> str:
    return f"p-{namespace[-20:].strip('-')}"


def write_pack(folder: Path, name: str, waived: str) -> None:
    (folder / "pack.yaml").write_text(f"apiVersion: trainchart/v1\nkind: Pack\nname: {name}\nversion: 1.0.0\n")
    (folder / "policy.yaml").write_text(POLICY.format(registry="registry.k8s.io", waived=waived))


def apply_policies(admin: Access, folder: Path, label: str) -> None:
    argv = [sys.executable, "-m", "trainchart", "pack", "admission", str(folder), "--namespaces", label]
    text = subprocess.run(argv, capture_output=True, text=True, check=True, cwd=folder).stdout
    admin.kubectl("apply", "-f", "-", text=text)


def list_policies(admin: Access, name: str) -> list[dict[str, Any]]:
    found = json.loads(admin.kubectl("get", "validatingadmissionpolicies", "-o", "json"))["items"]
    return [policy for policy in found if policy["metadata"]["name"].startswith(f"trainchart-{name}-")]


def delete_policies(admin: Access, name: str) -> None:
    names = [policy["metadata"]["name"] for policy in list_policies(admin, name)]
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        admin.kubectl("delete", kind, *names, "--ignore-not-found")


@pytest.mark.parametrize("what", REFUSED)
def test_the_api_server_refuses(bounded: Callable[..., str], what: str) -> None:
    document, reason = REFUSED[what]
    answer = bounded(document)
    assert reason in answer, answer
    assert "of pack p-" in answer
    assert "created" not in answer


@pytest.mark.parametrize("what", ALLOWED)
def test_the_api_server_accepts(bounded: Callable[..., str], what: str) -> None:
    assert "created" in bounded(ALLOWED[what])


def test_a_warning_is_told_and_refuses_nothing(bounded: Callable[..., str]) -> None:
    answer = bounded(make("Service", {"type": "LoadBalancer", "ports": [{"port": 1}]}))
    assert "load balancers cost money" in answer
    assert "created" in answer


def test_the_api_server_compiles_every_rule(bounded: Callable[..., str], admin: Access, module_namespace: str) -> None:
    def are_checked(_: Client) -> list[dict[str, Any]] | None:
        policies = list_policies(admin, name_pack(module_namespace))
        return policies if all("typeChecking" in policy["status"] for policy in policies) else None

    policies = admin.wait_for(are_checked, "policies whose types are checked", namespace=module_namespace)
    assert len(policies) == 8
    assert [policy["status"]["typeChecking"] for policy in policies] == [{}] * 8


def test_what_was_there_before_can_be_deleted(admin: Access, namespace: str, tmp_path: Path) -> None:
    """An object that breaks a rule is changed once more, to take its finalizer away."""
    old = make("Job", job(EVIL), finalizers=["example.com/wait"])
    admin.kubectl("create", "-f", "-", "-n", namespace, text=json.dumps(old))
    name = name_pack(namespace)
    write_pack(tmp_path, name, waived="nowhere")
    label = f"bounded={namespace}"
    apply_policies(admin, tmp_path, label)
    try:
        admin.kubectl("label", "namespace", namespace, label, ANY_POD, "--overwrite")
        wait_until_refused(admin, namespace, make("Pod", EVIL), "images must come from")
        admin.kubectl("delete", "job", "p", "-n", namespace, "--wait=false")
        admin.kubectl("patch", "job", "p", "-n", namespace, "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
        assert not admin.kubectl("get", "jobs", "-n", namespace, "-o", "name").strip()
    finally:
        delete_policies(admin, name)


def test_a_release_installs_where_rules_hold_and_waivers_spare(admin: Access, namespace: str, tmp_path: Path) -> None:
    """The chart's own registry is not the pack's: the namespace is waived from that rule, and from no other."""
    name = name_pack(namespace)
    write_pack(tmp_path, name, waived=namespace)
    label = f"bounded={namespace}"
    apply_policies(admin, tmp_path, label)
    try:
        admin.kubectl("label", "namespace", namespace, label)
        values = merge_values(mnist_values(), IDLE)
        bad = Release(admin, namespace, "exp1", PROJECT / "charts" / "mnist", values)

        # An installation that is not refused yet would leave a claim, and refuse the next for that reason.
        wait_until_refused(admin, namespace, *REFUSED["no labels"])
        with pytest.raises(CommandFailed, match="need the labels team"):
            bad.install()
        good = Release(
            admin,
            namespace,
            "exp2",
            PROJECT / "charts" / "mnist",
            merge_values(values, {"commonLabels": {"team": "a"}}),
        )
        good.install()
        sets = admin.kubectl("get", "statefulsets", "-n", namespace, "-o", "name").split()
        assert "statefulset.apps/exp2-mnist-chief" in sets
        good.wait_until_running(5)
    finally:
        delete_policies(admin, name)
