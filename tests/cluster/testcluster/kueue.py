"""Kueue on demand: its controller as one more process of the control plane, with its webhooks and its view of queues.

Only tests that ask for it pay for it; afterwards the cluster knows nothing of Kueue any more. The binary is built like
the other programs, and its objects come from the same module.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from . import config
from .access import Access
from .cache_folder import find_cache
from .cluster import Cluster
from .components import Component
from .config import INSIDE
from .control import ControlError
from .pki import Authority
from .programs import find_program
from .versions import GO_PROGRAMS

VERSION = GO_PROGRAMS["kueue"].version
MODULE = "sigs.k8s.io/kueue"
COMPONENT = "kueue"
VIEWER = "kueue-batch-user"
"""ClusterRole of ordinary users of queues, as Kueue's installation has it."""

_NAMESPACE = "kueue-system"
_WEBHOOK_PORT = 9443
_VISIBILITY_PORT = 8382
_HEALTH_PORT = 8381
_FRAMEWORKS = ("batch/job", "pod", "statefulset", "deployment")
_WEBHOOK_GROUPS = {"kueue.x-k8s.io", "batch", "apps", ""}
_OTHER_NAMESPACES = {
    "matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", _NAMESPACE]}
    ]
}
_KINDS = ("workloads", "localqueues", "clusterqueues", "resourceflavors", "workloadpriorityclasses")
_USER_ROLES = ("localqueue_viewer_role", "workload_viewer_role", "pending_workloads_lq_viewer_role")


@contextmanager
def run_kueue(cluster: Cluster, access: Access) -> Iterator[None]:
    """Run Kueue in a cluster until it answers, and remove it with everything that it knows."""
    authority = Authority()
    _prepare_folder(cluster.folder / "kueue", access, authority)
    objects = _list_objects(read_manifests(), base64.b64encode(authority.certificate).decode())
    definitions = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
    access.kubectl("create", "-f", "-", text=_dump(definitions))
    names = [f"crd/{each['metadata']['name']}" for each in definitions]
    try:
        access.kubectl("wait", "--for=condition=Established", *names, "--timeout=60s")
        cluster.run_component(plan_kueue())
        _wait_until_ready(cluster, access)
        access.kubectl("create", "-f", "-", text=_dump([each for each in objects if each not in definitions]))
        yield
    finally:
        # Without the process first: nothing puts finalizers back, and without webhooks nothing refuses.
        with contextlib.suppress(ControlError):
            cluster.stop_component(COMPONENT)
        rest = [each for each in objects if each not in definitions]
        access.kubectl("delete", "--ignore-not-found", "--wait=false", "-f", "-", text=_dump(rest))
        _remove_custom_objects(access)
        access.kubectl("delete", "--ignore-not-found", *names, "--timeout=60s")
        shutil.rmtree(cluster.folder / "kueue", ignore_errors=True)


def plan_kueue() -> Component:
    """Plan Kueue's controller in a root of its own: some of the folders that it reads are fixed."""
    arguments = ("--config=/config.json", "--kubeconfig=/kubeconfig", "--zap-log-level=2")
    return Component(COMPONENT, ("chroot", f"{INSIDE}/kueue", "/kueue", *arguments))


def read_manifests() -> list[dict[str, Any]]:
    """Return the objects of Kueue's installation that matter here, from the cache or from its Go module."""
    file = find_cache(os.environ, "bin") / f"kueue-{VERSION}.json"
    if not file.exists():
        find_program("kueue")
        done = subprocess.run(
            ["go", "mod", "download", "-json", f"{MODULE}@v{VERSION}"], capture_output=True, text=True, check=True
        )
        components = Path(json.loads(done.stdout)["Dir"], "config", "components")
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(_read_components(components)))
        part.replace(file)
    found: list[dict[str, Any]] = json.loads(file.read_text())
    return found


def _read_components(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "crd" / "bases").glob("*.yaml"))
    paths += [folder / "webhook" / "manifests.yaml", folder / "visibility" / "apiservice_v1beta2.yaml"]
    paths += [folder / "rbac" / f"{name}.yaml" for name in _USER_ROLES]
    documents = [each for path in paths for each in yaml.load_all(path.read_text(), yaml.CSafeLoader) if each]
    # Most of a megabyte of descriptions, which the API server would merge into its schema.
    return [without_descriptions(each) if each["kind"] == "CustomResourceDefinition" else each for each in documents]


