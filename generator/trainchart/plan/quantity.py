"""Kubernetes quantities as numbers. Owner of the library that knows their grammar."""

from __future__ import annotations

import re
from decimal import Decimal

from lightkube.utils.quantity import parse_quantity as _parse

from trainchart.spec.section import QUANTITY_PATTERN


def parse_quantity(value: str | int | float) -> Decimal | None:
    """Return a quantity such as 500m, 2Gi, 1e3 or 0.5 in its base unit, or None where it is not one."""
    text = str(value)
    if not re.fullmatch(QUANTITY_PATTERN, text):
        return None
    try:
        return _parse(text)
    except (ValueError, ArithmeticError):  # larger than any quantity, such as 1e400
        return None
