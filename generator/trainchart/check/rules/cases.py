"""Turns a rule about one rendering into a rule about every case."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from trainchart.check.finding import CheckInput, Finding, Probe
from trainchart.helm.rendering import Rendering


def for_each_rendering(
    check: Callable[[Rendering], Iterable[Finding]],
) -> Callable[[CheckInput], Iterator[Finding]]:
    """Decorate `check` so that it sees every rendering of ordinary name, and its findings say which case it was."""

    @functools.wraps(check)
    def check_all(given: CheckInput) -> Iterator[Finding]:
        for label, rendering in given.renderings():
            for finding in check(rendering):
                yield replace(finding, values=label)

    return check_all


def for_each_release(
    check: Callable[[Rendering], Iterable[Finding]],
) -> Callable[[CheckInput], Iterator[Finding]]:
    """Decorate `check` as for_each_rendering does, for a rule that long names and other numbers of pods matter to."""

    @functools.wraps(check)
    def check_all(given: CheckInput) -> Iterator[Finding]:
        for case in given.cases:
            if case.rendering is not None:
                for finding in check(case.rendering):
                    yield replace(finding, values=case.label)
        if Probe.more_replicas in given.probes:
            for finding in check(given.probes[Probe.more_replicas]):
                yield replace(finding, values=str(Probe.more_replicas))

    return check_all