def without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_descriptions(each)
            for key, each in value.items()
            if key != "description" or not isinstance(each, str)
        }
    return [without_descriptions(each) for each in value] if isinstance(value, list) else value


def _list_objects(manifests: list[dict[str, Any]], authority: str) -> list[dict[str, Any]]:
    """Return the objects with the addresses of the process instead of Services."""
    objects = []
    for each in manifests:
        kind, metadata = each["kind"], each["metadata"]
        if kind.endswith("WebhookConfiguration"):
            each = {**each, "metadata": {"name": f"kueue-{metadata['name']}"}}
            each["webhooks"] = [
                _point(hook, authority) for hook in each["webhooks"] if _groups(hook) <= _WEBHOOK_GROUPS
            ]
        elif kind == "APIService":
            # An ExternalName Service leads to the port that is named here.
            service = {**each["spec"]["service"], "port": _VISIBILITY_PORT}
            each = {**each, "spec": {**each["spec"], "insecureSkipTLSVerify": True, "service": service}}
        objects.append(each)
    users = [each for each in objects if each["kind"] == "ClusterRole"]
    rules = [rule for each in users for rule in each["rules"]]
    objects = [each for each in objects if each not in users]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": VIEWER}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "visibility-server", "namespace": _NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": config.CONTROL_PLANE_ADDRESS},
        },
        {**role, "rules": rules},
        *objects,
    ]


def _groups(hook: dict[str, Any]) -> set[str]:
    return {group for rule in hook["rules"] for group in rule["apiGroups"]}


def _point(hook: dict[str, Any], authority: str) -> dict[str, Any]:
    url = f"https://127.0.0.1:{_WEBHOOK_PORT}{hook['clientConfig']['service']['path']}"
    pointed = {**hook, "clientConfig": {"url": url, "caBundle": authority}}
    if _groups(hook) != {"kueue.x-k8s.io"}:
        pointed["namespaceSelector"] = _OTHER_NAMESPACES
    return pointed


def _prepare_folder(folder: Path, access: Access, authority: Authority) -> None:
    for part in ("certs", "visibility", "etc/kueue/metrics/certs", "tmp"):
        (folder / part).mkdir(parents=True)
    pair = authority.issue("kueue", addresses=("127.0.0.1", config.CONTROL_PLANE_ADDRESS, "localhost"))
    for part in ("certs", "visibility", "etc/kueue/metrics/certs"):
        (folder / part / "tls.crt").write_bytes(pair.certificate)
        (folder / part / "tls.key").write_bytes(pair.key)
    program = find_program("kueue")
    try:
        os.link(program, folder / "kueue")
    except OSError:
        shutil.copy2(program, folder / "kueue")
    (folder / "kubeconfig").write_text((folder.parent / "kubeconfigs" / "admin").read_text())
    (folder / "config.json").write_text(_dump_config())


def _dump_config() -> str:
    settings = {
        "namespace": _NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{_HEALTH_PORT}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": _WEBHOOK_PORT, "certDir": "/certs"},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 200, "burst": 400},
        "visibilityServer": {"bindAddress": config.CONTROL_PLANE_ADDRESS, "bindPort": _VISIBILITY_PORT},
        "integrations": {"frameworks": list(_FRAMEWORKS)},
        "managedJobsNamespaceSelector": _OTHER_NAMESPACES,
    }
    return json.dumps({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration", **settings})


def _wait_until_ready(cluster: Cluster, access: Access) -> None:
    probe = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{_HEALTH_PORT}/readyz', timeout=2)"

    def read(_: Any) -> bool:
        cluster.check()
        return cluster.run_inside(("python3", "-c", probe), check=False).returncode == 0

    access.wait_for(read, "Kueue", namespace=_NAMESPACE)


def _remove_custom_objects(access: Access) -> None:
    """Delete what is left in queues, without the consent of a Kueue that is gone."""
    kinds = ",".join(f"{kind}.kueue.x-k8s.io" for kind in _KINDS)
    access.kubectl("delete", kinds, "--all", "--all-namespaces", "--wait=false")
    for each in json.loads(access.kubectl("get", kinds, "--all-namespaces", "-o", "json"))["items"]:
        metadata = each["metadata"]
        place = ["-n", metadata["namespace"]] if metadata.get("namespace") else []
        kind = f"{each['kind'].lower()}.kueue.x-k8s.io"
        patch = json.dumps({"metadata": {"finalizers": None}})
        access.kubectl("patch", kind, metadata["name"], *place, "--type=merge", f"--patch={patch}", check=False)


def _dump(items: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
