"""The cluster's network as batches of `ip` commands: `plan_*` decide them, the others run them.

A bridge joins the control plane and one network namespace per node; each node routes the other's pods to its address.
There is no default route out of the cluster: nothing in it can leave the machine.
"""

from __future__ import annotations

import subprocess

from . import config
from .config import ClusterConfig, NodeConfig

BRIDGE = "cluster"
UPLINK = "machine"
"""Name, inside, of the interface that leads to the machine."""

SYSCTLS = {
    "net/ipv4/ip_forward": "1",
    # Traffic between two pods of one node crosses only the bridge; policies must see it as well.
    "net/bridge/bridge-nf-call-iptables": "1",
}


def plan_control_plane(cluster: ClusterConfig) -> list[str]:
    """Plan the bridge, the nodes' cables and the routes to their pods."""
    commands = [
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"address add {config.CONTROL_PLANE_ADDRESS}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        f"address add {cluster.address}/30 dev {UPLINK}",
        f"link set {UPLINK} up",
    ]
    for node in cluster.nodes:
        commands += [
            f"link add {node.name} type veth peer name eth0 netns {node.name}",
            f"link set {node.name} master {BRIDGE} up",
            f"route add {node.pod_cidr} via {node.address}",
        ]
    return commands


def plan_node(cluster: ClusterConfig, node: NodeConfig) -> list[str]:
    """Plan a node's end of its cable and its routes to the other nodes' pods."""
    commands = [
        "link set lo up",
        f"address add {node.address}/24 dev eth0",
        "link set eth0 up",
        f"route add default via {config.CONTROL_PLANE_ADDRESS}",
    ]
    others = [other for other in cluster.nodes if other != node]
    return commands + [f"route add {other.pod_cidr} via {other.address}" for other in others]


def plan_machine(cluster: ClusterConfig, keeper_pid: int) -> list[str]:
    """Plan the machine's end of the pair that joins it to the cluster of this keeper."""
    return [
        f"link add {cluster.name} type veth peer name {UPLINK} netns {keeper_pid}",
        f"address add {cluster.machine_address}/30 dev {cluster.name}",
        f"link set {cluster.name} up",
    ]


def apply_inside(cluster: ClusterConfig) -> None:
    """Make bridge, namespaces and routes; runs inside the cluster's network namespace, once `UPLINK` is there."""
    for node in cluster.nodes:
        subprocess.run(["ip", "netns", "add", node.name], check=True)
    apply(plan_control_plane(cluster))
    for node in cluster.nodes:
        apply(plan_node(cluster, node), in_namespace(node.name))
        settings = [f"{key}={value}" for key, value in SYSCTLS.items()]
        subprocess.run([*in_namespace(node.name), "sysctl", "-qw", *settings], check=True)
    subprocess.run(["sysctl", "-qw", "net/ipv4/ip_forward=1"], check=True)


def remove_interface(cluster: ClusterConfig) -> None:
    """Remove the machine's end of the pair of a cluster that has ended, if the kernel has not got round to it yet."""
    subprocess.run(["ip", "link", "delete", cluster.name], stderr=subprocess.DEVNULL)


def apply(commands: list[str], prefix: tuple[str, ...] = ()) -> None:
    """Run `ip` commands as one batch."""
    subprocess.run([*prefix, "ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


def in_namespace(node: str) -> tuple[str, ...]:
    """Return what to put before a command to run it in a node's network.

    Not `ip netns exec`: it mounts /sys anew and so hides file systems that were mounted since.
    """
    return ("nsenter", f"--net=/run/netns/{node}", "--")
