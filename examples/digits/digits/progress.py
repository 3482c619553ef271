"""The progress file: how far this process is, for the process that started it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path


def write_progress(path: str, step: int, examples_per_second: float, metrics: Mapping[str, float]) -> None:
    """Replace the file at `path` as a whole, so that a reader never sees half of it; an empty path writes nothing."""
    if not path:
        return
    target = Path(path)
    body = {"step": step, "examples_per_second": round(examples_per_second, 1), "metrics": dict(metrics)}
    draft = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(body), encoding="utf-8")
    draft.replace(target)
