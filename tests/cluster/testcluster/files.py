"""Text of the configuration files inside the cluster: pure, one function a file."""

from __future__ import annotations

import base64
import json
from typing import Any

from . import config
from .components import KUBECONFIGS
from .config import INSIDE, ClusterConfig, NodeConfig
from .pki import KeyPair

_UNUSED_PLUGINS = [
    *(f"io.containerd.snapshotter.v1.{name}" for name in ("aufs", "btrfs", "devmapper", "zfs")),
    "io.containerd.internal.v1.tracing",
]


def dump_kubeconfig(server: str, authority: bytes, user: KeyPair) -> str:
    """Dump a kubeconfig that needs no other file; JSON, which is YAML."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "trainchart-test",
        "contexts": [{"name": "trainchart-test", "context": {"cluster": "trainchart-test", "user": "user"}}],
        "clusters": [
            {
                "name": "trainchart-test",
                "cluster": {"server": server, "certificate-authority-data": _base64(authority)},
            }
        ],
        "users": [
            {
                "name": "user",
                "user": {
                    "client-certificate-data": _base64(user.certificate),
                    "client-key-data": _base64(user.key),
                },
            }
        ],
    }
    return json.dumps(document, indent=2)


def dump_kubelet(cluster: ClusterConfig, node: NodeConfig) -> str:
    """Dump the kubelet's configuration."""
    return _dump(
        "kubelet.config.k8s.io/v1beta1",
        "KubeletConfiguration",
        {
            "address": node.address,
            "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
            "clusterDomain": node.domain,
            "clusterDNS": [config.DNS_ADDRESS],
            "resolvConf": f"{INSIDE}/resolv.conf",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": f"{INSIDE}/pki/ca.crt"},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{cluster.cgroup(node)}",
            "failCgroupV1": False,
            "failSwapOn": False,
            # The machine may be short of disk and must not evict pods for it; nor may images vanish between tests.
            "imageGCHighThresholdPercent": 100,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            # Lowering a score needs rights that a container on a developer's machine may lack.
            "oomScoreAdj": 0,
            # Two kubelets of one machine would otherwise share /var/log/pods and delete each other's logs.
            "podLogsDir": f"{node.folder}/logs",
            "nodeStatusUpdateFrequency": "4s",
            # A kubelet renews its lease after a quarter of that: well within the controller manager's patience.
            "nodeLeaseDurationSeconds": 12,
            # Mounted ConfigMaps follow within seconds instead of minutes.
            "syncFrequency": "10s",
            "registryPullQPS": 0,
            "serializeImagePulls": False,
            "eventRecordQPS": 0,
            "volumePluginDir": f"{node.folder}/volume-plugins",
        },
    )


def dump_kube_proxy(node: NodeConfig) -> str:
    """Dump the configuration of kube-proxy; limits of the machine's connection tracking are left as they are."""
    return _dump(
        "kubeproxy.config.k8s.io/v1alpha1",
        "KubeProxyConfiguration",
        {
            "mode": "iptables",
            "clientConnection": {"kubeconfig": f"{KUBECONFIGS}/kube-proxy"},
            "hostnameOverride": node.name,
            "clusterCIDR": config.POD_CIDR,
            "bindAddress": node.address,
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
            "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
        },
    )


def dump_containerd(node: NodeConfig, pause_image: str) -> str:
    """Dump the configuration of a node's containerd (TOML, config version 2 of containerd 1.6)."""
    return f"""version = 2
root = "{node.folder}/containerd"
state = "{node.folder}/containerd-state"
oom_score = 0
disabled_plugins = {json.dumps(_UNUSED_PLUGINS)}

[grpc]
address = "{node.containerd_socket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause_image}"
restrict_oom_score_adj = true
max_concurrent_downloads = 4

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{node.folder}/cni"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "{INSIDE}/registries"
"""


def dump_registry_hosts() -> str:
    """Dump where containerd finds the images of REGISTRY_HOST: the run's own registry, without TLS."""
    url = f"http://{config.CONTROL_PLANE_ADDRESS}:{config.REGISTRY_PORT}"
    return f'server = "{url}"\n\n[host."{url}"]\ncapabilities = ["pull", "resolve"]\n'


def dump_registry(storage: str) -> str:
    """Dump the registry's configuration."""
    return json.dumps(
        {
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {"filesystem": {"rootdirectory": storage}, "delete": {"enabled": True}},
            "http": {"addr": f":{config.REGISTRY_PORT}"},
        }
    )


def dump_network(node: NodeConfig) -> str:
    """Dump the node's pod network: a bridge of its own, with static routes between the nodes instead of an overlay."""
    return json.dumps(
        {
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": "pods",
                    "isGateway": True,
                    # A pod that talks to itself through its Service.
                    "hairpinMode": True,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": f"{node.folder}/addresses",
                        "ranges": [[{"subnet": node.pod_cidr}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": True}},
            ],
        },
        indent=2,
    )


def dump_corefile(cluster: ClusterConfig) -> str:
    """Dump CoreDNS' configuration: short-lived answers, since a pod that comes back has another address."""
    zones = " ".join(cluster.domains)
    return f""".:53 {{
    errors
    health
    ready
    kubernetes {zones} in-addr.arpa ip6.arpa {{
        pods insecure
        ttl 5
    }}
    cache 5
    loadbalance
}}
"""


def _dump(api_version: str, kind: str, settings: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": api_version, "kind": kind, **settings}, indent=2)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
