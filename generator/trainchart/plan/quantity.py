"""Kubernetes quantities as numbers. Owner of the library that knows their grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from lightkube.utils.quantity import parse_quantity as _parse

from trainchart.spec.section import QUANTITY_PATTERN

_OWN_RESOURCES = ("cpu", "memory", "ephemeral-storage")


def parse_quantity(value: str | int | float) -> Decimal | None:
    """Return a quantity such as 500m, 2Gi, 1e3 or 0.5 in its base unit, or None where it is not one."""
    text = str(value)
    if not re.fullmatch(QUANTITY_PATTERN, text):
        return None
    try:
        return _parse(text)
    except (ValueError, ArithmeticError):  # larger than any quantity, such as 1e400
        return None


def read_amount(value: object) -> Decimal | None:
    """Return what any value of a manifest means as a quantity, or None where it is not one."""
    return parse_quantity(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


def find_amount_problems(name: str, request: object, limit: object) -> Iterator[tuple[str, str]]:
    """Yield what the API server refuses in a container's request and limit of one resource, each with a hint."""
    wanted, most = read_amount(request), read_amount(limit)
    if wanted is not None and most is not None and wanted > most:
        yield f"requests {request} of {name}, above its limit {limit}", ""
    if name.startswith("hugepages-") and request is not None and wanted != most:
        yield f"{name}: the request {request} must equal the limit {limit}", ""
    if "/" in name and not name.startswith("kubernetes.io/"):
        if limit is None:
            yield f"{name} stands in requests only, where Kubernetes refuses it", f"resources.limits.{name}"
        elif request is not None and wanted != most:
            yield f"{name}: the request {request} must equal the limit {limit}", ""
        if most is not None and most != most.to_integral_value():
            yield f"{name}: {limit} is not a whole number", ""
    elif name not in _OWN_RESOURCES and not name.startswith(("hugepages-", "kubernetes.io/")):
        yield f"{name} is no resource of Kubernetes", "resources of devices have a domain, like nvidia.com/gpu"
