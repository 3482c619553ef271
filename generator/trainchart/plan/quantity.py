"""Kubernetes quantities as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from trainchart.spec.section import QUANTITY_PATTERN

_FACTORS: Mapping[str, Decimal] = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "k": Decimal(1000),
    **{prefix: Decimal(1000) ** power for power, prefix in enumerate("MGTPE", start=2)},
    **{f"{prefix}i": Decimal(1024) ** power for power, prefix in enumerate("KMGTPE", start=1)},
}
"""What each suffix multiplies by: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/."""


def parse_quantity(value: str | int | float) -> Decimal | None:
    """Return a quantity such as 500m, 2Gi, 1e3 or 0.5 in its base unit, or None where it is not one."""
    text = str(value)
    if not re.fullmatch(QUANTITY_PATTERN, text):
        return None
    number = text.rstrip("mkKMGTPEi")
    return Decimal(number) * _FACTORS[text.removeprefix(number)]
