"""Counts accelerators: what a pod's containers ask for, and so hold, beside CPU, memory and disk."""

from __future__ import annotations

from collections import Counter

from trainchart.cluster.snapshot import Object, section
from trainchart.quantities import may_be_gpu, parse_quantity


def count_gpus(pod_spec: Object) -> dict[str, int]:
    """Return resource → number for a pod's spec: GPUs of any maker, or whatever else the chart calls one.

    A chart may name any extended resource as its GPU, so all of them count but those known to be something else.
    """
    total: Counter[str] = Counter()
    containers = pod_spec.get("containers")
    for container in containers if isinstance(containers, list) else ():
        for resource, quantity in section(container, "resources", "limits").items():
            number = int(parse_quantity(quantity) or 0) if isinstance(quantity, (str, int)) else 0
            if may_be_gpu(str(resource)) and number > 0:
                total[str(resource)] += number
    return dict(total)
