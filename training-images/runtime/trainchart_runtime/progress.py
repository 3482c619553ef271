"""What a training program reports about itself in its progress file.

Parsing only: launcher and local run read the file. Anything the program got wrong counts as not reported,
because a slip in reporting must never disturb the training.
"""

from __future__ import annotations

import json
import math
from typing import Any, Dict, Mapping, NamedTuple, Optional


class Progress(NamedTuple):
    """The last report: step, speed, and the program's own numbers by name."""

    step: Optional[int] = None
    examples_per_second: Optional[float] = None
    metrics: Mapping[str, float] = {}


def parse_progress(text: str) -> Progress:
    """Parse {"step", "examples_per_second", "metrics"}; whatever is missing or unusable is left out."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return Progress()
    if not isinstance(document, dict):
        return Progress()
    step = parse_number(document.get("step"))
    return Progress(
        step=None if step is None else int(step),
        examples_per_second=parse_number(document.get("examples_per_second")),
        metrics=parse_metrics(document.get("metrics")),
    )


def parse_number(value: Any) -> Optional[float]:
    """Return `value` if it is a finite number and no boolean, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def parse_metrics(value: Any) -> Dict[str, float]:
    """Return the finite numbers of a JSON object, in its order."""
    if not isinstance(value, dict):
        return {}
    return {name: number for name, number in value.items() if parse_number(number) is not None}
