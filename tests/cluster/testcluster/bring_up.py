"""Bring a cluster up from inside its namespaces, in an order that lets everything slow happen side by side."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from . import cgroups, components, config, files
from .components import KUBECONFIGS, PKI, VOLUMES
from .config import INSIDE, ClusterConfig, NodeConfig, Programs
from .images.containerd_root import copy_containerd_root
from .images.registry_storage import copy_registry_storage
from .pki import Authority, KeyPair, make_signing_key
from .supervisor import NotInTime, Supervisor

MANIFESTS = Path(__file__).parent / "manifests"
_DEADLINE_SECONDS = 120
"""Of each step, all of which take a few seconds on a machine that has time."""
VOLUME_BYTES = 8 << 30
"""Size of the file system that all volumes share; sparse, so only what is written takes room."""


@dataclass(frozen=True)
class Ingredients:
    """What a cluster is made from, prepared before it starts."""

    programs: Programs
    containerd_root: str
    """Prepared root of a containerd that holds all images; each node gets a copy."""
    registry_storage: str
    """Storage of a registry that holds all images; the run gets a copy."""
    pause_image: str
    coredns_image: str


class BringUp:
    """The steps; `run` takes them in order."""

    def __init__(self, cluster: ClusterConfig, folder: Path, ingredients: Ingredients, supervisor: Supervisor) -> None:
        self._cluster = cluster
        self._folder = folder
        self._ingredients = ingredients
        self._supervisor = supervisor
        self._programs = ingredients.programs

    def run(self) -> None:
        """Start everything and wait until pods can be scheduled on every node; see `supervisor` for the errors."""
        self._write_pki()
        supervisor, programs = self._supervisor, self._programs
        supervisor.start(components.plan_etcd(programs))
        supervisor.start(components.plan_api_server(programs, self._cluster))
        self._prepare_storage()
        for node in self._cluster.nodes:
            self._prepare_node(node)
            supervisor.start(components.plan_container_runtime(node))
        supervisor.start(components.plan_registry())
        self._wait_for_api()
        for component in components.plan_controllers(programs):
            supervisor.start(component)
        for node in self._cluster.nodes:
            supervisor.wait_until(
                lambda path=node.containerd_socket: Path(path).exists(),  # type: ignore[misc]
                f"containerd of {node.name}",
                _DEADLINE_SECONDS,
                (f"containerd-{node.name}",),
            )
            for component in components.plan_node(programs, node):
                supervisor.start(component)
        self._wait_for_nodes()
        self._apply_manifests()
        self._advertise_gpus()
        self._wait_for_dns()

    def _write_pki(self) -> None:
        authority = Authority()
        Path(PKI).mkdir()
        Path(KUBECONFIGS).mkdir()
        self._write_pair("ca", KeyPair(authority.private_key(), authority.certificate))
        self._write_pair("service-accounts", make_signing_key())
        names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost", "127.0.0.1")
        addresses = (config.API_SERVICE_ADDRESS, config.CONTROL_PLANE_ADDRESS, self._cluster.address)
        self._write_pair("kube-apiserver", authority.issue("kube-apiserver", addresses=(*names, *addresses)))
        self._write_pair("kube-apiserver-kubelet-client", authority.issue("kube-apiserver", groups=("system:masters",)))
        self._write_pair("aggregator", authority.issue("aggregator"))
        users = {
            "admin": ("admin", "system:masters"),
            "kube-controller-manager": ("system:kube-controller-manager", None),
            "kube-scheduler": ("system:kube-scheduler", None),
            "kube-proxy": ("system:kube-proxy", "system:node-proxier"),
        }
        users |= {f"kubelet-{node.name}": (f"system:node:{node.name}", "system:nodes") for node in self._cluster.nodes}
        inner = f"https://{config.CONTROL_PLANE_ADDRESS}:{config.API_PORT}"
        for file, (user, group) in users.items():
            pair = authority.issue(user, groups=(group,) if group else ())
            Path(KUBECONFIGS, file).write_text(files.dump_kubeconfig(inner, authority.certificate, pair))
            if file == "admin":
                outer = files.dump_kubeconfig(self._cluster.api_url, authority.certificate, pair)
                Path(INSIDE, "kubeconfig").write_text(outer)

    def _write_pair(self, name: str, pair: KeyPair) -> None:
        Path(PKI, f"{name}.key").write_bytes(pair.key)
        Path(PKI, f"{name}.crt").write_bytes(pair.certificate)

    def _prepare_storage(self) -> None:
        disk = Path(INSIDE, "volumes.ext4")
        Path(VOLUMES).mkdir()
        with disk.open("wb") as file:
            file.truncate(VOLUME_BYTES)
        _run("mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard", "-O", "^has_journal", str(disk))
        _run("mount", "-o", "loop", str(disk), str(VOLUMES))
        storage = INSIDE / "registry"
        # Hard links cannot cross mounts, so these copies go through the folder's own path instead of INSIDE.
        copy_registry_storage(Path(self._ingredients.registry_storage), self._folder / "registry")
        Path(INSIDE, "registry.yaml").write_text(files.dump_registry(str(storage)))
        hosts = Path(INSIDE, "registries", config.REGISTRY_HOST)
        hosts.mkdir(parents=True)
        Path(hosts, "hosts.toml").write_text(files.dump_registry_hosts())
        Path(INSIDE, "resolv.conf").write_text("")

    def _prepare_node(self, node: NodeConfig) -> None:
        cgroups.create_cgroup(self._cluster.cgroup(node))
        folder = Path(node.folder)
        for part in ("cni", "kubelet", "logs"):
            (folder / part).mkdir(parents=True)
        (folder / "cni" / "10-pods.conflist").write_text(files.dump_network(node))
        (folder / "containerd.toml").write_text(files.dump_containerd(node, self._ingredients.pause_image))
        (folder / "kubelet.yaml").write_text(files.dump_kubelet(self._cluster, node))
        (folder / "kube-proxy.yaml").write_text(files.dump_kube_proxy(node))
        copy_containerd_root(Path(self._ingredients.containerd_root), self._folder / node.name / "containerd")

    def _wait_for_api(self) -> None:
        self._supervisor.wait_until(
            lambda: self._kubectl("get", "--raw", "/readyz").returncode == 0,
            "the API server",
            _DEADLINE_SECONDS,
            ("kube-apiserver", "etcd"),
        )

    def _apply_manifests(self) -> None:
        texts = [path.read_text() for path in sorted(MANIFESTS.glob("*.yaml"))]
        text = "\n---\n".join(texts).replace("COREDNS_IMAGE", self._ingredients.coredns_image)
        text = text.replace("COREFILE", json.dumps(files.dump_corefile(self._cluster)))
        done = self._kubectl("apply", "--server-side", "-f", "-", text=text)
        if done.returncode != 0:
            raise RuntimeError(f"the cluster's own manifests are refused:\n{done.stderr}")

    def _wait_for_nodes(self) -> None:
        # A new node is Ready a moment before it loses the taint that kept pods away from it.
        ready = "{.status.conditions[?(@.type=='Ready')].status}"
        path = f"jsonpath={{range .items[*]}}{ready}{{.spec.taints[*].key}} {{end}}"
        wanted = "True " * len(self._cluster.nodes)
        self._supervisor.wait_until(
            lambda: self._kubectl("get", "nodes", "-o", path).stdout == wanted,
            "every node Ready and free of taints",
            _DEADLINE_SECONDS,
            tuple(f"kubelet-{node.name}" for node in self._cluster.nodes),
        )

    def _advertise_gpus(self) -> None:
        for node in self._cluster.nodes:
            gpus = {config.GPU_RESOURCE: str(node.gpus)}
            patch = json.dumps({"status": {"capacity": gpus, "allocatable": gpus}})
            done = self._kubectl("patch", "node", node.name, "--subresource=status", "--type=merge", f"--patch={patch}")
            if done.returncode != 0:
                raise RuntimeError(f"the GPUs of {node.name} cannot be advertised: {done.stderr}")

    def _wait_for_dns(self) -> None:
        dns = ("deployment/coredns", "--namespace=kube-system")
        ready = "jsonpath={.status.readyReplicas}"
        try:
            self._supervisor.wait_until(
                lambda: self._kubectl("get", *dns, "-o", ready).stdout != "",
                "CoreDNS",
                _DEADLINE_SECONDS,
                ("kubelet-node1",),
            )
        except NotInTime as error:
            raise NotInTime(f"{error}\nCoreDNS:\n{self._kubectl('logs', *dns).stdout}") from error

    def _kubectl(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        argv = [self._programs.kubernetes, "kubectl", f"--kubeconfig={KUBECONFIGS}/admin", *arguments]
        return subprocess.run(argv, input=text, capture_output=True, text=True)


def _run(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{argv[0]} exited with {done.returncode}: {done.stderr.strip()}")
