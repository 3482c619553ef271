"""Fake nodes: pods that ask for them get them, real nodes stay as they are, and pods do as their annotations say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lightkube.core.client import Client
from lightkube.models.core_v1 import PodStatus
from lightkube.resources.apps_v1 import StatefulSet
from lightkube.resources.core_v1 import Node, Pod

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import Cluster
from tests.cluster.testcluster.config import GPU_RESOURCE
from tests.cluster.testcluster.fake_nodes import EXIT_CODE, EXIT_REASON, SELECTOR, TOLERATION, FakeNodes, fake_nodes
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.scheduled_pods import ScheduledPod

pytestmark = pytest.mark.cluster

PODS, GPUS = 20, 8
LABELS = {"app": "many"}


@pytest.fixture(scope="module")
def fakes(lasting_cluster: Cluster, admin: Access) -> Iterator[FakeNodes]:
    with fake_nodes(lasting_cluster, admin, count=10, gpus=GPUS) as nodes:
        yield nodes
    assert {node.metadata.name for node in admin.client().list(Node) if node.metadata} == {"node1", "node2"}


def test_pods_on_fake_nodes(admin: Access, module_namespace: str, fakes: FakeNodes) -> None:
    template = ScheduledPod(
        "many", labels=LABELS, spec={"nodeSelector": SELECTOR, "tolerations": [TOLERATION]}
    ).manifest()
    limits = template["spec"]["containers"][0]["resources"]["limits"]
    limits[GPU_RESOURCE] = str(GPUS // 2)
    many = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "many"},
        "spec": {
            "serviceName": "many",
            "replicas": PODS,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": LABELS},
            "template": {key: template[key] for key in ("metadata", "spec")},
        },
    }
    quota = ("patch", "resourcequota", "tests", "-n", module_namespace, "--type=merge")
    admin.kubectl(*quota, f'--patch={{"spec": {{"hard": {{"requests.{GPU_RESOURCE}": "{PODS * GPUS}"}}}}}}')
    real = ScheduledPod("real")
    admin.kubectl("apply", "-n", module_namespace, "-f", "-", text=dump_objects(many, real.manifest()))

    def is_complete(client: Client) -> bool:
        status = client.get(StatefulSet, "many", namespace=module_namespace).status
        return status is not None and status.readyReplicas == PODS

    admin.wait_for(is_complete, f"{PODS} pods that only seem to run", namespace=module_namespace)
    used = [
        pod.spec.nodeName for pod in admin.client().list(Pod, namespace=module_namespace, labels=LABELS) if pod.spec
    ]
    assert sorted(used) == sorted(2 * fakes.names)
    admin.kubectl("wait", "pod/real", "-n", module_namespace, "--for=condition=Ready", "--timeout=60s")
    placed = admin.client().get(Pod, "real", namespace=module_namespace).spec
    assert placed is not None
    assert placed.nodeName in ("node1", "node2")


def test_a_fake_pod_does_as_it_is_told(admin: Access, module_namespace: str, fakes: FakeNodes) -> None:
    spec = {"nodeSelector": SELECTOR, "tolerations": [TOLERATION]}
    told = ScheduledPod("told", spec=spec)
    once = ScheduledPod("once", spec={**spec, "restartPolicy": "Never"})
    admin.kubectl("apply", "-n", module_namespace, "-f", "-", text=dump_objects(told.manifest(), once.manifest()))

    def await_state(name: str, *expected: object) -> None:
        def is_met(client: Client) -> bool:
            status = client.get(Pod, name, namespace=module_namespace).status
            return status is not None and sum_up(status) == expected

        admin.wait_for(is_met, f"{name}: {expected}", namespace=module_namespace)

    def tell(name: str, *annotations: str) -> None:
        admin.kubectl("annotate", "pod", name, "-n", module_namespace, *annotations)

    await_state("told", "Running", "running", None, None, 0)
    tell("told", f"{EXIT_CODE}=137", f"{EXIT_REASON}=OOMKilled")
    await_state("told", "Running", "waiting", 137, "OOMKilled", 1)
    tell("told", f"{EXIT_CODE}-")
    await_state("told", "Running", "running", 137, "OOMKilled", 1)
    tell("once", f"{EXIT_CODE}=3")
    await_state("once", "Failed", "terminated", 3, "Error", 0)


def sum_up(status: PodStatus) -> tuple[object, ...]:
    """Sum up phase, state, code and reason of the last end, and restarts."""
    [container] = status.containerStatuses or [None]
    if container is None or container.state is None:
        return (status.phase,)
    state = next(name for name in ("running", "waiting", "terminated") if getattr(container.state, name))
    ends = [each.terminated for each in (container.state, container.lastState) if each and each.terminated]
    code, reason = (ends[0].exitCode, ends[0].reason) if ends else (None, None)
    return status.phase, state, code, reason, container.restartCount
