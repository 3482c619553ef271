"""Turns a rule about one rendering into a rule about every case."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from trainchart.check.finding import CheckInput, Finding
from trainchart.rendering import Rendering


def for_each_rendering(
    check: Callable[[Rendering], Iterable[Finding]],
) -> Callable[[CheckInput], Iterator[Finding]]:
    """Decorate `check` so that it sees every rendering, and its findings say which case they come from."""

    @functools.wraps(check)
    def check_all(given: CheckInput) -> Iterator[Finding]:
        for case in given.cases:
            if case.rendering is not None:
                for finding in check(case.rendering):
                    yield replace(finding, values=case.label)

    return check_all
