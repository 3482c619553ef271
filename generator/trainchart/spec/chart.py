"""The spec of a chart that is no training job: which family it is of, its identity, and its values."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from trainchart.chart_version import is_chart_version
from trainchart.spec.model import NAME_PATTERN, Maintainer
from trainchart.spec.section import Annotations, Line, Section


def _version(text: str) -> str:
    if not is_chart_version(text):
        raise ValueError(f'{text!r} is not a SemVer version, for example "0.1.0"')
    return text


Version = Annotated[str, AfterValidator(_version)]


VALUES_KEY = "values"
"""Below which a spec, and a layer of defaults, has the values of a chart."""


class ChartSpec(Section):
    """A chart of a family, as its author wrote it."""

    api_version: Literal["trainchart/v1"]
    """Version of this format."""
    kind: Literal["Chart"]
    family: str
    """The kind of chart: a family of trainchart, or of a pack."""
    name: Annotated[str, Field(pattern=NAME_PATTERN)]
    """Name of the chart: lower-case letters, digits and dashes, at most 40 characters."""
    version: Version = "0.1.0"
    """Version of the chart (SemVer)."""
    description: Annotated[Line, Field(min_length=1)]
    """One sentence on what the chart is for."""
    home: str = ""
    """Home page."""
    icon: str = ""
    """Address of an icon."""
    license: str = ""
    """SPDX identifier of the chart's licence."""
    sources: list[str] = Field(default_factory=list)
    """Addresses of the source code."""
    keywords: list[str] = Field(default_factory=list)
    maintainers: list[Maintainer] = Field(default_factory=list)
    annotations: Annotations = Field(default_factory=dict)
    """Further annotations of Chart.yaml."""
    values: dict[str, Any] | None = None
    """Values that differ from the family's defaults, and those that have no default."""
