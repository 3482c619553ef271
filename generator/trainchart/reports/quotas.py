"""Reads what a quota refuses out of the refusal of a pod. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from trainchart.reports.report import ReportedProblem
from trainchart_runtime.pod_causes import QUOTA_EXCEEDED

_REFUSAL = re.compile(r"exceeded quota: ([^,\s]+), requested: (\S+), used: (\S+), limited: (\S+)")
_COUNT = "count/"
COUNT_OF_PODS = "count/pods"
"""Counts finished pods too, unlike the resource `pods`."""


class ExceededQuota(NamedTuple):
    """One resource of which a quota has not enough left."""

    quota: str
    resource: str
    requested: str
    used: str
    hard: str

    @property
    def is_count(self) -> bool:
        """Whether it limits a number of objects: no room on nodes helps."""
        return self.resource.startswith(_COUNT) or self.resource == "pods"


def parse_refusal(message: str) -> list[ExceededQuota]:
    """Return what the API server says is exceeded, as in "exceeded quota: Q, requested: pods=1, used: pods=9, …"."""
    found = _REFUSAL.search(message)
    if found is None:
        return []
    requested, used, hard = (
        dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair) for text in found.groups()[1:]
    )
    return [
        ExceededQuota(found.group(1), name, requested[name], used.get(name, "?"), hard.get(name, "?"))
        for name in requested
    ]


def list_exceeded(problems: Iterable[ReportedProblem]) -> list[ExceededQuota]:
    """Return the quotas that refuse the run's pods; the messages of other problems may be a program's output."""
    refusals = (each.message for each in problems if each.cause == QUOTA_EXCEEDED.name)
    return [exceeded for message in refusals for exceeded in parse_refusal(message)]


def is_count_of_pods(message: str) -> bool:
    """Return whether the API server refuses a pod because of the number of pods, finished ones included."""
    return any(each.resource == COUNT_OF_PODS for each in parse_refusal(message))


def describe_refusal(message: str) -> str:
    """Return "quota team-objects: count/pods, 9 of 9 used"; "" for another message."""
    exceeded = parse_refusal(message)
    parts = (f"{each.resource}, {each.used} of {each.hard} used" for each in exceeded)
    return f"quota {exceeded[0].quota}: {'; '.join(parts)}" if exceeded else ""
