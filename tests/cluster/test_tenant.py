"""A tenant on a real API server: what engineers and CI may do in their namespace, and what nobody but its owner may."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lightkube.core.client import Client

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import IDLE, PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.users import pin_context

pytestmark = pytest.mark.cluster

USERS = ("engineer", "ci")
IMAGE = "registry.k8s.io/pause:3.10"
"""Never pulled: nothing here has to run."""


@dataclass(frozen=True)
class Tenant:
    """An installed tenant, and its users."""

    namespace: str
    users: dict[str, Access]

    def attempt(self, user: str, document: dict[str, Any], verb: str = "create") -> str:
        """Let a user try to create an object in the namespace, and return what the API server says."""
        words = (verb, "-f", "-", "--dry-run=server", "-n", self.namespace)
        return self.ask(user, *words, text=json.dumps(document))

    def ask(self, user: str, *words: str, text: str | None = None) -> str:
        """Return what kubectl says to a user: "done", or the error."""
        done = self.users[user].run(["kubectl", *words], text=text, check=False)
        return done.stderr if done.returncode else "done"


@pytest.fixture(scope="module")
def tenant(admin: Access, module_namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    """Install a tenant from `module_namespace`, where its users' accounts are, too."""
    folder = tmp_path_factory.mktemp("tenant")
    namespace = f"{module_namespace}-t"
    subjects = {user: [{"kind": "ServiceAccount", "name": user, "namespace": module_namespace}] for user in USERS}
    values = {
        "engineers": subjects["engineer"],
        "ci": subjects["ci"],
        "quota": {"requests.nvidia.com/gpu": 2},
    }
    spec = {
        "apiVersion": "trainchart/v1",
        "kind": "Chart",
        "family": "tenant",
        "name": "tenant",
        "description": "A team.",
    }
    (folder / "models").mkdir()
    (folder / "models" / "tenant.yaml").write_text(json.dumps({**spec, "values": values}))
    subprocess.run([sys.executable, "-m", "trainchart", "generate"], cwd=folder, check=True, capture_output=True)
    release = Release(admin, module_namespace, namespace, folder / "charts" / "tenant")
    release.install()
    try:
        yield Tenant(namespace, {user: make_user(admin, module_namespace, user, folder) for user in USERS})
    finally:
        release.uninstall()
        admin.kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


