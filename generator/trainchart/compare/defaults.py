"""Which values of values.yaml changed between two versions of a chart, with old and new value. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainchart.json_documents import encode_value

_WIDTH = 60


@dataclass(frozen=True)
class DefaultChange:
    """A value that the chart sets itself, before and after; None where it sets none."""

    path: str
    before: Any
    after: Any

    @property
    def text(self) -> str:
        """Return the change as a line of a changelog."""
        return f"the default of {self.path} changes from {_spell(self.before)} to {_spell(self.after)}"


def find_changed_defaults(
    old: Mapping[str, Any], new: Mapping[str, Any], *, without: Collection[str] = (), above: str = ""
) -> Iterator[DefaultChange]:
    """Yield the innermost values that differ, by path; nothing at or below the paths in `without`."""
    for key in sorted({*old, *new}, key=str):
        path = f"{above}.{key}" if above else str(key)
        if path in without:
            continue
        before, after = old.get(key), new.get(key)
        if _may_hold_keys(before) and _may_hold_keys(after) and (before or after):
            yield from find_changed_defaults(before or {}, after or {}, without=without, above=path)
        elif encode_value(before) != encode_value(after):
            yield DefaultChange(path, before, after)


def _may_hold_keys(value: Any) -> bool:
    return value is None or isinstance(value, Mapping)


def _spell(value: Any) -> str:
    text = "nothing" if value is None else encode_value(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
