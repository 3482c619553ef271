"""Decide which cluster the tests use: one that the user names, one of their own, or none, with the reason. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

NEEDED_PROGRAMS = (
    "containerd", "runc", "iptables", "conntrack", "ip", "nsenter", "unshare", "setpriv", "mkfs.ext4",
    "sysctl", "docker-registry", "buildah", "skopeo", "mmdebstrap",
)  # fmt: skip
"""Programs of the system that the tests' own cluster needs; names as on Debian."""

_NEEDED_CAPABILITIES = (12, 21)
"""CAP_NET_ADMIN and CAP_SYS_ADMIN, as capabilities(7) numbers them."""

NETWORK_PLUGINS = "/usr/lib/cni"
UNFIT_FILE_SYSTEM = "overlay"
"""Most containers' own. What lies on it cannot be written to through another overlay, as containerd's layers are."""


@dataclass(frozen=True)
class Machine:
    """What the decision depends on; `machine.py` reads it."""

    system: str
    """As `platform.system()` says it."""
    is_root: bool
    has_rights: bool
    """Whether root may do here what it may on a machine; see `parse_rights`."""
    found_programs: frozenset[str]
    has_network_plugins: bool
    has_go: bool
    cache_file_system: str
    """Kind of that on which the user's cache lies, where images and nodes are kept."""
    has_bridge_filter: bool
    """Whether iptables sees what crosses a bridge, which NetworkPolicies within a node need."""


@dataclass(frozen=True)
class Named:
    """A cluster of the user's: tests keep to namespaces of their own, and faults of nodes are out."""

    kubeconfig: str | None
    """None means kubectl's own default."""
    context: str | None

    def __str__(self) -> str:
        option = [f"--kube-context {self.context}"] if self.context else []
        variable = [f"KUBECONFIG={self.kubeconfig}"] if self.kubeconfig else []
        return f"the cluster of {' with '.join(option + variable)}"


@dataclass(frozen=True)
class Own:
    """A cluster that the tests start and end."""


@dataclass(frozen=True)
class Nowhere:
    """No cluster can be had."""

    reason: str
    """One line that names what is missing."""


def parse_rights(status: str, uid_map: str) -> bool:
    """Tell from /proc/self/status and uid_map whether a process of root's may make namespaces, mounts and interfaces.

    Containers mostly keep that back: by fewer capabilities, or by a user namespace, where they are worth less.
    """
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    is_whole = uid_map.split() == ["0", "0", str(2**32 - 1)]
    return is_whole and all(effective >> capability & 1 for capability in _NEEDED_CAPABILITIES)


def choose_cluster(context: str | None, environment: Mapping[str, str], machine: Machine) -> Named | Own | Nowhere:
    """Choose by the option --kube-context, then by KUBECONFIG, then by what the machine has."""
    kubeconfig = environment.get("KUBECONFIG") or None
    if context or kubeconfig:
        return Named(kubeconfig, context)
    missing = []
    if machine.system != "Linux":
        missing.append(f"Linux (this is {machine.system})")
    if not machine.is_root:
        missing.append("root")
    elif not machine.has_rights:
        missing.append("the rights of the machine's root, which this container keeps back")
    missing += [f"the program {name}" for name in NEEDED_PROGRAMS if name not in machine.found_programs]
    if not machine.has_network_plugins:
        missing.append(f"the network plugins in {NETWORK_PLUGINS}")
    if not machine.has_go:
        missing.append("Go")
    if machine.cache_file_system == UNFIT_FILE_SYSTEM:
        missing.append(f"a cache folder that is not on {UNFIT_FILE_SYSTEM} (name one by XDG_CACHE_HOME)")
    if not machine.has_bridge_filter:
        missing.append("the kernel module br_netfilter (modprobe br_netfilter)")
    if missing and machine.system != "Linux":
        missing = missing[:1]
    if missing:
        return Nowhere(f"no test cluster: missing {', '.join(missing)}; or name a cluster with --kube-context")
    return Own()
