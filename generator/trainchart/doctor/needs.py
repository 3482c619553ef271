"""What a rendered release needs: groups of equal pods that run at the same time, and what each of them requests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from trainchart.check.objects import Pods, find_pods, is_hook, mapping_at, mappings_at
from trainchart.helm.rendering import Rendering
from trainchart.quantities import read_amount
from trainchart_runtime.contract import COMPONENT_LABEL

_PARTS_OF_ONE = 1000
"""Quantities are counted in thousandths, the finest that Kubernetes knows, so that sums are exact and fast."""
PODS = "pods"
"""The resource of which each pod takes one."""
Amounts = Mapping[str, int]
"""Resource → thousandths of its unit: of a core, of a byte, of a GPU."""


@dataclass(frozen=True)
class PodGroup:
    """Equal pods: those of a role, the run controller's, TensorBoard's."""

    name: str
    """The role or component, as people call it."""
    count: int
    pod: Mapping[str, Any]
    """Metadata and spec, as the API server would be given each of them."""
    is_training: bool

    @property
    def spec(self) -> Mapping[str, Any]:
        return mapping_at(self.pod, "spec")

    @property
    def labels(self) -> Mapping[str, Any]:
        return mapping_at(self.pod, "metadata", "labels")

    @property
    def requests(self) -> Amounts:
        return add_requests(self.spec)


def find_groups(rendering: Rendering) -> tuple[PodGroup, ...]:
    """Return the pods of a release that run at the same time: not those of hooks, nor of a CronJob."""
    return tuple(_find_groups(rendering))


def _find_groups(rendering: Rendering) -> Iterator[PodGroup]:
    accounts = {each.name for each in rendering.manifests if each.kind == "ServiceAccount"}
    for pods in find_pods(rendering):
        count = pods.replicas
        if count and not is_hook(pods.manifest) and pods.manifest.kind != "CronJob":
            name = str(pods.labels.get(COMPONENT_LABEL) or pods.manifest.name)
            yield PodGroup(name, count, _make_pod(pods, accounts), pods.manifest.kind == "StatefulSet")


def make_group(pod: Mapping[str, Any]) -> PodGroup:
    """Return a pod that is there as a group of one."""
    return PodGroup(str(mapping_at(pod, "metadata").get("name")), 1, pod, is_training=False)


def add_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what the scheduler counts for a pod: its containers and sidecars, or its largest init container if more.

    A limit without a request counts as the request, as the API server fills it in.
    """
    return {**_add(spec, _requests_of), PODS: _PARTS_OF_ONE}


def add_limits(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what quotas count as the limits of a pod."""
    return _add(spec, lambda container: _read_amounts(mapping_at(container, "resources", "limits")))


def _add(spec: Mapping[str, Any], read: Callable[[Mapping[str, Any]], dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    peak: dict[str, int] = {}
    for container in mappings_at(spec, "initContainers"):
        own = read(container)
        if container.get("restartPolicy") == "Always":
            total.update(own)
            own = dict(total)
        else:
            own = dict(Counter(own) + total)
        peak = _largest(peak, own)
    for container in mappings_at(spec, "containers"):
        total.update(read(container))
    found = Counter(_largest(total, peak))
    found.update(_read_amounts(mapping_at(spec, "overhead")))
    return dict(found)


def read_thousandths(value: object) -> int:
    """Return a quantity in thousandths; 0 for what is none."""
    return int((read_amount(value) or Decimal(0)) * _PARTS_OF_ONE)


def list_ports(spec: Mapping[str, Any]) -> frozenset[tuple[str, int]]:
    """Return the ports of the node that a pod takes, with their protocols."""
    is_host = bool(spec.get("hostNetwork"))
    ports = (port for container in mappings_at(spec, "containers") for port in mappings_at(container, "ports"))
    taken = ((port.get("protocol"), port.get("hostPort") or (is_host and port.get("containerPort"))) for port in ports)
    return frozenset(
        (str(protocol or "TCP"), number) for protocol, number in taken if isinstance(number, int) and number
    )


def _requests_of(container: Mapping[str, Any]) -> dict[str, int]:
    limits = _read_amounts(mapping_at(container, "resources", "limits"))
    return {**limits, **_read_amounts(mapping_at(container, "resources", "requests"))}


def _read_amounts(quantities: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): read_thousandths(value) for name, value in quantities.items()}


def _largest(one: Amounts, other: Amounts) -> dict[str, int]:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in dict.fromkeys((*one, *other))}


def _make_pod(pods: Pods, accounts: set[str]) -> dict[str, Any]:
    """Return a pod as the API server would be given it; of `accounts`, which come with the release, it needs none."""
    metadata = {"labels": dict(pods.labels), "annotations": dict(pods.annotations)}
    spec = {key: value for key, value in pods.spec.items() if key != "serviceAccountName" or value not in accounts}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
