"""What Kubernetes itself refuses in a spec is told as everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from trainchart.errors import SpecError
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.misfits import require_fit

Resolve = Callable[..., ChartPlan]


@pytest.mark.parametrize(
    ("name", "where", "hint"),
    [("limit", "m.yaml:14:13", "did you mean limits?"), ("x", "m.yaml:14:13", "known here: limits, requests")],
)
def test_unknown_key_has_its_line_and_a_suggestion(
    resolved: Resolve, spec: str, name: str, where: str, hint: str
) -> None:
    known = {"limits": {"type": "object"}, "requests": {"type": "object"}}
    schema = {"properties": {"resources": {"properties": known, "additionalProperties": False}}}
    with pytest.raises(SpecError) as refusal:
        require_fit(resolved(f"{spec}resources: {{{name}: {{memory: 1Gi}}}}\n"), schema)
    [problem] = refusal.value.problems
    assert (problem.message, problem.where, problem.hint) == (f"unknown key resources.{name}", where, hint)


def test_a_line_break_at_the_end_of_a_label_is_refused(resolved: Resolve, spec: str) -> None:
    """As by Helm: a $ of Go is the end of the text."""
    schema = {"properties": {"podLabels": {"additionalProperties": {"pattern": "^([a-z]+)?$"}}}}
    require_fit(resolved(f"{spec}podLabels: {{a: abc}}\n"), schema)
    with pytest.raises(SpecError) as refusal:
        require_fit(resolved(f'{spec}podLabels: {{a: "abc\\n"}}\n'), schema)
    assert "does not match" in refusal.value.problems[0].message
