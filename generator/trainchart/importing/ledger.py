"""What an import carried over, what it did not and why, and what is left for the user to do. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Place = tuple[str | int, ...]
"""Where in the input something stands: keys and list indices from its top."""


@dataclass(frozen=True)
class Origin:
    """Names places of the input in messages."""

    file: str
    lines: Mapping[Place, int] = field(default_factory=dict)
    names: Mapping[Place, str] = field(default_factory=dict)
    """What the user wrote where a place is not a key of the input, such as the flag --gpus."""

    def name(self, place: Place) -> str:
        """Return a place as the user knows it: Worker.replicas, runPolicy.backoffLimit, --gpus."""
        for length in range(len(place), 0, -1):
            if place[:length] in self.names:
                return self.names[place[:length]]
        text = ""
        for part in place:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text.replace("spec.tfReplicaSpecs.", "", 1).replace(".template.spec.", ".", 1).replace(".spec.", ".", 1)

    def locate(self, place: Place) -> str:
        """Return `file:line` of a place, or of the closest one above it whose line is known."""
        for length in range(len(place), -1, -1):
            if place[:length] in self.lines:
                return f"{self.file}:{self.lines[place[:length]]}"
        return self.file


@dataclass(frozen=True)
class Carried:
    """A part of the input, and the key of the spec that says it now, or what does its work."""

    source: str
    target: str


@dataclass(frozen=True)
class LeftOut:
    """A part of the input that the spec does not say: why, and what to do instead."""

    what: str
    reason: str
    remedy: str
    where: str

    def __str__(self) -> str:
        remedy = f": {self.remedy}" if self.remedy else ""
        return f"{self.where}: {self.what}: {self.reason}{remedy}"


@dataclass
class Ledger:
    """Collects what becomes of each part of one input."""

    origin: Origin
    carried: list[Carried] = field(default_factory=list)
    left: list[LeftOut] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the user should check or do."""

    def carry(self, place: Place, target: str) -> None:
        """Note that `target` of the spec now says what stands at `place`."""
        entry = Carried(self.origin.name(place), target)
        if entry not in self.carried:
            self.carried.append(entry)

    def leave(self, place: Place, reason: str, remedy: str = "") -> None:
        """Note that what stands at `place` is not carried over."""
        entry = LeftOut(self.origin.name(place), reason, remedy, self.origin.locate(place))
        if entry not in self.left:
            self.left.append(entry)

    def note(self, text: str) -> None:
        """Note what the user should know."""
        if text not in self.notes:
            self.notes.append(text)

    def mapping(self, value: Any, place: Place) -> dict[str, Any]:
        """Return a mapping of the input; where it is something else, an empty one, and that is noted."""
        if value is not None and not isinstance(value, dict):
            self.leave(place, "it is not a mapping")
        return value if isinstance(value, dict) else {}

    def entries(self, value: Any, place: Place) -> list[Any]:
        """Return a list of the input; where it is something else, an empty one, and that is noted."""
        if value is not None and not isinstance(value, list):
            self.leave(place, "it is not a list")
        return value if isinstance(value, list) else []

    def texts(self, value: Any, place: Place) -> list[str]:
        """Return a list of texts; what is neither a text nor a number is noted, and left out."""
        found = []
        for index, entry in enumerate(self.entries(value, place)):
            if isinstance(entry, (str, int, float)):
                found.append(str(entry).lower() if isinstance(entry, bool) else str(entry))
            else:
                self.leave((*place, index), "it is not a string")
        return found

    def number(self, value: Any, place: Place, default: int) -> int:
        """Return a whole number of the input that is not negative, or `default` where it is something else."""
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if value is not None:
            self.leave(place, f"{str(value)[:40]!r} is not a whole number of 0 or more")
        return default
