"""Faults of the network: cuts without a word to either side, slow cables, DNS that fails in three ways. Pure.

Packets are dropped before any address translation and leave no RST and no ICMP, as when a switch dies. The kernel of
the test machine may lack netem, so there is no added delay or loss, only little room on the cable.
"""

from __future__ import annotations

import json

from .. import config, files
from ..config import NODES, ClusterConfig
from .fault import Change, Fault, Inside, Kubectl

MARK = "trainchart-fault"
"""Comment of every rule, by which leftovers are found."""
DNS_DEPLOYMENT = ("deployment/coredns", "--namespace=kube-system")


def partition_node(node: str) -> Fault:
    """Cut a node off from everything but itself; its pods go on and reach each other."""
    return Fault(
        f"{node} cut off",
        (
            _drop(node, "raw", "PREROUTING", "-i", "eth0"),
            _drop(node, "mangle", "POSTROUTING", "-o", "eth0"),
        ),
        # A connection that the silence has not ended stays in use, and TCP tries again ever more seldom.
        disturbs_watches=True,
    )


def partition_addresses(one: str, other: str) -> Fault:
    """Cut two sides off from each other, addresses or ranges: of pods, nodes, or a Service as its clients see it."""
    return Fault(
        f"{one} and {other} cut off from each other",
        tuple(
            _drop(node.name, "raw", "PREROUTING", "-s", source, "-d", target)
            for node in NODES
            for source, target in ((one, other), (other, one))
        ),
    )


def hide_api_from_pods() -> Fault:
    """Let no pod reach the API server, while kubelets and tests do."""
    return partition_addresses(config.POD_CIDR, config.API_SERVICE_ADDRESS)


def slow_node(node: str, kilobits_per_second: int) -> Fault:
    """Leave little room on a node's cable, in each direction."""
    changes: list[Change] = []
    for device, namespace in (("eth0", node), (node, None)):
        queue = ("htb", "default", "1")
        limit = ("htb", "rate", f"{kilobits_per_second}kbit")
        add = ("tc", "qdisc", "add", "dev", device, "root", "handle", "1:", *queue)
        remove = ("tc", "qdisc", "del", "dev", device, "root")
        narrow = ("tc", "class", "add", "dev", device, "parent", "1:", "classid", "1:1", *limit)
        changes += [Change(Inside(add, namespace), (Inside(remove, namespace),)), Change(Inside(narrow, namespace))]
    return Fault(f"{node} slow", tuple(changes))


def silence_dns() -> Fault:
    """Let every pod's DNS query time out."""
    return Fault(
        "DNS silent",
        tuple(
            _drop(node.name, "raw", "PREROUTING", "-p", protocol, "--dport", "53")
            for node in NODES
            for protocol in ("udp", "tcp")
        ),
    )


def remove_dns() -> Fault:
    """End CoreDNS: queries are refused at once."""
    return Fault("DNS gone", (_without_dns(),))


def break_dns(cluster: ClusterConfig) -> Fault:
    """Let CoreDNS answer every query with SERVFAIL."""
    broken = ".:53 {\n    errors\n    ready\n    template ANY ANY {\n        rcode SERVFAIL\n    }\n}\n"
    # Scaled to zero first rather than rolled, since a rolling update may put both onto one node.
    gone = _without_dns()
    configured = Change(_configure_dns(broken), (_scale_dns(0), _configure_dns(files.dump_corefile(cluster))))
    back = Change(_scale_dns(len(NODES)))
    return Fault("DNS answering SERVFAIL", (gone, configured, back, Change(_await_dns())))


def _without_dns() -> Change:
    return Change(_scale_dns(0), (_scale_dns(len(NODES)), _await_dns()))


def _scale_dns(replicas: int) -> Kubectl:
    return Kubectl(("scale", *DNS_DEPLOYMENT, f"--replicas={replicas}"))


def _await_dns() -> Kubectl:
    return Kubectl(("rollout", "status", *DNS_DEPLOYMENT, "--timeout=60s"))


def _configure_dns(corefile: str) -> Kubectl:
    patch = json.dumps({"data": {"Corefile": corefile}})
    return Kubectl(("patch", "configmap/coredns", "--namespace=kube-system", "--type=merge", f"--patch={patch}"))


def _drop(node: str, table: str, chain: str, *match: str) -> Change:
    rule = (chain, *match, "-m", "comment", "--comment", MARK, "-j", "DROP")
    iptables = ("iptables", "--wait", "5", "-t", table)
    return Change(Inside((*iptables, "-I", *rule), node), (Inside((*iptables, "-D", *rule), node),))
