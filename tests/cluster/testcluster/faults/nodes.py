"""Faults of nodes and of the pods on them, as an administrator or a dying machine makes them. Pure."""

from __future__ import annotations

import json

from .fault import Change, Fault, Inside, Kubectl, StartComponent, StopComponent

_DRAIN_SECONDS = 60


def stop_kubelet(node: str) -> Fault:
    """Kill a node's kubelet: its containers go on, nobody restarts or reports them."""
    return _stop(f"kubelet-{node}")


def stop_container_runtime(node: str) -> Fault:
    """Kill a node's containerd: its containers go on under their shims, the kubelet can start and end none."""
    return _stop(f"containerd-{node}")


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


def kill_shims(node: str) -> Fault:
    """Kill every container of a node at once, sandboxes included, as a power cut that only its pods see."""
    # The bracket keeps pkill's own command line, which nsenter shows too, from matching.
    kill = Inside(("pkill", "-9", "-f", f"containerd-shim-runc-v[2].*/{node}/containerd.sock"))
    return Fault(f"all containers of {node} killed", (Change(kill),))


def _stop(component: str) -> Fault:
    change = Change(StopComponent(component), (StartComponent(component),))
    return Fault(f"{component} stopped", (change,), disturbs_watches=True)


def _cordon(node: str) -> Change:
    return Change(Kubectl(("cordon", node)), (Kubectl(("uncordon", node)),))
