"""What a training program reports about itself in its progress file.

Parsing only: launcher and local run read the file. Anything the program got wrong counts as not reported,
because a slip in reporting must never disturb the training.
"""

from __future__ import annotations

import itertools
import json
import math
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence

METRICS_KEPT = 50
METRIC_NAME_LIMIT = 100
"""Characters. The record of a run holds the metrics several times, and must fit into a ConfigMap."""
_WHOLE_LIMIT = 2**63
COUNT_LIMIT = 2**31
"""More starts and failures than any pod has."""


class Progress(NamedTuple):
    """The last report: step, speed, and the program's own numbers by name."""

    step: Optional[int] = None
    examples_per_second: Optional[float] = None
    metrics: Mapping[str, float] = {}
    nan_metrics: Sequence[str] = ()
    """Names of numbers that are NaN, as of a training that has diverged."""


def parse_progress(text: str) -> Progress:
    """Parse {"step", "examples_per_second", "metrics"}; whatever is missing or unusable is left out."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return Progress()
    if not isinstance(document, dict):
        return Progress()
    return Progress(
        step=parse_whole(document.get("step")),
        examples_per_second=parse_number(document.get("examples_per_second")),
        metrics=parse_metrics(document.get("metrics")),
        nan_metrics=find_nan(document.get("metrics")),
    )


def parse_number(value: Any) -> Optional[float]:
    """Return `value` if it is a finite number and no boolean, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def parse_whole(value: Any) -> Optional[int]:
    """Return a number of 64 bits without its fraction; None for anything else."""
    number = parse_number(value)
    return None if number is None or abs(number) >= _WHOLE_LIMIT else int(number)


def parse_count(value: Any) -> Optional[int]:
    """Return a whole number from 0 to less than COUNT_LIMIT; None for anything else."""
    number = parse_whole(value)
    return number if number is not None and 0 <= number < COUNT_LIMIT else None


def add_counts(*counts: int) -> int:
    """Return the sum, at least 0 and at most COUNT_LIMIT, because programs and users can write any number."""
    return max(0, min(sum(counts), COUNT_LIMIT))


def parse_metrics(value: Any) -> Dict[str, float]:
    """Return the first METRICS_KEPT finite numbers of a JSON object; names that are too long are left out."""
    if not isinstance(value, dict):
        return {}
    names = (name for name in value if len(name) <= METRIC_NAME_LIMIT and parse_number(value[name]) is not None)
    return {name: value[name] for name in itertools.islice(names, METRICS_KEPT)}


def find_nan(value: Any) -> Sequence[str]:
    """Return the first METRICS_KEPT names of a JSON object whose number is NaN."""
    found = value.items() if isinstance(value, dict) else ()
    names = (name for name, number in found if isinstance(number, float) and math.isnan(number))
    return tuple(itertools.islice((name for name in names if len(name) <= METRIC_NAME_LIMIT), METRICS_KEPT))
