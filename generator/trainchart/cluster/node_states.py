"""Says which nodes take no pods, or no longer answer, in which words, and what opens them again. Pure."""

from __future__ import annotations

from trainchart.cluster.snapshot import Object, Objects, Unreadable, items_of, name_of, section
from trainchart.reports.text import describe_time
from trainchart_runtime.pod_problems import parse_time


def describe_failure(name: str, nodes: Objects) -> str:
    """Return how a node has failed, with what to do; "" for one that answers, or where that is not known."""
    if isinstance(nodes, Unreadable) or not nodes:
        return ""
    node = next((each for each in nodes if name_of(each) == name), None)
    if node is None:
        return f"{name} is not part of the cluster any more"
    since = find_silence(node)
    return (
        f"{name} is NotReady since {since} (kubectl describe node {name} shows why; only where its machine is off for "
        f"good: kubectl taint nodes {name} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute)"
        if since
        else ""
    )


def find_silence(node: Object) -> str:
    """Return since when a node is not ready; "" for one that is."""
    conditions = items_of(section(node, "status"), "conditions")
    ready = next((each for each in conditions if each.get("type") == "Ready"), {})
    at = parse_time(ready.get("lastTransitionTime"))
    return describe_time(at) if ready and ready.get("status") != "True" else ""
