"""Where a run that waits stands in its Kueue queue: before how many, what it needs, what is free. Pure.

What could not be read is left out: an ordinary user often sees the queue, and not the quota behind it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.cluster.gpus import count_gpus
from trainchart.cluster.snapshot import Object, Objects, Unreadable, items_of, listed, name_of, section
from trainchart.quantities import parse_quantity
from trainchart.reports.report import QueueStanding
from trainchart_runtime.contract import QUEUE_ANNOTATION, REPLICAS_ANNOTATION

_CPU = "cpu"


@dataclass(frozen=True)
class QueueSight:
    """What was seen of one queue."""

    pending: Objects = ()
    """Those that wait in it, the next one first."""
    cluster_queues: Objects = ()
    """The ClusterQueue behind it."""


def find_queue(sets: Objects) -> str:
    """Return the queue that the StatefulSets of a training name; "" where they name none."""
    names = (section(each, "metadata", "annotations").get(QUEUE_ANNOTATION) for each in listed(sets))
    return next((str(name) for name in names if name), "")


def find_standing(name: str, sets: Sequence[Object], sight: QueueSight) -> QueueStanding:
    """Return where the training of these StatefulSets stands in the queue `name`."""
    own = {name_of(each) for each in sets}
    pending = None if isinstance(sight.pending, Unreadable) else sight.pending
    place = next((number for number, each in enumerate(pending or (), 1) if _owners(each) & own), None)
    needs = _sum_needs(sets)
    free = _sum_free(sight.cluster_queues, needs)
    return QueueStanding(name, place, None if pending is None else len(pending), needs, free)


def _owners(each: Object) -> set[str]:
    owners = section(each, "metadata").get("ownerReferences")
    return (
        {str(owner.get("name")) for owner in owners if isinstance(owner, Mapping)}
        if isinstance(owners, list)
        else set()
    )


def _sum_needs(sets: Sequence[Object]) -> dict[str, float]:
    """Return the GPUs that all pods need together; CPUs where they need none."""
    gpus: Counter[str] = Counter()
    cpus = 0.0
    for each in sets:
        spec = section(each, "spec", "template", "spec")
        number = int(_amount(section(each, "metadata", "annotations").get(REPLICAS_ANNOTATION)))
        gpus.update({resource: number * count for resource, count in count_gpus(spec).items()})
        containers = spec.get("containers")
        for container in containers if isinstance(containers, list) else ():
            cpus += number * _amount(section(container, "resources", "requests").get(_CPU))
    return {resource: float(count) for resource, count in gpus.items() if count} or {_CPU: cpus}


def _sum_free(cluster_queues: Objects, needs: Mapping[str, float]) -> dict[str, float] | None:
    """Return what is left of the nominal quota of the resources in `needs`; None where it is not known."""
    queues = listed(cluster_queues)
    if not queues:
        return None
    left: dict[tuple[str, str], float] = {}
    for group in items_of(section(queues[0], "spec"), "resourceGroups"):
        left |= _read_amounts(items_of(group, "flavors"), "nominalQuota")
    for key, used in _read_amounts(items_of(section(queues[0], "status"), "flavorsReservation"), "total").items():
        left[key] = left.get(key, 0.0) - used
    return {
        resource: sum(max(0.0, amount) for (_, known), amount in left.items() if known == resource)
        for resource in needs
    }


def _read_amounts(flavors: Sequence[Object], key: str) -> dict[tuple[str, str], float]:
    """Return (flavor, resource) → amount."""
    return {
        (str(flavor.get("name")), str(resource.get("name"))): _amount(resource.get(key))
        for flavor in flavors
        for resource in items_of(flavor, "resources")
    }


def _amount(value: Any) -> float:
    amount = float(parse_quantity(value) or 0) if isinstance(value, (str, int)) else 0.0
    return amount if math.isfinite(amount) else 0.0
