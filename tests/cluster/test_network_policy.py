"""Who reaches the pods of a release: its own pods everything, others what the values allow and nothing else."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from lightkube.resources.core_v1 import Node

from tests.cluster.testcluster import config
from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.pods import dump_objects, plan_namespace
from tests.cluster.testcluster.reach import wait_for_reach
from tests.cluster.testcluster.releases import PROJECT, Release, merge_values, mnist_values
from tests.cluster.testcluster.runs import CONTROLLED
from tests.cluster.testcluster.scheduled_pods import ScheduledPod
from trainchart_runtime.cluster import ROLES

pytestmark = pytest.mark.cluster

# Stands for TensorFlow's server, which listens on the same port and takes commands from whoever reaches it.
SERVE = "import socket, time; server = socket.create_server(('', 2222)); time.sleep(86400)"
ASK = """
import sys, urllib.error, urllib.request
try:
    print(urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers={"Authorization": sys.argv[2]})).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""
"""A program: prints the status of an answer to a request with a credential."""
PORTS = {"training": 2222, "status": 2223, "tensorboard": 6006}
EVERYTHING = set(PORTS)
ALLOWED = {
    "exp1-mnist-worker-0": EVERYTHING,
    "exp1-mnist-evaluator-0": EVERYTHING,
    "stranger-near": set(),
    "stranger-far": set(),
    "other-release": set(),
    "browser": {"tensorboard"},
    "stranger-elsewhere": set(),
    "monitor-elsewhere": {"status"},
}
"""What each client reaches while the policy is on."""


@dataclass(frozen=True)
class Scene:
    """A release, the addresses of its doors, and clients in two namespaces."""

    release: Release
    targets: Mapping[str, str]
    """Name of a port → host:port."""
    elsewhere: str
    """Another namespace, of the clients whose names say so."""

    def await_reached(self, expected: Mapping[str, set[str]], what: str) -> None:
        """Wait until each client reaches just these doors; policies take effect a moment after they are made."""
        namespace = self.release.namespace
        wait_for_reach(
            self.release.access,
            self.targets,
            expected,
            what,
            lambda client: self.elsewhere if client.endswith("-elsewhere") else namespace,
        )


@pytest.fixture(scope="module")
def elsewhere(admin: Access, module_namespace: str) -> Iterator[str]:
    name = f"{module_namespace}-elsewhere"
    admin.kubectl("apply", "-f", "-", text=dump_objects(plan_namespace(name)))
    yield name
    admin.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def scene(admin: Access, module_namespace: str, elsewhere: str) -> Scene:
    monitors = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": elsewhere}},
        "podSelector": {"matchLabels": {"app": "monitor"}},
    }
    values = merge_values(
        mnist_values(),
        {
            "command": ["python3", "-c", SERVE],
            "roles": {role: {"memory": "128Mi", "shmSize": "16Mi", "replicas": 1} for role in ROLES},
            "networkPolicy": {
                "statusFrom": [monitors],
                "tensorboardFrom": [{"podSelector": {"matchLabels": {"app": "browser"}}}],
            },
        },
    )
    release = Release(admin, module_namespace, "exp1", PROJECT / "charts" / "mnist", values)
    release.install()
    labels = {**release.selector, "app.kubernetes.io/instance": "exp2"}
    nodes = sorted(str(node.metadata.name) for node in admin.client().list(Node) if node.metadata)
    near = [
        ScheduledPod("stranger-near", node=nodes[0]),
        ScheduledPod("stranger-far", node=nodes[-1]),
        ScheduledPod("other-release", labels=labels),
        ScheduledPod("browser", labels={"app": "browser"}),
    ]
    far = [ScheduledPod("stranger-elsewhere"), ScheduledPod("monitor-elsewhere", labels={"app": "monitor"})]
    for namespace, clients in ((module_namespace, near), (elsewhere, far)):
        admin.kubectl("apply", "-n", namespace, "-f", "-", text=dump_objects(*(pod.manifest() for pod in clients)))
        names = [f"pod/{pod.name}" for pod in clients]
        admin.kubectl("wait", "--for=condition=Ready", *names, "-n", namespace, "--timeout=60s")
    pods = release.wait_until_running(len(ROLES) + 1, deadline_seconds=120)
    addresses = {
        "tensorboard" if "tensorboard" in name else name: pod.status.podIP for name, pod in pods.items() if pod.status
    }
    chief = addresses["exp1-mnist-chief-0"]
    hosts = {"training": chief, "status": chief, "tensorboard": addresses["tensorboard"]}
    return Scene(release, {name: f"{host}:{PORTS[name]}" for name, host in hosts.items()}, elsewhere)


