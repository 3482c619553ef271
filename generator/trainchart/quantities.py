"""Kubernetes quantities as numbers.

Grammar: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/. Client libraries know it,
but take a tenth of a second to import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_UP, Decimal

QUANTITY_PATTERN = r"^[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+|m|k|Ki|[MGTPE]i?)?$"
_NO_GPU = re.compile(
    r"^(kubernetes\.io|rdma|smarter-devices|vpc\.amazonaws\.com|openshift\.io|mellanox\.com|devices\.kubevirt\.io)/"
    r"|[/_-](hca|rdma|efa|sriov|hostdev|infiniband|ib|roce|fuse|kvm)([_-]|$)"
)
"""File systems, network cards and plain devices."""
_OWN_SIZES = ("memory", "ephemeral-storage")
_OWN_RESOURCES = ("cpu", *_OWN_SIZES)
_PARTS = re.compile(r"(?P<number>[0-9.]+(e[+-]?[0-9]+)?)(?P<unit>[a-zA-Z]*)")
_UNITS = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}
_FINEST = Decimal("0.001")
_LEAST_SIZE = Decimal(2**20)
"""No pod starts with less memory or storage: a size below it lacks its unit, or has m, which are thousandths."""


def parse_quantity(value: str | int | float) -> Decimal | None:
    """Return a quantity such as 500m, 2Gi, 1e3 or 0.5 in its base unit, or None where it is not one.

    Like Kubernetes, it rounds up to thousandths.
    """
    text = str(value)
    parts = _PARTS.fullmatch(text) if re.fullmatch(QUANTITY_PATTERN, text) else None
    try:
        return (Decimal(parts["number"]) * _UNITS[parts["unit"]]).quantize(_FINEST, ROUND_UP) if parts else None
    except ArithmeticError:  # larger than any quantity, such as 1e400
        return None


def read_amount(value: object) -> Decimal | None:
    """Return what any value of a manifest means as a quantity, or None where it is not one."""
    return parse_quantity(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


def is_too_small(size: object) -> bool:
    """Tell whether an amount of memory or storage is so small that it must be a slip."""
    amount = read_amount(size)
    return amount is not None and amount < _LEAST_SIZE


def is_cpu(key: str) -> bool:
    """Tell whether a setting, such as cpuLimit, is an amount of CPUs; other quantities are sizes."""
    return key.startswith("cpu")


def suggest_quantity(key: str, value: object) -> str:
    """Return the hint on a wrong quantity: what one looks like, and what 2 GB or a bare number may mean."""
    if is_cpu(key):
        return "for example 500m or 2"
    found = re.fullmatch(r"([1-9]\d*(\.\d+)?) ?([kKmMgGtT]?)i?[bB]?", str(value).strip())
    if not found:
        return "for example 512Mi or 4Gi"
    unit = found[3].upper() or ("G" if float(found[1]) < 100 else "M")
    return f"for example 512Mi or 4Gi; did you mean {found[1]}{unit}i?"


def may_be_gpu(resource: str) -> bool:
    """Tell whether an extended resource may be a GPU or another accelerator: a chart may call any of them one."""
    return "/" in resource and not _NO_GPU.search(resource)


def find_amount_problems(name: str, request: object, limit: object) -> Iterator[tuple[str, str]]:
    """Yield what the API server refuses in a container's request and limit of one resource, each with a hint."""
    wanted, most = read_amount(request), read_amount(limit)
    if name in _OWN_SIZES:
        for amount in dict.fromkeys(each for each in (request, limit) if is_too_small(each)):
            yield f"{name}: {amount!r} is less than 1Mi", "for example 512Mi or 4Gi"
    if wanted is not None and most is not None and wanted > most:
        yield f"requests {request} of {name}, above its limit {limit}", ""
    if name.startswith("hugepages-") and request is not None and wanted != most:
        yield f"{name}: the request {request} must equal the limit {limit}", ""
    if "/" in name and not name.startswith("kubernetes.io/"):
        if limit is None:
            yield f"{name} is in requests only, where Kubernetes refuses it", f"resources.limits.{name}"
        elif request is not None and wanted != most:
            yield f"{name}: the request {request} must equal the limit {limit}", ""
        if most is not None and most != most.to_integral_value():
            yield f"{name}: {limit} is not a whole number", ""
    elif name not in _OWN_RESOURCES and not name.startswith(("hugepages-", "kubernetes.io/")):
        yield f"{name} is not a Kubernetes resource", "resources of devices have a domain, like nvidia.com/gpu"
