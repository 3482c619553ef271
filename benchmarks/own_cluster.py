"""The tests' own cluster for benchmarks: started for one section, ended with it, however that ends."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import psutil

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.cluster import start_cluster
from tests.cluster.testcluster.faults import Site
from tests.cluster.testcluster.faults.processes import Container, Victim, find_processes
from tests.cluster.testcluster.ingredients import find_home, prepare_ingredients
from tests.cluster.testcluster.pods import dump_objects
from tests.cluster.testcluster.releases import Release

MEBIBYTE = 1 << 20
_SCHEMA = "benchmark"
_POLL_SECONDS = 0.05
Value = TypeVar("Value")


@contextmanager
def own_cluster() -> Iterator[Site]:
    """Start a cluster that ends with this block, and with this process at the latest."""
    cluster = start_cluster(prepare_ingredients(), find_home())
    try:
        yield Site(cluster, Access(cluster.kubeconfig, None, (cluster.programs,), cluster.config.address))
    finally:
        cluster.stop()


def make_namespace(site: Site, name: str) -> str:
    """Make a namespace with Pod Security `restricted`; it ends with the cluster."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    site.access.kubectl("create", "-f", "-", text=dump_objects(namespace))
    return name


@dataclass(frozen=True)
class RequestCount:
    """Counts what the service accounts of a namespace ask of the API server, with a FlowSchema of their own."""

    access: Access

    def begin(self, namespace: str) -> None:
        """Count from now on. They share the priority level that service accounts have anyhow."""
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": True}
        group = {"kind": "Group", "group": {"name": f"system:serviceaccounts:{namespace}"}}
        schema = {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": _SCHEMA},
            "spec": {
                "priorityLevelConfiguration": {"name": "workload-low"},
                "matchingPrecedence": 500,
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [{"subjects": [group], "resourceRules": [everything]}],
            },
        }
        self.access.kubectl("apply", "-f", "-", text=dump_objects(schema))

    def read(self) -> float:
        """Return the requests since then, a watch counting as one."""
        metrics = self.access.kubectl("get", "--raw", "/metrics")
        pattern = rf'^apiserver_flowcontrol_dispatched_requests_total{{flow_schema="{_SCHEMA}".*}} (\S+)$'
        return sum(float(number) for number in re.findall(pattern, metrics, flags=re.MULTILINE))

    def per_minute(self, seconds: float) -> float:
        """Return how many come in a minute, counted over so many seconds from now."""
        before, begun = self.read(), time.monotonic()
        time.sleep(seconds)
        return (self.read() - before) * 60 / (time.monotonic() - begun)


def controller_memory(site: Site, release: Release) -> float:
    """Return the MiB that the run controller of a release holds, what it shares with others included."""
    (pod,) = release.pods(site.access.client(), "controller")
    processes = find_processes(site, Container(release.namespace, pod), Victim.EVERY)
    return max(psutil.Process(process.pid).memory_info().rss for process in processes) / MEBIBYTE


def wait_for(read: Callable[[], Value | None], what: str, deadline_seconds: float = 120) -> Value:
    """Return the first value of `read` that is neither None nor False; TimeoutError where none comes."""
    deadline = time.monotonic() + deadline_seconds
    while True:
        value = read()
        if value is not None and value is not False:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {deadline_seconds:.0f} s")
        time.sleep(_POLL_SECONDS)
