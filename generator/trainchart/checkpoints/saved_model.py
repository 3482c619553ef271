"""The exported model beside the checkpoints of a release, as far as it says what it is. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

FOLDER = "saved_model"
SUMS_FILE = "SHA256SUMS"
RECORD_FILE = "assets.extra/export.json"


@dataclass(frozen=True)
class SavedModel:
    """An export."""

    content: str
    """The hash of its list of files, which stands for the whole content: sha256:…"""
    step: int
    run: str = ""
    image: str = ""
    """That the run was trained with."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the evaluation of the checkpoint of this step, also those that are NaN or infinite."""


def dump_saved_model(found: SavedModel) -> dict[str, Any]:
    return {
        "content": found.content,
        "step": found.step,
        "run": found.run,
        "image": found.image,
        # JSON has no word for what is not finite; `float` reads these.
        "metrics": {name: value if math.isfinite(value) else str(value) for name, value in found.metrics.items()},
    }


def parse_saved_model(document: Mapping[str, Any]) -> SavedModel:
    """Return the export that a document of a helper pod holds. Raises ValueError where it holds something else."""
    try:
        texts = [document[key] for key in ("content", "run", "image")]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("expected a string")
        metrics = {str(name): float(value) for name, value in document["metrics"].items()}
        return SavedModel(texts[0], int(document["step"]), texts[1], texts[2], metrics)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError("it is not a trainchart document") from error
