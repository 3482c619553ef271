"""Says which keys a Secret or ConfigMap has that lacks the one that a pod refers to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from trainchart.cluster.snapshot import Object, name_of, section
from trainchart.reports.report import Report
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.start_words import find_keyless


def describe_keys(report: Report, objects: Mapping[str, Iterable[Object]]) -> Iterator[str]:
    """Yield the keys of each Secret and ConfigMap that lacks one; `objects` are those that were read, by kind."""
    for kind, name in dict.fromkeys(found for each in report.problems if (found := find_keyless(each.message))):
        for each in objects.get(kind, ()):
            if name_of(each) == name:
                keys = sorted({**section(each, "data"), **section(each, "binaryData")})
                yield f"{kind} {name} has {f'only: {list_names(keys)}' if keys else 'no keys'}"