def make_user(admin: Access, namespace: str, name: str, folder: Path) -> Access:
    """Return the access of a new account that has no rights but those of the tenant."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}
    admin.kubectl("apply", "-f", "-", text=dump_objects(account))
    token = admin.kubectl("create", "token", name, f"--namespace={namespace}").strip()
    return pin_context(admin, folder / f"{name}.kubeconfig", {"token": token})


def make(kind: str, version: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "mine"}, **fields}


def pod(**fields: Any) -> dict[str, Any]:
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "a", "image": IMAGE, "securityContext": security}
    safe = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"containers": [{**container, **fields.pop("container", {})}], "securityContext": safe, **fields}
    return make("Pod", "v1", spec=spec)


def bind(role: str, kind: str = "ClusterRole") -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "User", "name": "friend", "apiGroup": group}
    return make(
        "RoleBinding", f"{group}/v1", roleRef={"apiGroup": group, "kind": kind, "name": role}, subjects=[subject]
    )


def policy(**spec: Any) -> dict[str, Any]:
    return make("NetworkPolicy", "networking.k8s.io/v1", spec={"podSelector": {}, **spec})


def claim(size: str) -> dict[str, Any]:
    resources = {"requests": {"storage": size}}
    return make("PersistentVolumeClaim", "v1", spec={"accessModes": ["ReadWriteMany"], "resources": resources})


def service(kind: str, **spec: Any) -> dict[str, Any]:
    return make("Service", "v1", spec={"type": kind, "ports": [{"port": 1}], **spec})


def grant(**subject: str) -> dict[str, Any]:
    """Return a binding that gives the rights of releases to someone else."""
    return {**bind("tenant-releases", "Role"), "subjects": [subject]}


GPUS = {"resources": {"limits": {"memory": "1Mi", "nvidia.com/gpu": 3}}}
OWN_LABEL = {"name": "mine", "labels": {"trainchart/tenant": "mine"}}
FORBIDDEN: dict[str, tuple[Any, str]] = {
    "a privileged container": (pod(container={"securityContext": {"privileged": True}}), "violates PodSecurity"),
    "a folder of the node": (pod(volumes=[{"name": "v", "hostPath": {"path": "/"}}]), "violates PodSecurity"),
    "the network of the node": (pod(hostNetwork=True), "violates PodSecurity"),
    "more GPUs than the quota": (pod(container=GPUS), "exceeded quota"),
    "more storage than the quota": (claim("2Ti"), "exceeded quota"),
    "a load balancer": (service("LoadBalancer"), "exceeded quota"),
    "a port of the nodes": (service("NodePort"), "exceeded quota"),
    "an address outside of the cluster": (
        service("ClusterIP", externalIPs=["192.0.2.1"]),
        "only addresses of the cluster",
    ),
    "a name outside of the namespace": (
        service("ExternalName", externalName="web.other.svc.cluster.local"),
        "only addresses of the cluster",
    ),
    "the priority of the system": (pod(priorityClassName="system-node-critical"), "exceeded quota"),
    "a node of its own choice": (pod(nodeName="any"), "placed by the scheduler"),
    "limits beyond the quota": (
        pod(container={"resources": {"requests": {"memory": 0}, "limits": {"memory": "1Ti"}}}),
        "exceeded quota",
    ),
    "a token that stays valid": (
        make("Secret", "v1", type="kubernetes.io/service-account-token")
        | {"metadata": {"name": "mine", "annotations": {"kubernetes.io/service-account.name": "default"}}},
        "tokens that never expire",
    ),
    "rights for another user": (
        grant(kind="User", name="friend", apiGroup="rbac.authorization.k8s.io"),
        "accounts of the namespace",
    ),
    "rights for everyone": (
        grant(kind="Group", name="system:unauthenticated", apiGroup="rbac.authorization.k8s.io"),
        "accounts of the namespace",
    ),
    "rights for an account of another namespace": (
        grant(kind="ServiceAccount", name="default", namespace="kube-system"),
        "accounts of the namespace",
    ),
    "a policy that opens egress": (
        policy(policyTypes=["Egress"], egress=[{}]),
        "the platform team decides what pods connect to",
    ),
    "a policy with the label of the tenant": (
        {**policy(), "metadata": OWN_LABEL},
        "is for objects of the platform team",
    ),
    "the role admin": (bind("admin"), "attempting to grant RBAC permissions not currently held"),
    "the role cluster-admin": (bind("cluster-admin"), "attempting to grant RBAC permissions not currently held"),
    "a role that may run commands": (
        make(
            "Role",
            "rbac.authorization.k8s.io/v1",
            rules=[{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}],
        ),
        "attempting to grant RBAC permissions not currently held",
    ),
    "another quota": (make("ResourceQuota", "v1", spec={"hard": {}}), "forbidden"),
    "another limit range": (make("LimitRange", "v1", spec={"limits": []}), "forbidden"),
    "a daemon set": (
        make(
            "DaemonSet",
            "apps/v1",
            spec={
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]},
            },
        ),
        "forbidden",
    ),
    "an endpoint slice": (
        make("EndpointSlice", "discovery.k8s.io/v1", addressType="IPv4", endpoints=[]),
        "forbidden",
    ),
}
FORBIDDEN_COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "change the quota": (
        ("patch", "resourcequota", "tenant-quota", "-p", '{"spec": {"hard": {"pods": "999"}}}'),
        "forbidden",
    ),
    "delete the limit range": (("delete", "limitrange", "tenant-limits"), "forbidden"),
    "delete the network policy": (("delete", "networkpolicy", "tenant-network"), "belongs to the tenant"),
    "open the network policy": (
        ("patch", "networkpolicy", "tenant-network", "-p", '{"spec": {"policyTypes": ["Ingress"]}}'),
        "belongs to the tenant",
    ),
    "take the label from the network policy": (
        ("label", "networkpolicy", "tenant-network", "trainchart/tenant-"),
        "belongs to the tenant",
    ),
    "delete the rights of others": (("delete", "rolebinding", "tenant-releases"), "belongs to the tenant"),
    "take the Pod Security from the namespace": (
        ("label", "namespace", "{namespace}", "pod-security.kubernetes.io/enforce-"),
        "forbidden",
    ),
    "delete the namespace": (("delete", "namespace", "{namespace}", "--dry-run=server"), "forbidden"),
    "delete the guard": (("delete", "validatingadmissionpolicybinding", "tenant-{namespace}"), "forbidden"),
    "list the nodes": (("get", "nodes"), "forbidden"),
    "read Secrets of other namespaces": (("get", "secrets", "-n", "kube-system"), "forbidden"),
    "take the token of another account": (("create", "token", "default"), "forbidden"),
    "list all pods of the cluster": (("get", "pods", "-A"), "forbidden"),
}
ALLOWED: dict[str, dict[str, Any]] = {
    "a pod": pod(),
    "a claim": claim("1Gi"),
    "a service": service("ClusterIP"),
    "a policy that admits TensorBoard": policy(
        ingress=[{"from": [{"namespaceSelector": {}}], "ports": [{"port": 6006}]}]
    ),
    "a secret": make("Secret", "v1", stringData={"a": "b"}),
    "rights for an account of the namespace": grant(kind="ServiceAccount", name="default"),
    "a role of a run controller": make(
        "Role",
        "rbac.authorization.k8s.io/v1",
        rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}],
    ),
}
ALLOWED_COMMANDS: dict[str, tuple[str, ...]] = {
    "read the quota": ("get", "resourcequota,limitrange"),
    "read events": ("get", "events"),
    "watch pods": ("get", "pods"),
    "read the record of a run": ("get", "configmaps"),
}


@pytest.mark.parametrize("user", USERS)
def test_users_of_the_tenant_cannot_create(tenant: Tenant, user: str) -> None:
    for what, (document, reason) in FORBIDDEN.items():
        assert reason in tenant.attempt(user, document), what


@pytest.mark.parametrize("user", USERS)
def test_users_of_the_tenant_cannot_change(tenant: Tenant, user: str) -> None:
    for what, (words, reason) in FORBIDDEN_COMMANDS.items():
        command = [
            word.format(namespace=tenant.namespace) if word[:1] != "{" or word == "{namespace}" else word
            for word in words
        ]
        said = tenant.ask(user, *command, *([] if "-n" in words or "-A" in words else ["-n", tenant.namespace]))
        assert reason in said, what


@pytest.mark.parametrize("user", USERS)
def test_engineers_and_ci_may_do_what_releases_need(tenant: Tenant, user: str) -> None:
    for what, document in ALLOWED.items():
        assert tenant.attempt(user, document) == "done", what
    for what, words in ALLOWED_COMMANDS.items():
        assert tenant.ask(user, *words, "-n", tenant.namespace) == "done", what


def test_only_engineers_may_evict(tenant: Tenant) -> None:
    review = ("auth", "can-i", "create", "pods", "--subresource=eviction", "-n", tenant.namespace)
    assert tenant.ask("engineer", *review) == "done"
    assert tenant.ask("ci", *review) != "done"


def test_releases_are_installed_read_and_removed(tenant: Tenant) -> None:
    """CI installs a release whose policies and rights the guard lets through, an engineer looks at it and ends it."""
    chart, values = PROJECT / "charts" / "mnist", merge_values(mnist_values(), IDLE)
    values = merge_values(values, {"run": {"controller": {"enabled": True}}})
    release = Release(tenant.users["ci"], tenant.namespace, "exp1", chart, values)
    release.install()
    release.wait_until_running(6)
    engineer = tenant.users["engineer"]
    for command in ("status", "why"):
        shown = engineer.run([sys.executable, "-m", "trainchart", command, "exp1", "-n", tenant.namespace]).stdout
        assert "exp1" in shown
    engineer.run([sys.executable, "-m", "trainchart", "suspend", "exp1", "-n", tenant.namespace])
    Release(engineer, tenant.namespace, "exp1", chart).uninstall()


def test_an_administrator_may_change_and_remove_all(tenant: Tenant, admin: Access) -> None:
    """Also the controllers of Kubernetes, which empty a namespace that is deleted."""
    admin.kubectl("label", "networkpolicy", "tenant-network", "x=y", "-n", tenant.namespace)
    admin.kubectl("delete", "namespace", tenant.namespace, "--wait=false")

    def is_gone(client: Client) -> bool:
        names = admin.kubectl("get", "namespaces", "-o", "name").split()
        return f"namespace/{tenant.namespace}" not in names

    admin.wait_for(is_gone, "the namespace is gone", namespace=tenant.namespace)
