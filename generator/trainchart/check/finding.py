"""What a check rule says, and everything that rules look at."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.errors import Problem
from trainchart.rendering import LintMessage, Rendering

LONG_RELEASE = "a release name of 53 characters"


class Severity(enum.StrEnum):
    error = "error"
    warning = "warning"
    info = "info"


@dataclass(frozen=True)
class Finding:
    """One thing that a rule has to say about a chart."""

    message: str
    path: str = ""
    """The file in the chart folder, or the template that rendered to the object."""
    line: int = 0
    """Counted from 1; 0 where no line is known."""
    severity: Severity = Severity.error
    hint: str = ""
    values: str = ""
    """The case it shows in (a values file, a long release name); empty for the chart's own values."""
    rule: str = ""
    """Set by the runner from the registry."""


@dataclass(frozen=True)
class Case:
    """One way of installing the chart, and the outcome."""

    values: str
    """The values file; empty for the chart's own values."""
    rendering: Rendering | None = None
    failure: tuple[Problem, ...] = ()
    """Why there is no rendering."""
    has_long_release: bool = False
    """The release name is as long as Helm allows."""

    @property
    def label(self) -> str:
        """What findings call this case; empty for the plainest."""
        return " and ".join(filter(None, (self.values, LONG_RELEASE if self.has_long_release else "")))


@dataclass(frozen=True)
class CaseLint:
    """What `helm lint` says about one case."""

    values: str
    messages: tuple[LintMessage, ...]


@dataclass(frozen=True)
class CheckInput:
    """All that rules may look at."""

    files: Mapping[str, bytes]
    cases: tuple[Case, ...] = ()
    lint: tuple[CaseLint, ...] = ()
    kubernetes: tuple[KubernetesSchemas, ...] = ()
