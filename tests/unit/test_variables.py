"""References to variables as Kubernetes reads them: `$(NAME)`, and `$$` for a dollar sign."""

from __future__ import annotations

import pytest

from trainchart.variables import Reference, expand_variables, find_references


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A} $(A", "$A ${A} $(A"),
        ("$(A)$(B $$(A $(", "1$(B $(A $("),
        ("100$", "100$"),
        ("$()", "$()"),
    ],
)
def test_expansion_is_that_of_kubernetes(text: str, expected: str) -> None:
    assert expand_variables(text, {"A": "1", "B": "2"}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)x$(B_2)$(A)", ["A", "B_2", "A"]),
        ("$$(A)", []),
        ("$$$(A)", ["A"]),
        ("$(date +%s) $() $(A", []),
        ("$(SEED?) $(SEED*)", ["SEED?", "SEED*"]),
    ],
)
def test_references_are_found(text: str, expected: list[str]) -> None:
    assert [str(reference) for reference in find_references(text)] == expected


def test_long_text_of_open_references_takes_no_longer() -> None:
    text = "$(" * 500_000
    assert expand_variables(text, {}) == text
    assert list(find_references(f"$(A){text}")) == [Reference("A")]
