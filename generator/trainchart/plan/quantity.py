"""Kubernetes quantities as numbers. Owner of the library that knows their grammar."""

from __future__ import annotations

import re
from decimal import Decimal

from lightkube.utils.quantity import parse_quantity as _parse

from trainchart.spec.section import QUANTITY_PATTERN


def parse_quantity(value: str | int | float) -> Decimal | None:
    """Return a quantity such as 500m, 2Gi or 0.5 in its base unit, or None where it is not one."""
    text = str(value)
    return _parse(text) if re.fullmatch(QUANTITY_PATTERN, text) else None
