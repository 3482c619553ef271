"""What pods use, by the metrics API and by their launchers, beside what they request. Pure.

What others have written is bounded: a number that no machine has is not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from trainchart.cluster.snapshot import Object, Objects, items_of, listed, name_of, namespace_of, section
from trainchart.errors import ClusterError
from trainchart.json_documents import parse_json
from trainchart.quantities import read_amount
from trainchart.reports.pod_use import LAUNCHER, METRICS_API, Amounts, GpuUse, Use
from trainchart_runtime.progress import parse_number

_USED = re.compile(r"([0-9]{1,20})(n|u)")
"""The metrics API counts CPUs in billionths and millionths too, which no request has."""
_FINE = {"n": Decimal("1e-9"), "u": Decimal("1e-6")}
_TEXT_LIMIT = 32
_CPU_LIMIT = 1e5
_MEMORY_LIMIT = 2.0**60
_GPUS_LIMIT = 64

PodKey = tuple[str, str]
"""Namespace and name."""


def parse_pod_metrics(objects: Objects) -> dict[PodKey, Use]:
    """Return what each pod uses by the metrics API: the sum of its containers."""
    found = {}
    for each in listed(objects):
        usages = [section(container, "usage") for container in items_of(each, "containers")]
        cpu = _add([_parse_used(usage.get("cpu"), _CPU_LIMIT) for usage in usages])
        memory = _add([_parse_used(usage.get("memory"), _MEMORY_LIMIT) for usage in usages])
        if cpu is not None or memory is not None:
            found[namespace_of(each), name_of(each)] = Use(cpu, memory, source=METRICS_API)
    return found


def parse_launcher_use(text: bytes) -> Use:
    """Return what a launcher's status says of its container.

    Raises:
        ClusterError: it cannot be read, or is of a launcher that does not measure.
    """
    try:
        document = parse_json(text)
    except ValueError as error:
        raise ClusterError(f"its status cannot be read: {error}") from error
    use = document.get("use") if isinstance(document, dict) else None
    if not isinstance(use, dict):
        raise ClusterError("its launcher is from an earlier version, which does not report resource use")
    gpus = use.get("gpus")
    return Use(
        _bound(use.get("cpu"), _CPU_LIMIT),
        _bound(use.get("memoryBytes"), _MEMORY_LIMIT),
        tuple(_parse_gpu(gpu) for gpu in gpus[:_GPUS_LIMIT] if isinstance(gpu, dict)) if isinstance(gpus, list) else (),
        source=LAUNCHER,
    )


def sum_amounts(pod: Object) -> Amounts:
    """Return what a pod requests of CPU and may use of memory; a limit is known only where every container has one."""
    spec = section(pod, "spec")
    sidecars = [each for each in items_of(spec, "initContainers") if each.get("restartPolicy") == "Always"]
    resources = [section(each, "resources") for each in (*items_of(spec, "containers"), *sidecars)]
    # Kubernetes takes the limit as the request where there is none.
    requests = [section(each, "requests").get("cpu", section(each, "limits").get("cpu")) for each in resources]
    limits = [read_amount(section(each, "limits").get("memory")) for each in resources]
    cpus = [amount for amount in map(read_amount, requests) if amount is not None]
    return Amounts(
        float(sum(cpus)) if cpus else None,
        float(sum(limit for limit in limits if limit is not None)) if limits and None not in limits else None,
    )


def _parse_gpu(gpu: Mapping[str, Any]) -> GpuUse:
    return GpuUse(
        _bound(gpu.get("memoryBytes"), _MEMORY_LIMIT),
        _bound(gpu.get("memoryTotalBytes"), _MEMORY_LIMIT),
        _bound(gpu.get("utilization"), 100),
    )


def _parse_used(value: object, most: float) -> float | None:
    text = str(value)
    if len(text) > _TEXT_LIMIT:
        return None
    fine = _USED.fullmatch(text)
    amount = Decimal(fine[1]) * _FINE[fine[2]] if fine else read_amount(value)
    return None if amount is None else _bound(float(amount), most)


def _bound(value: object, most: float) -> float | None:
    number = parse_number(value)
    return None if number is None or not 0 <= number <= most else float(number)


def _add(numbers: list[float | None]) -> float | None:
    """Return the sum; None where a part is missing, since a pod uses no less than the others."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known and len(known) == len(numbers) else None
