"""What a check rule says, and everything that rules look at."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.errors import Problem
from trainchart.helm.rendering import LintMessage, Manifest, Rendering

if TYPE_CHECKING:
    from trainchart.packs.rules import PackRule

LONG_RELEASE = "a release name of 53 characters"
_CHART_FILE = "Chart.yaml"
_LOCK_FILE = "trainchart.lock.yaml"
_STRATEGY_ANNOTATION = b"trainchart/strategy:"
_FAMILY_ANNOTATION = b"trainchart/family:"


class Severity(enum.StrEnum):
    error = "error"
    warning = "warning"
    info = "info"

    @property
    def rank(self) -> int:
        """Return 0 for the worst."""
        return list(Severity).index(self)


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
    is_own_fault: bool = False
    """The rule itself failed, which is bad whatever the rule is about."""
    stands_alone: bool = False
    """What else is found follows from this, and is not said."""


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


class Probe(enum.StrEnum):
    """A way of installing that the user did not ask for, rendered to see what happens; it may be refused."""

    large_numbers = "numbers above a million"
    more_replicas = "twelve replicas of every role"
    again = "the same chart once more"
    next_version = "an upgrade to another version of the chart"
    many_pods = "more pods than TF_CONFIG can name"


@dataclass(frozen=True)
class CaseLint:
    """What `helm lint` says about one case."""

    values: str
    messages: tuple[LintMessage, ...]


@dataclass(frozen=True)
class CheckInput:
    """All that rules may look at: a chart, or plain manifests (then `files` hold no Chart.yaml)."""

    files: Mapping[str, bytes]
    cases: tuple[Case, ...] = ()
    lint: tuple[CaseLint, ...] = ()
    kubernetes: tuple[KubernetesSchemas, ...] = ()
    """The versions whose schemas every object is compared with."""
    kinds: tuple[KubernetesSchemas, ...] = ()
    """The versions that are only asked whether they have an object's kind."""
    probes: Mapping[Probe, Rendering] = field(default_factory=dict)
    """What rendered of the probes; those that were refused are not here."""
    added_values: Mapping[str, str] = field(default_factory=dict)
    """The texts of the values files that cases were installed with, by name."""
    values_fit: bool = False
    """Helm has compared values.yaml with its schema already, and was content."""
    pack_rules: tuple[PackRule, ...] = ()
    """What the packs of the project demand of objects."""
    today: date = date.min
    """The day that waivers run out by."""

    @property
    def is_chart(self) -> bool:
        return _CHART_FILE in self.files

    @property
    def is_generated(self) -> bool:
        """Tell a chart of trainchart; an archive has no lock, but the annotation of its strategy or family."""
        chart = self.files.get(_CHART_FILE, b"")
        return _LOCK_FILE in self.files or _STRATEGY_ANNOTATION in chart or _FAMILY_ANNOTATION in chart

    @property
    def is_training(self) -> bool:
        """Tell a chart of trainchart that trains from one of another family."""
        return self.is_generated and _FAMILY_ANNOTATION not in self.files.get(_CHART_FILE, b"")

    def renderings(self) -> Iterator[tuple[str, Rendering]]:
        """Yield (label, rendering) of every case whose release name is of ordinary length.

        What a long name changes is the business of the rules about names.
        """
        for case in self.cases:
            if case.rendering is not None and not case.has_long_release:
                yield case.label, case.rendering

    def objects(self) -> Iterator[Manifest]:
        """Yield every object of every case that renders."""
        for case in self.cases:
            if case.rendering is not None:
                yield from case.rendering.manifests