def test_strangers_reach_only_what_values_allow(scene: Scene) -> None:
    scene.await_reached(ALLOWED, "the policy's effect")


def test_without_lists_only_the_release_reaches_anything(scene: Scene) -> None:
    none = {"networkPolicy": {"statusFrom": [], "tensorboardFrom": []}}
    dataclasses.replace(scene.release, values=merge_values(scene.release.values, none)).upgrade()
    peers = set(scene.release.pods(scene.release.access.client()))
    scene.await_reached(
        {client: reached if client in peers else set() for client, reached in ALLOWED.items()}, "the end of exceptions"
    )


def test_without_the_policy_everybody_reaches_everything(scene: Scene) -> None:
    off = {"networkPolicy": {"enabled": False}}
    dataclasses.replace(scene.release, values=merge_values(scene.release.values, off)).upgrade()
    scene.await_reached(dict.fromkeys(ALLOWED, EVERYTHING), "no policy at all")
    access, namespace = scene.release.access, scene.release.namespace
    chief = ("exp1-mnist-chief-0", "-n", namespace)
    uid = access.kubectl("get", "pod", *chief, "-o", "jsonpath={.metadata.uid}")
    for key, code in (("", "401"), ("another", "401"), (uid, "200")):
        url = f"http://{scene.targets['status']}/status"
        argv = ("exec", "stranger-near", "-n", namespace, "--", "python3", "-c", ASK, url, f"Bearer {key}")
        assert access.kubectl(*argv).strip() == code, f"the key {key!r}"
    url = f"http://localhost:{PORTS['status']}/status"
    assert access.kubectl("exec", *chief, "--", "python3", "-c", ASK, url, "none").strip() == "200"


def test_restricted_egress_leaves_peers_dns_and_the_api_server(scene: Scene) -> None:
    release, access = scene.release, scene.release.access
    path = "jsonpath={.endpoints[*].addresses[*]}"
    endpoints = access.kubectl("get", "endpointslices", "-n", "default", "kubernetes", "-o", path).split()
    listed = [{"ipBlock": {"cidr": f"{address}/32"}} for address in (*endpoints, config.API_SERVICE_ADDRESS)]
    free: dict[str, Any] = {"run": CONTROLLED["run"]}
    restricted = merge_values(free, {"networkPolicy": {"restrictEgress": True, "apiServer": listed}})
    dataclasses.replace(release, values=merge_values(release.values, free)).upgrade()
    (job,) = access.kubectl("get", "jobs", "-n", release.namespace, "-o", "name").split()
    access.kubectl("wait", job, "-n", release.namespace, "--for=jsonpath={.status.ready}=1", "--timeout=60s")
    component = "app.kubernetes.io/component=controller"
    controller = access.kubectl("get", "pods", "-n", release.namespace, "-l", component, "-o", "name").strip()
    clients = ("exp1-mnist-worker-0", controller.removeprefix("pod/"))
    targets = {"peer": "exp1-mnist-chief-0.exp1-mnist:2222", "api": f"{config.API_SERVICE_ADDRESS}:443"}
    for values, of_worker in ((free, {"peer", "api"}), (restricted, {"peer"})):
        dataclasses.replace(release, values=merge_values(release.values, values)).upgrade()
        expected = dict(zip(clients, (of_worker, {"peer", "api"}), strict=True))
        wait_for_reach(access, targets, expected, f"egress with {values}", lambda client: release.namespace)
