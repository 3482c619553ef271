"""What a test cluster looks like, as data: names, addresses and paths, decided before anything is started.

Addresses inside are the same in every run, because each run has network namespaces of its own. Only the pair of
addresses that joins the cluster to the machine differs, by the run's slot.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

INSIDE = PurePosixPath("/run/cluster")
"""Where the run's folder is mounted inside the cluster's namespaces: short, since paths of sockets have a limit."""

SLOTS = 128
"""How many clusters may run side by side; the slot is a byte of the address that joins machine and cluster."""

API_PORT = 6443
REGISTRY_PORT = 5000
REGISTRY_HOST = "registry.trainchart.test"
"""Host part of every image reference; containerd on the nodes knows which address stands behind it."""

CONTROL_PLANE_ADDRESS = "10.89.0.1"
BRIDGE_CIDR = "10.89.0.0/24"
POD_CIDR = "10.244.0.0/16"
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
GPU_RESOURCE = "nvidia.com/gpu"
GO_SETTINGS = {"GOGC": "400"}
"""Environment of Kubernetes, kubectl and helm: less time for garbage, more memory. A `helm template` takes 3/4."""


@dataclass(frozen=True)
class NodeConfig:
    """A real node: a kubelet and a containerd in a network namespace of their own."""

    name: str
    address: str
    """In the bridge's network."""
    pod_cidr: str
    domain: str
    """Cluster domain that the kubelet gives its pods; the nodes differ, so that no test can rely on one of them."""
    gpus: int = 4

    @property
    def folder(self) -> PurePosixPath:
        return INSIDE / self.name

    @property
    def containerd_socket(self) -> PurePosixPath:
        return self.folder / "containerd.sock"

    @property
    def kubelet_root(self) -> PurePosixPath:
        return self.folder / "kubelet"

    @property
    def mounts(self) -> PurePosixPath:
        """Holds the node's mounts of storage servers, by name."""
        return self.folder / "mounts"


NODES = (
    NodeConfig("node1", "10.89.0.11", "10.244.1.0/24", "cluster.local"),
    NodeConfig("node2", "10.89.0.12", "10.244.2.0/24", "kubernetes.example"),
)


@dataclass(frozen=True)
class ClusterConfig:
    """One run's cluster."""

    slot: int
    """0 ≤ slot < SLOTS; no two clusters of a machine have the same."""
    nodes: tuple[NodeConfig, ...] = NODES

    @property
    def name(self) -> str:
        """Name of the run's interface, cgroups and cluster; within the 15 characters of an interface."""
        return f"trainchart-{self.slot}"

    @property
    def machine_address(self) -> str:
        """The machine's end of the pair, from the range that RFC 2544 sets apart for tests."""
        return f"198.18.{self.slot}.1"

    @property
    def address(self) -> str:
        """The cluster's end of the pair, where tests reach the API server and the registry."""
        return f"198.18.{self.slot}.2"

    @property
    def api_url(self) -> str:
        return f"https://{self.address}:{API_PORT}"

    @property
    def domains(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(node.domain for node in self.nodes))

    def cgroup(self, node: NodeConfig) -> str:
        """Name of the cgroup, in every hierarchy, below which all pods of a node are."""
        return f"{self.name}-{node.name}"


@dataclass(frozen=True)
class Programs:
    """Paths of the programs that a cluster runs; see `programs.py`."""

    kubernetes: str
    storage: str
    networkpolicy: str
    kwok: str
    helm: str
    """For users of the cluster; nothing inside runs it."""
