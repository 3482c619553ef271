"""Says which nodes take no pods, or no longer answer, in which words, and what opens them again. Pure."""

from __future__ import annotations

from trainchart.cluster.node_selection import find_closing_taint
from trainchart.cluster.snapshot import Object, Objects, Unreadable, items_of, name_of, section
from trainchart.reports.text import describe_time
from trainchart_runtime.log_text import shorten
from trainchart_runtime.pod_problems import parse_time

_OF_KUBERNETES = "node.kubernetes.io/"
"""Begins the keys of taints that Kubernetes sets again while their reason lasts."""

_MESSAGE_LIMIT = 160
"""Characters of what a kubelet says of its node, such as that the container runtime is down."""


def describe_failure(name: str, nodes: Objects) -> str:
    """Return how a node has failed, with what to do; "" for one that answers, or where that is not known."""
    if isinstance(nodes, Unreadable) or not nodes:
        return ""
    node = next((each for each in nodes if name_of(each) == name), None)
    if node is None:
        return f"{name} is no longer part of the cluster"
    silence = describe_silence(node)
    return (
        f"{silence} (kubectl describe node {name}; only if its machine is gone for good: kubectl taint nodes {name} "
        "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute)"
        if silence
        else ""
    )


def describe_silence(node: Object) -> str:
    """Return since when a node is not ready, and why as far as Kubernetes says it; "" for one that is."""
    since, ready = find_silence(node), _find_ready(node)
    message = shorten(" ".join(str(ready.get("message") or "").split()).strip("[]. "), _MESSAGE_LIMIT)
    return f"{name_of(node)} has been NotReady since {since}{message and f': {message}'}" if since else ""


def find_silence(node: Object) -> str:
    """Return since when a node is not ready; "" for one that is."""
    ready = _find_ready(node)
    at = parse_time(ready.get("lastTransitionTime"))
    return describe_time(at) if ready and ready.get("status") != "True" else ""


def _find_ready(node: Object) -> Object:
    conditions = items_of(section(node, "status"), "conditions")
    return next((each for each in conditions if each.get("type") == "Ready"), {})


def describe_closure(node: Object, pod: Object) -> str:
    """Return why a node takes no such pod, with what opens it; "" for one that is open."""
    name, silence = name_of(node), describe_silence(node)
    if section(node, "spec").get("unschedulable"):
        return f"{name} is cordoned (kubectl uncordon {name})"
    if silence:
        return f"{silence} (kubectl describe node {name})"
    taint = find_closing_taint(section(pod, "spec"), node)
    if taint is None:
        return ""
    key, effect = str(taint.get("key")), taint["effect"]
    cure = (
        f"kubectl describe node {name} shows why"
        if key.startswith(_OF_KUBERNETES)
        else f"kubectl taint nodes {name} {key}:{effect}- removes it; or give the pod a toleration"
    )
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{name} has the taint {key}{value}:{effect}, which the pod does not tolerate ({cure})"
