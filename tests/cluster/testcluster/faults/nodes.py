"""What an administrator does to nodes and their pods: cordon, drain, taint, evict. Pure."""

from __future__ import annotations

import json

from .fault import Change, Fault, Kubectl

_DRAIN_SECONDS = 60


def cordon_node(node: str) -> Fault:
    """Let no further pod onto a node."""
    return Fault(f"{node} cordoned", (_cordon(node),))


def drain_node(node: str) -> Fault:
    """Cordon a node and evict its pods, as before maintenance; fails when a pod is not gone in time.

    CoreDNS stays, so that a later test can lose the other node and still resolve names.
    """
    limits = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={_DRAIN_SECONDS}s")
    drain = Kubectl(("drain", node, *limits, "--pod-selector=k8s-app!=kube-dns"))
    return Fault(f"{node} drained", (_cordon(node), Change(drain)))


def taint_node(node: str, taint: str) -> Fault:
    """Set a taint, `key=value:effect`, such as node.kubernetes.io/out-of-service=nodeshutdown:NoExecute."""
    pair, effect = taint.rsplit(":", 1)
    undo = Kubectl(("taint", "node", node, f"{pair.split('=')[0]}:{effect}-"))
    return Fault(f"{node} tainted {taint}", (Change(Kubectl(("taint", "node", node, taint)), (undo,)),))


def evict_pod(namespace: str, pod: str, grace_seconds: int | None = None) -> Fault:
    """Evict a pod through the Eviction API; CommandFailed when a PodDisruptionBudget refuses. Nothing to undo."""
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": namespace},
        "deleteOptions": {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
    evict = Kubectl(("create", "--raw", path, "-f", "-"), text=json.dumps(body))
    return Fault(f"{namespace}/{pod} evicted", (Change(evict),))


def _cordon(node: str) -> Change:
    return Change(Kubectl(("cordon", node)), (Kubectl(("uncordon", node)),))
