"""Waivers of packs: models that may break a rule or lock of the same policy, for a reason and until a day. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import AfterValidator, Field

from trainchart.errors import Problem
from trainchart.plan.typed import suggest_word
from trainchart.spec.document import Origin, Path
from trainchart.spec.section import Line, Section


def _date(text: str) -> str:
    try:
        if date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not a date such as 2027-01-31")


class WaiverFile(Section):
    """One waiver as policy.yaml writes it."""

    rule: Annotated[str, Field(min_length=1)]
    """Name of a rule, or path of a lock; families.FAMILY.KEY for a value of a family."""
    models: Annotated[list[str], Field(min_length=1)]
    """Names of models, with * for any characters."""
    owner: Annotated[Line, Field(min_length=1)]
    """Who answers for it."""
    reason: Annotated[Line, Field(min_length=1)]
    """Why it is needed."""
    until: Annotated[str, AfterValidator(_date)]
    """The last day that it holds, such as 2027-01-31, in UTC."""
    namespaces: list[str] = Field(default_factory=list)
    """Namespaces in which clusters waive the rule, too, for all that is in them."""


@dataclass(frozen=True)
class PackWaiver:
    """A waiver, and where it is written."""

    text: WaiverFile
    origin: Origin

    def holds_on(self, today: date) -> bool:
        """Tell whether it holds on a day."""
        return today <= date.fromisoformat(self.text.until)

    @property
    def ended(self) -> str:
        """What to say of a waiver that holds no more."""
        return f"the waiver of {self.text.owner} ended on {self.text.until} ({self.origin})"

    def __str__(self) -> str:
        return f"waived until {self.text.until} by {self.text.owner}: {self.text.reason}"


def find_waiver(waivers: Iterable[PackWaiver], model: str) -> PackWaiver | None:
    """Return the waiver for a model that holds longest, ended or not; None where there is none."""
    found = [waiver for waiver in waivers if any(fnmatchcase(model, name) for name in waiver.text.models)]
    return max(found, key=lambda waiver: waiver.text.until, default=None)


def find_waiver_problems(waivers: Iterable[PackWaiver], known: Iterable[str]) -> Iterator[Problem]:
    """Yield the waivers of rules that the policy does not have."""
    names = list(known)
    for waiver in waivers:
        if waiver.text.rule not in names:
            hint = suggest_word(waiver.text.rule, names) if names else "the policy has no rules or locks"
            yield Problem(f"waivers: unknown rule {waiver.text.rule}", str(waiver.origin), hint)


def find_ended_waivers(waivers: Iterable[PackWaiver], today: date) -> Iterator[Problem]:
    """Yield the waivers that hold no more on a day."""
    for waiver in waivers:
        if not waiver.holds_on(today):
            what = f"the waiver of {waiver.text.rule} for {', '.join(waiver.text.models)} ended on {waiver.text.until}"
            yield Problem(what, str(waiver.origin), f"ask {waiver.text.owner}, then extend or remove it")


def waivers_by_rule(waivers: Iterable[WaiverFile], origins: Mapping[Path, Origin]) -> dict[str, tuple[PackWaiver, ...]]:
    """Return waivers by the name of what they waive, each with its place in the file."""
    found: dict[str, tuple[PackWaiver, ...]] = {}
    for number, text in enumerate(waivers):
        found[text.rule] = (*found.get(text.rule, ()), PackWaiver(text, origins["waivers", number]))
    return found
