"""Which processes make the cluster, and with which arguments: pure.

Flags that are not obvious have their reason beside them; `files.py` writes the files that the arguments name.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import config
from .config import INSIDE, ClusterConfig, NodeConfig, Programs

PKI = INSIDE / "pki"
KUBECONFIGS = INSIDE / "kubeconfigs"
VOLUMES = INSIDE / "volumes"
"""Root of everything that the test storage driver keeps: a file system of its own, so that it can be filled."""


_OWN_STATE = (
    *("unshare", "--mount", "--propagation", "unchanged"),
    *("sh", "-c", 'mount -t tmpfs tmpfs /var/lib/kubelet && exec "$@"', "kubelet"),
)
"""Put before a kubelet: gives it a /var/lib/kubelet of its own, where it opens a socket whatever its root is."""


@dataclass(frozen=True)
class Component:
    """A process that belongs to the cluster as long as it lives."""

    name: str
    argv: tuple[str, ...]
    node: str | None = None
    """The node whose network namespace it runs in; None means the control plane's."""
    ready_url: str | None = None
    """Answers 200 once the component works, where it has such a URL."""


def plan_etcd(programs: Programs) -> Component:
    """Plan etcd on loopback; nothing in it outlives the run, so it never waits for the disk."""
    arguments = (
        f"--data-dir={INSIDE}/etcd",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    return Component("etcd", (programs.kubernetes, "etcd", *arguments), ready_url="http://127.0.0.1:2379/readyz")


def plan_api_server(programs: Programs, cluster: ClusterConfig) -> Component:
    """Plan the API server, reachable from pods, kubelets and the machine's end of the pair."""
    arguments = (
        "--etcd-servers=http://127.0.0.1:2379",
        f"--advertise-address={config.CONTROL_PLANE_ADDRESS}",
        f"--secure-port={config.API_PORT}",
        f"--service-cluster-ip-range={config.SERVICE_CIDR}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        "--kubelet-preferred-address-types=InternalIP",
        f"--client-ca-file={PKI}/ca.crt",
        f"--tls-cert-file={PKI}/kube-apiserver.crt",
        f"--tls-private-key-file={PKI}/kube-apiserver.key",
        f"--kubelet-client-certificate={PKI}/kube-apiserver-kubelet-client.crt",
        f"--kubelet-client-key={PKI}/kube-apiserver-kubelet-client.key",
        # As in every other cluster, so that API servers beside this one know who asks them.
        f"--requestheader-client-ca-file={PKI}/ca.crt",
        "--requestheader-allowed-names=aggregator",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={PKI}/aggregator.crt",
        f"--proxy-client-key-file={PKI}/aggregator.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={PKI}/service-accounts.crt",
        f"--service-account-signing-key-file={PKI}/service-accounts.key",
        # Tests ask for tokens that run out while they look on.
        "--service-account-extend-token-expiration=false",
    )
    return Component("kube-apiserver", (programs.kubernetes, "kube-apiserver", *arguments))


RATES = ("--kube-api-qps=300", "--kube-api-burst=600")
"""The default of 20 requests a second makes a thousand pods take a minute instead of ten seconds."""


def plan_controllers(programs: Programs, rates: tuple[str, ...] = RATES) -> list[Component]:
    """Plan the controller manager, the scheduler and the provisioner of the test storage; no rates: the defaults."""
    return [
        Component(
            "kube-controller-manager",
            (
                programs.kubernetes,
                "kube-controller-manager",
                f"--kubeconfig={KUBECONFIGS}/kube-controller-manager",
                "--use-service-account-credentials",
                f"--root-ca-file={PKI}/ca.crt",
                f"--service-account-private-key-file={PKI}/service-accounts.key",
                f"--cluster-signing-cert-file={PKI}/ca.crt",
                f"--cluster-signing-key-file={PKI}/ca.key",
                "--leader-elect=false",
                # A quarter of the default: a lost node is a test's subject, and its time.
                "--node-monitor-grace-period=12s",
                "--node-monitor-period=2s",
                # A third of the default, for tests that wait for it.
                "--horizontal-pod-autoscaler-sync-period=5s",
                *rates,
            ),
        ),
        Component(
            "kube-scheduler",
            (
                programs.kubernetes,
                "kube-scheduler",
                f"--kubeconfig={KUBECONFIGS}/kube-scheduler",
                "--leader-elect=false",
                *rates,
            ),
        ),
        Component(
            "storage-provisioner",
            (programs.storage, "provision", f"--kubeconfig={KUBECONFIGS}/admin", f"--data-root={VOLUMES}"),
        ),
    ]


def plan_registry() -> Component:
    """Plan the image registry, which serves the pods' images and takes what tests push."""
    url = f"http://127.0.0.1:{config.REGISTRY_PORT}/v2/"
    return Component("registry", ("docker-registry", "serve", f"{INSIDE}/registry.yaml"), ready_url=url)


def plan_container_runtime(node: NodeConfig) -> Component:
    """Plan a node's containerd. It runs in the node's network, since it calls the network plugins."""
    argv = ("containerd", f"--config={node.folder}/containerd.toml")
    return Component(f"containerd-{node.name}", argv, node.name)


def plan_node(programs: Programs, node: NodeConfig) -> list[Component]:
    """Plan everything of a node but its containerd."""
    return [
        Component(
            f"kubelet-{node.name}",
            (
                *_OWN_STATE,
                programs.kubernetes,
                "kubelet",
                f"--config={node.folder}/kubelet.yaml",
                f"--kubeconfig={KUBECONFIGS}/kubelet-{node.name}",
                f"--root-dir={node.kubelet_root}",
                f"--cert-dir={node.folder}/kubelet-pki",
                f"--node-ip={node.address}",
                f"--hostname-override={node.name}",
            ),
            node.name,
        ),
        Component(
            f"kube-proxy-{node.name}",
            (programs.kubernetes, "kube-proxy", f"--config={node.folder}/kube-proxy.yaml"),
            node.name,
        ),
        Component(
            f"networkpolicy-{node.name}",
            (programs.networkpolicy, f"--kubeconfig={KUBECONFIGS}/admin", f"--node-name={node.name}"),
            node.name,
        ),
        Component(
            f"storage-{node.name}",
            (
                programs.storage,
                "driver",
                f"--node-id={node.name}",
                f"--endpoint={node.kubelet_root}/plugins/storage.trainchart.test/csi.sock",
                f"--kubelet-root={node.kubelet_root}",
                f"--data-root={VOLUMES}",
                f"--mounts={node.mounts}",
            ),
            node.name,
        ),
    ]
