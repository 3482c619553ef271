"""Names of models: what one may be, and the closest one to what a user typed. Pure."""

from __future__ import annotations

import re
import unicodedata

from trainchart.spec.model import NAME_PATTERN

LONGEST_NAME = 40
_SPELLED_OUT = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)
"""Letters that Unicode does not take for a plain letter with a mark on it."""


def is_model_name(name: str) -> bool:
    return re.fullmatch(NAME_PATTERN, name) is not None


def suggest_model_name(name: str) -> str:
    """Return a valid name like `name`; empty where nothing of it can stay."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name.rpartition("/")[2])
    letters = unicodedata.normalize("NFKD", words.lower().translate(_SPELLED_OUT))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    lowered = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if lowered[:1].isdecimal() and not lowered.isdecimal():
        lowered = f"model-{lowered}"
    suggestion = lowered.lstrip("0123456789")[:LONGEST_NAME].strip("-")
    return suggestion if is_model_name(suggestion) else ""
