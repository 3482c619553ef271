"""What the console shows and does to install and uninstall releases, and the Installer that does it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainchart.console.views import RunRef

RELEASE, NAMESPACE, YAML = "release", "namespace", "yaml"
"""What a user types beside the values that have a field of their own."""
NOWHERE = ""
"""The place of a problem that belongs to no field."""
Problems = Mapping[str, Sequence[str]]
"""Name of a field → what is wrong with what was typed there."""


@dataclass(frozen=True)
class ChartOffer:
    """A chart that can be installed."""

    key: str
    """What a form names it by: only what the console has offered itself is ever opened."""
    name: str
    version: str
    about: str = ""
    where: str = ""
    """As helm is given it."""


@dataclass(frozen=True)
class ChartOffers:
    """The charts of a project and those that were fetched, and where else one may look."""

    charts: Sequence[ChartOffer]
    place: str
    """The folder in which charts are looked for, in words."""
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class OpenChart:
    """A chart that a form is made of."""

    offer: ChartOffer
    values: Mapping[str, Any]
    schema: Mapping[str, Any]
    seen: str
    """Digest of its files."""
    namespace: str
    """Where a release goes unless the user says otherwise."""
    text: str = ""
    """The beginning of values.yaml, which explains the values that have no field."""


@dataclass(frozen=True)
class Typed:
    """What a user has typed into a form."""

    chart: str = ""
    release: str = ""
    namespace: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Key of a value, such as hyperparameters.maxSteps → text."""
    yaml: str = ""
    seen: str = ""
    """Digest of the chart that the form was made of; empty for the first form."""


@dataclass(frozen=True)
class Review:
    """What would be installed."""

    command: str
    """The command, with the values that it reads."""
    values: str
    """The values that differ from the chart's, as YAML; empty for none."""
    kinds: Sequence[tuple[str, int]]
    """How many objects of each kind helm makes."""
    training: str = ""
    """The name of the training that the release will be; empty where the chart trains nothing."""


@dataclass(frozen=True)
class Installed:
    """What helm said, and where the release is looked at."""

    text: str
    run: RunRef | None


@dataclass(frozen=True)
class PublishedChart:
    """A published chart as a user names it."""

    reference: str
    name: str = ""
    version: str = ""
    plain_http: bool = False


@dataclass(frozen=True)
class Removal:
    """What uninstalling a release does."""

    command: str
    kept: Sequence[str]
    """Objects that stay by policy."""
    lost: Sequence[str]
    """Claims that go, with what they hold."""
    kinds: Sequence[tuple[str, int]]
    """How many objects of each kind go."""
    warning: str = ""
    """Of a tool that would bring the release back; empty where none is known."""


class Installer(Protocol):
    """Installs and uninstalls as the user does; every method may take seconds, and raises TrainchartError."""

    def list_charts(self) -> ChartOffers:
        """Return the charts that are offered."""

    def fetch(self, published: PublishedChart) -> ChartOffer:
        """Fetch a published chart, and offer it from now on."""

    def open_chart(self, key: str) -> OpenChart:
        """Return a chart that was offered."""

    def check(self, typed: Typed) -> Review | Problems:
        """Return what would be installed, or what is wrong with what was typed; nothing is changed."""

    def install(self, typed: Typed) -> Installed | Problems:
        """Check again, and install."""

    def plan_removal(self, run: RunRef) -> Removal:
        """Return what uninstalling the release of a run does."""

    def uninstall(self, run: RunRef) -> str:
        """Uninstall the release of a run, and return what helm said."""
