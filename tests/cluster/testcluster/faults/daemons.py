"""Faults of the cluster's own processes: API server, controllers, kubelets, container runtimes. Pure."""

from __future__ import annotations

from .fault import Change, Fault, Kubectl, StartComponent, StopComponent

_API_SERVER = "kube-apiserver"
_READY = Kubectl(("get", "--raw", "/readyz"), retry_seconds=60)


def stop_component(name: str) -> Fault:
    """Kill a component, such as kube-scheduler, kube-controller-manager, kubelet-node1, containerd-node1 or etcd."""
    change = Change(StopComponent(name), (StartComponent(name),))
    return Fault(f"{name} stopped", (change,), disturbs_watches=True)


def stop_kubelet(node: str) -> Fault:
    """Kill a node's kubelet: its containers go on, nobody restarts or reports them."""
    return stop_component(f"kubelet-{node}")


def stop_api_server() -> Fault:
    """Kill the API server; clients meet a refused connection."""
    change = Change(StopComponent(_API_SERVER), (StartComponent(_API_SERVER), _READY))
    return Fault("API server stopped", (change,), disturbs_watches=True)


def restart_api_server() -> Fault:
    """Kill the API server, start it, wait until it is ready: watches break, and it answers 403 for a moment."""
    stop, start = Change(StopComponent(_API_SERVER)), Change(StartComponent(_API_SERVER))
    return Fault("API server restarted", (stop, start, Change(_READY)), disturbs_watches=True)
