"""The progress file: how far this process is, for the process that started it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path


def describe_number(value: float) -> str:
    """Return `value` for the log: with four digits behind the point, or as many as a small one needs."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"


def write_progress(path: str, step: int, examples_per_second: float, metrics: Mapping[str, float]) -> None:
    """Replace the file at `path` as a whole, so that a reader never sees half of it; an empty path writes nothing.

    Metrics are rounded to six digits; numbers that JSON cannot express are left out.
    """
    if not path:
        return
    target = Path(path)
    finite = {name: float(f"{value:.6g}") for name, value in metrics.items() if math.isfinite(value)}
    body = {"step": step, "examples_per_second": round(examples_per_second, 1), "metrics": finite}
    draft = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(body), encoding="utf-8")
    draft.replace(target)
