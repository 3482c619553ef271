"""Says from the log of a run controller what it cannot do at the moment, and what may be to blame. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainchart.reports.log_line import LogLine
from trainchart.reports.text import describe_time
from trainchart_runtime.log_text import hide_credentials, shorten
from trainchart_runtime.pod_problems import parse_time

_SUBJECTS = "controlling the run|watching pods|watching the Workload"
"""What fails when a run controller cannot do its work; for the rest, such as creating Events, nothing waits."""
_TROUBLE = re.compile(rf"trainchart-controller: (?P<subject>{_SUBJECTS}): (?P<error>.+); trying again$")
_WORKS = re.compile(r"trainchart-controller: (?P<subject>[^:]+): works again$")
_ERROR_SHOWN = 400
"""Characters: the name of a webhook stands after that of a request."""
_NEXT = (
    (
        "failed calling webhook",
        ". The owner of that webhook must fix its Service, exempt this namespace, or let requests pass while it is "
        "down (failurePolicy: Ignore): kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations lists "
        "them",
    ),
    (
        "database space exceeded",
        ". The cluster's administrators must free space in etcd (compact, defragment, disarm its alarm)",
    ),
)
"""Words of errors → what to do, where the error alone does not say it."""


def describe_troubles(lines: Sequence[LogLine]) -> Iterator[str]:
    """Yield the errors of a run controller that keep it from its work and are not resolved yet."""
    found: dict[str, tuple[LogLine, str]] = {}
    for line in lines:
        if failed := _TROUBLE.match(line.text):
            found[failed["subject"]] = line, failed["error"]
        elif works := _WORKS.match(line.text):
            found.pop(works["subject"], None)
    for subject, (line, error) in found.items():
        since = f", since {describe_time(parse_time(line.at))}" if line.at else ""
        advice = next((words for pattern, words in _NEXT if pattern in error), "")
        yield (
            f"its run controller keeps failing: {shorten(hide_credentials(error), _ERROR_SHOWN)} ({subject}{since}). "
            f"Until that works again, steps and the end of the run may not be recorded{advice}"
        )
