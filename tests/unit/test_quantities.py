"""Quantities: what Kubernetes takes is a number here, everything else is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.utils.quantity import parse_quantity as parse_by_lightkube

from trainchart.quantities import QUANTITY_PATTERN, parse_quantity


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("0", "0"),
        ("500m", "0.5"),
        ("1.5k", "1500"),
        ("2Ki", "2048"),
        ("1M", "1e6"),
        ("1.5Gi", "1610612736"),
        ("3T", "3e12"),
        ("1P", "1e15"),
        ("1E", "1e18"),
        ("1Ei", "1152921504606846976"),
        ("12e3", "12000"),
        ("5e-1", "0.5"),
        (4, "4"),
        (0.25, "0.25"),
    ],
)
def test_a_quantity_is_a_number(value: str | int | float, meant: str) -> None:
    assert parse_quantity(value) == Decimal(meant)


@given(st.from_regex(QUANTITY_PATTERN, fullmatch=True))
def test_quantities_mean_what_a_client_library_says(text: str) -> None:
    try:
        meant = parse_by_lightkube(text.strip())
    except (ValueError, ArithmeticError):
        meant = None
    assert parse_quantity(text.strip()) == meant


@pytest.mark.parametrize("value", ["", "1K", "1ki", "-1", "1 Gi", "Gi", "1.Gi", "1e", "one", "1mi", "1GiB", True])
def test_what_kubernetes_refuses_is_no_quantity(value: str | bool) -> None:
    assert parse_quantity(value) is None
