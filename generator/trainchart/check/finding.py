"""What a check rule says, and everything that rules look at."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.errors import Problem
from trainchart.rendering import LintMessage, Rendering


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
    """One way of installing the chart: its name in findings (empty for the defaults), and the outcome."""

    values: str
    rendering: Rendering | None = None
    failure: tuple[Problem, ...] = ()
    """Why there is no rendering."""


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
