"""Names of models: what one may be, and the closest one to what somebody typed. Pure."""

from __future__ import annotations

import re

from trainchart.spec.model import NAME_PATTERN

LONGEST_NAME = 40


def is_model_name(name: str) -> bool:
    return re.fullmatch(NAME_PATTERN, name) is not None


def suggest_model_name(name: str) -> str:
    """Return a valid name like `name`; empty where nothing of it can stay."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.rpartition("/")[2])
    lowered = re.sub(r"[^a-z0-9]+", "-", words.lower())
    suggestion = lowered.lstrip("-0123456789")[:LONGEST_NAME].strip("-")
    return suggestion if is_model_name(suggestion) else ""
