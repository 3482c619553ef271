"""Lists the keys of a Secret or ConfigMap that lacks the key a pod refers to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from trainchart.cluster.snapshot import Object, name_of, section
from trainchart.reports.report import Report
from trainchart_runtime.pod_causes import CONFIG_MISSING
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.start_words import find_keyless


def describe_keys(report: Report, objects: Mapping[str, Iterable[Object]]) -> Iterator[str]:
    """Yield which keys each Secret or ConfigMap that lacks one has; `objects` are those that were read, by kind."""
    # The messages of other problems may be the words of a program.
    told = (each.message for each in report.problems if each.cause == CONFIG_MISSING.name)
    for kind, name in dict.fromkeys(found for message in told if (found := find_keyless(message))):
        for each in objects.get(kind, ()):
            if name_of(each) == name:
                keys = sorted({**section(each, "data"), **section(each, "binaryData")})
                noun = "key" if len(keys) == 1 else "keys"
                yield f"{kind} {name} has {f'only the {noun} {list_names(keys)}' if keys else 'no keys'}"
