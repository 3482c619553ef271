"""Gates of a promotion: what a metric must be, absolutely or beside that of the model that serves now. Pure."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass

SERVING = "serving"
EXAMPLES = "'accuracy>=0.9', or 'accuracy>=serving-0.01' for at most 0.01 below the model that is served now"
EVALUATOR_PREFIX = "evaluator/"
_COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
_NUMBER = r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:[eE][-+]?[0-9]{1,3})?"
_GATE = re.compile(
    rf"(?P<metric>[A-Za-z_][\w./:-]{{0,127}}?)\s*(?P<comparison>>=|<=|>|<)\s*"
    rf"(?:(?P<serving>{SERVING})(?:\s*(?P<sign>[-+])\s*(?P<offset>{_NUMBER}))?|(?P<number>[-+]?{_NUMBER}))",
    re.ASCII,
)


@dataclass(frozen=True)
class Gate:
    """A metric, a comparison, and a number that is added to the metric of what serves, where that counts."""

    metric: str
    """Without evaluator/."""
    comparison: str
    number: float
    is_relative: bool = False

    def __str__(self) -> str:
        if not self.is_relative:
            return f"{self.metric}{self.comparison}{self.number!r}"
        offset = f"{'-' if self.number < 0 else '+'}{abs(self.number)!r}" if self.number else ""
        return f"{self.metric}{self.comparison}{SERVING}{offset}"


@dataclass(frozen=True)
class GateResult:
    """What came of a gate."""

    gate: Gate
    value: float | None
    """The metric; None where it is not known."""
    limit: float | None
    """None where what serves now has no such metric."""
    problem: str = ""
    """Why it is not met; empty where it is."""
    hint: str = ""

    @property
    def has_passed(self) -> bool:
        return not self.problem


def parse_gate(text: str) -> Gate:
    """Return the gate that a user wrote.

    Raises:
        ValueError: says what gates look like.
    """
    found = _GATE.fullmatch(text.strip())
    metric = found["metric"].removeprefix(EVALUATOR_PREFIX) if found else ""
    if found is None or not metric:
        raise ValueError(f"{text[:80]!r} is not a gate; write {EXAMPLES}")
    number = float(f"{found['sign'] or ''}{found['offset'] or 0}" if found["serving"] else found["number"])
    if not math.isfinite(number):
        raise ValueError(f"{text[:80]!r}: the number is too large")
    # -0.0 and 0.0 are one gate.
    return Gate(metric, found["comparison"], number + 0.0, found["serving"] is not None)


def name_metrics(reported: Mapping[str, float], evaluated: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of a run by the names that gates have.

    What was evaluated for the exported step counts for more than what the run reported last, and there the evaluator
    for more than the training program.
    """
    own = {name: value for name, value in reported.items() if not name.startswith(EVALUATOR_PREFIX)}
    measured = {
        name.removeprefix(EVALUATOR_PREFIX): value
        for name, value in reported.items()
        if name.startswith(EVALUATOR_PREFIX)
    }
    return {**own, **measured, **evaluated}


def check_gate(gate: Gate, metrics: Mapping[str, float], serving: Mapping[str, float] | None) -> GateResult:
    """Compare a metric with a gate; `serving` are the metrics of what serves now, None where they are not known."""
    value = metrics.get(gate.metric)
    base = (serving or {}).get(gate.metric) if gate.is_relative else 0.0
    limit = None if base is None else base + gate.number
    if value is None:
        known = ", ".join(sorted(metrics))
        if not known:
            return GateResult(
                gate,
                None,
                limit,
                f"{gate}: the run has no metrics",
                "add an evaluator role to the model, or write metrics into the progress file: docs/training.md",
            )
        return GateResult(gate, None, limit, f"{gate}: the run has no metric {gate.metric}", f"it has: {known}")
    if limit is None:
        what = "the model that is serving now was not promoted, so its metrics are not known"
        if serving is not None:
            what = f"the model that is serving now has no metric {gate.metric}"
        return GateResult(gate, value, None, f"{gate}: {what}", f"give a number, as in '{gate.metric}>=0.9'")
    # A loss of -Infinity is as little a result as NaN is.
    if math.isfinite(value) and _COMPARISONS[gate.comparison](value, limit):
        return GateResult(gate, value, limit)
    said = f"{gate.metric} is {value:.6g}, and must be {gate.comparison} {limit:.6g}"
    return GateResult(gate, value, limit, f"{said}{' (serving)' if gate.is_relative else ''}")
