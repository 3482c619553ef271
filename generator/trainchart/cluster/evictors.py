"""Says which programs evicted a run's pods, by the Events that they left about them. Pure.

Descheduler, autoscalers and the like report evictions in Events of type Normal; kubectl drain creates none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainchart.cluster.snapshot import Object, Objects, listed, section
from trainchart.reports.report import Report
from trainchart.reports.text import describe_time
from trainchart_runtime.log_text import shorten
from trainchart_runtime.pod_causes import EVICTED_BY_CLIENT
from trainchart_runtime.pod_problems import parse_event

_ABOUT = re.compile(r"evict|deschedul|scale ?down|consolidat|disrupt|drain", re.IGNORECASE)
_OF_KUBERNETES = re.compile(r"kubelet|.*-scheduler|.*-controller|taint-manager|trainchart.*")
"""Reporters that say the same about every eviction, and do not name the program that requested it."""
_BEFORE_SECONDS = 300.0
_AFTER_SECONDS = 60.0
_PODS_READ = 4
_WORDS_LIMIT = 200


def list_evicted(report: Report) -> tuple[str, ...]:
    """Return the pods that a client evicted most recently, whose Events may name that client."""
    if report.is_over:
        return ()
    evicted = (each.pod for each in reversed(report.incidents) if each.cause == EVICTED_BY_CLIENT.name)
    return tuple(dict.fromkeys(evicted))[:_PODS_READ]


def find_evictors(report: Report, events: Sequence[Objects]) -> Iterator[str]:
    """Yield the programs whose own Events say that they evicted pods; `events` are those about each pod."""
    found: dict[str, str] = {}
    for event in (each for objects in events for each in listed(objects)):
        told, reporter = parse_event(event), _find_reporter(event)
        text = f"{told.reason}: {' '.join(told.message.split())}"
        times = [each.at for each in report.incidents if each.cause == EVICTED_BY_CLIENT.name and each.pod == told.name]
        is_near = any(at - _BEFORE_SECONDS <= told.at <= at + _AFTER_SECONDS for at in times)
        if is_near and reporter and _ABOUT.search(text) and not _OF_KUBERNETES.fullmatch(reporter):
            words = shorten(text, _WORDS_LIMIT).rstrip(".")
            found[reporter] = f"{reporter} says that it evicted {told.name} ({describe_time(told.at)}; {words})"
    for words in found.values():
        yield f"{words}: ask its owner to exempt training pods"


def _find_reporter(event: Object) -> str:
    """Return the name of the program that made an Event."""
    return str(event.get("reportingComponent") or section(event, "source").get("component") or "")
