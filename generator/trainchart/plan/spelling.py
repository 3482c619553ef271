"""Numbers and words of a spec that YAML reads as something else than what is written.

A spec may leave a text unquoted (`tag: 1.10`); where YAML makes a number of it, the text that the author wrote is gone.
Such a spelling is refused wherever a text is meant, and wherever readers of YAML disagree about the number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.number_spelling import name_misreading, print_value
from trainchart.spec.document import Origin, Path
from trainchart.spec.model import ModelSpec
from trainchart.spec.section import LARGEST_INTEGER, TEXT_MAPS, JsonSchema, Section, section_of

_TEXTS = (("image", "tag"), ("run", "id"))
"""Texts outside of mappings that may also be given as integers."""


def find_misread(tree: Mapping[str, Any], origins: Mapping[Path, Origin]) -> Iterator[tuple[Path, str, str]]:
    """Yield path, message and hint for each scalar of `tree` that does not mean what is written."""
    for path, value in _leaves(tree, ()):
        spelling = origins[path].spelling if path in origins else ""
        if spelling and not isinstance(value, str):
            reason, remedy = _misreading(path, value, spelling)
            if reason:
                yield path, f"{'.'.join(map(str, path))}: {spelling} {reason}", f'quote it: "{spelling}"{remedy}'


def _misreading(path: Path, value: float | bool | None, spelling: str) -> tuple[str, str]:
    """Return what is wrong with reading `spelling` as `value`, and a remedy beside quoting; empty for nothing."""
    if value is not None and not isinstance(value, bool):
        if isinstance(value, float) and not math.isfinite(value):
            return ("", "") if _is_bound(path) else ("is not a finite number", "")
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER and _is_bound(path):
            return "", ""
        reason, remedy = name_misreading(value, spelling)
        if reason:
            return reason, remedy
    if (path in _TEXTS or _is_in_text_map(path)) and spelling != print_value(value):
        return f"would become {'null' if value is None else f'the text {print_value(value)}'}", ""
    return "", ""


def _leaves(node: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _leaves(value, (*path, index))
    else:
        yield path, node


def _is_bound(path: Path) -> bool:
    """Tell whether this is a number of a hyperparameter, which the model checks together with the others."""
    return path[:1] == ("hyperparameters",) and path[-2:-1] != ("enum",)


def _is_in_text_map(path: Path) -> bool:
    """Tell whether `path` is an entry of a mapping whose values Kubernetes takes as texts."""
    section: type[Section] | None = ModelSpec
    for part in path[:-1]:
        field = next((f for f in section.model_fields.values() if f.alias == part), None) if section else None
        if field is None:
            continue  # an entry of a mapping, such as the name of a role
        if any(isinstance(mark, JsonSchema) and mark.schema in TEXT_MAPS for mark in field.metadata):
            return part == path[-2]
        section = section_of(field.annotation)
    return False
