"""metrics-server on demand: one more process of the control plane, with its view of what pods use.

Only tests that ask for it pay for it; afterwards the cluster knows nothing of it any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightkube.core.client import Client

from . import config
from .access import Access
from .cluster import Cluster
from .components import KUBECONFIGS, Component
from .config import INSIDE
from .control import ControlError
from .pods import dump_objects
from .programs import find_program

COMPONENT = "metrics-server"
API = "v1beta1.metrics.k8s.io"

_NAMESPACE = "kube-system"
_PORT = 4443
_START_SECONDS = 90
"""It answers after two readings of a pod, and the kubelets' own are 10 to 15 s apart."""


@contextmanager
def run_metrics_server(cluster: Cluster, access: Access) -> Iterator[None]:
    """Run metrics-server in a cluster until `kubectl top pods` answers, and remove it."""
    objects = dump_objects(*plan_objects())
    try:
        cluster.run_component(plan_metrics_server(str(find_program(COMPONENT))))
        access.kubectl("create", "-f", "-", text=objects)
        _wait_until_ready(cluster, access)
        yield
    finally:
        access.kubectl("delete", "--ignore-not-found", "-f", "-", text=objects)
        with contextlib.suppress(ControlError):
            cluster.stop_component(COMPONENT)


def plan_metrics_server(program: str) -> Component:
    """Plan metrics-server with the shortest times that it takes."""
    kubeconfig = f"{KUBECONFIGS}/admin"
    arguments = (
        *(f"--{part}kubeconfig={kubeconfig}" for part in ("", "authentication-", "authorization-")),
        f"--bind-address={config.CONTROL_PLANE_ADDRESS}",
        f"--secure-port={_PORT}",
        f"--cert-dir={INSIDE}/{COMPONENT}",
        # The least that it takes; a request has to be shorter.
        "--metric-resolution=10s",
        "--kubelet-request-timeout=5s",
        "--kubelet-preferred-address-types=InternalIP",
        # The kubelets sign their own certificates.
        "--kubelet-insecure-tls",
    )
    return Component(COMPONENT, (program, *arguments))


def plan_objects() -> list[dict[str, Any]]:
    """Plan what leads the API server to the process: an ExternalName Service, with the port in the APIService."""
    group, version = "metrics.k8s.io", "v1beta1"
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": COMPONENT, "namespace": _NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": config.CONTROL_PLANE_ADDRESS},
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API},
            "spec": {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": COMPONENT, "namespace": _NAMESPACE, "port": _PORT},
            },
        },
    ]


def _wait_until_ready(cluster: Cluster, access: Access) -> None:
    def read(_: Client) -> bool:
        cluster.check()
        found = access.kubectl("top", "pods", "-n", _NAMESPACE, "--no-headers", check=False)
        return bool(found.strip())

    access.wait_for(read, COMPONENT, namespace=_NAMESPACE, deadline_seconds=_START_SECONDS)
