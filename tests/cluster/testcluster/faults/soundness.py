"""Whether a cluster is as it was before anything was broken: asked at the end of each test that used a fault."""

from __future__ import annotations

import itertools
import json
import sys
import time
from collections.abc import Iterator

from lightkube.core.client import Client
from lightkube.resources.apps_v1 import DaemonSet
from lightkube.resources.core_v1 import Node, Pod

from .. import config
from ..cluster import ClusterError
from ..config import DNS_ADDRESS, NODES
from .network import MARK
from .site import Site
from .storage import FILLER

_DEADLINE_SECONDS = 90
_POLL_SECONDS = 0.3

RESOLVE = """
import socket, sys
name = b"".join(bytes([len(label)]) + label for label in sys.argv[2].encode().split(b".")) + b"\\0"
query = b"\\x12\\x34\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0" + name + b"\\0\\1\\0\\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as resolver:
    resolver.settimeout(1)
    resolver.connect((sys.argv[1], 53))
    resolver.send(query)
    answer = resolver.recv(512)
code, answers = answer[3] & 15, int.from_bytes(answer[6:8], "big")
print(f"code {code}, {answers} answers")
sys.exit(code or not answers)
"""
"""A program: asks a server for the address of a name, once, and prints what comes back; fails without an address."""

_probes = itertools.count()


def await_soundness(site: Site, disturbed_watches: bool) -> list[str]:
    """Wait until nothing is wrong any more and return what still is.

    Where components may notice late that a fault is over, wait as well until every node starts a pod.
    """
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while left := find_problems(site):
        if time.monotonic() > deadline:
            return left
        time.sleep(_POLL_SECONDS)
    return _await_pods(site, deadline) if disturbed_watches else []


def find_problems(site: Site) -> list[str]:
    """Return what is not as it was, a line each."""
    try:
        return list(_find_problems(site, site.access.client()))
    # Of any library below: what cannot be asked is not as it was either, and may be a moment later.
    except Exception as error:
        return [f"the cluster cannot be asked: {type(error).__name__}: {error}"]


def _find_problems(site: Site, client: Client) -> Iterator[str]:
    yield from _find_node_problems(client)
    yield from _find_dns_problems(client)
    for node in NODES:
        for table in ("raw", "mangle"):
            rules = site.cluster.run_inside(["iptables", "--wait", "5", "-t", table, "-S"], node=node.name).stdout
            yield from (f"rule on {node.name}: {rule}" for rule in rules.splitlines() if MARK in rule)
        for device, namespace in (("eth0", node.name), (node.name, None)):
            queue = site.cluster.run_inside(["tc", "qdisc", "show", "dev", device], node=namespace).stdout
            if "noqueue" not in queue:
                yield f"queue of {device} at {node.name}: {queue.strip()}"
        try:
            name = "kubernetes.default.svc.cluster.local"
            site.cluster.run_inside([sys.executable, "-S", "-c", RESOLVE, DNS_ADDRESS, name], node=node.name)
        except ClusterError as error:
            yield f"DNS as {node.name} sees it: {str(error).splitlines()[-1]}"
    if site.cluster.run_inside(["test", "-e", FILLER], check=False).returncode == 0:
        yield f"{FILLER} is there"


def _find_node_problems(client: Client) -> Iterator[str]:
    nodes = {node.metadata.name: node for node in client.list(Node) if node.metadata}
    for name, gpus in ((node.name, node.gpus) for node in NODES):
        node = nodes.get(name)
        if node is None or node.spec is None or node.status is None:
            yield f"{name} is gone"
            continue
        ready = {condition.type: condition.status for condition in node.status.conditions or []}.get("Ready")
        if ready != "True":
            yield f"{name} is Ready: {ready}"
        if node.spec.unschedulable:
            yield f"{name} is cordoned"
        yield from (f"{name} has the taint {taint.key}" for taint in node.spec.taints or [])
        if (node.status.allocatable or {}).get(config.GPU_RESOURCE) != str(gpus):
            yield f"{name} has lost its GPUs"


def _find_dns_problems(client: Client) -> Iterator[str]:
    pods = list(client.list(Pod, namespace="kube-system", labels={"k8s-app": "kube-dns"}))
    served = {pod.spec.nodeName for pod in pods if pod.spec and _is_ready(pod)}
    yield from (f"{node.name} has no CoreDNS that is ready" for node in NODES if node.name not in served)
    if len(pods) != len(NODES):
        yield f"there are {len(pods)} pods of CoreDNS"


def _is_ready(pod: Pod) -> bool:
    conditions = (pod.status and pod.status.conditions) or []
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def _await_pods(site: Site, deadline: float) -> list[str]:
    name = f"trainchart-fault-probe-{next(_probes)}"
    labels = {"app": name}
    container = {"name": "probe", "image": f"{config.REGISTRY_HOST}/ml/digits:1.0.0", "command": ["sleep", "600"]}
    probe = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    }
    client = site.access.client()
    site.access.kubectl("apply", "-f", "-", text=json.dumps(probe))
    try:
        while True:
            status = client.get(DaemonSet, name, namespace="default").status
            if status and status.numberReady == len(NODES):
                return []
            if time.monotonic() > deadline:
                return [f"pods still do not start on every node: {status and status.to_dict()}"]
            time.sleep(_POLL_SECONDS)
    finally:
        site.access.kubectl("delete", "daemonset", name, "-n", "default", "--wait=false")
