"""What a check rule is, as data: the function that looks, and all that is told about it.

Rules themselves live in rules/, each module listing its own in `RULES`; registry.py puts them together.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainchart.check.finding import CheckInput, Finding, Severity


class Scope(enum.StrEnum):
    """What a rule can be asked about."""

    manifests = "any Kubernetes objects"
    charts = "Helm charts"
    trainings = "charts that trainchart generated"


@dataclass(frozen=True)
class Rule:
    """A check: its id in findings, why it matters, where that is written, and the pure function that does it."""

    id: str
    why: str
    check: Callable[[CheckInput], Iterable[Finding]]
    source: str
    """A page that says so, or gives the background."""
    severity: Severity = Severity.error
    """The worst that it says about a chart of ours."""
    others: Severity = Severity.error
    """The worst that it says about charts made elsewhere: what is only our style is no error there."""
    scope: Scope = Scope.manifests
    needs: tuple[str, ...] = ()
    """Files of the chart without which it would find what is not there: it is not asked where one cannot be parsed."""
    is_waivable: bool = True
    """Whether a chart may accept its findings itself."""
