"""What other Python programs may rely on: from a model spec to a chart, its findings and its archive.

The names in `__all__`, their parameters and their fields stay; every other module of trainchart is internal. Nothing
here prints, ends the process, or depends on the current folder beyond the paths that it is given.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainchart.actions import check as _check
from trainchart.actions import package as _package
from trainchart.actions.support import models as _models
from trainchart.actions.support.given_values import read_values_files
from trainchart.actions.support.packs import read_packs
from trainchart.actions.support.project import project_of
from trainchart.actions.support.specs import render_with_waivers
from trainchart.check.finding import Finding, Severity
from trainchart.errors import (
    ChecksFailed,
    PlanError,
    Problem,
    RenderError,
    SpecError,
    ToolError,
    TrainchartError,
    UsageError,
)
from trainchart.host.files import write_tree

__all__ = [
    "Chart",
    "ChecksFailed",
    "Finding",
    "Model",
    "Package",
    "PlanError",
    "Problem",
    "RenderError",
    "Severity",
    "SpecError",
    "ToolError",
    "TrainchartError",
    "UsageError",
    "check_chart",
    "load_model",
    "package_chart",
    "render_chart",
]

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Model:
    """A model spec that was read, and completed by the defaults of packs and of trainchart."""

    spec: Path
    """The file, by its absolute path."""
    name: str
    version: str
    """Of the chart that it gives."""
    strategy: str
    code: Path
    """The folder of the training code."""
    values: Mapping[str, Any]
    """The chart's default values."""
    packs: tuple[str, ...]
    """NAME@VERSION of each, the weakest first."""
    _located: _models.LocatedModel = field(repr=False, compare=False)


@dataclass(frozen=True)
class Chart:
    """A Helm chart in memory."""

    name: str
    version: str
    files: Mapping[str, bytes]
    """The content of each file by its path in the chart's folder."""
    model: Model = field(repr=False, compare=False)


@dataclass(frozen=True)
class Package:
    """A chart archive that was written."""

    path: Path
    name: str
    version: str
    identity: str
    """SHA-256 of the chart's content in hexadecimal: archives of the same content have the same."""


def load_model(spec: StrPath, *, strategy: str = "") -> Model:
    """Return the model that the file `spec` describes, with another `strategy` than it names if one is given.

    Raises:
        ToolError: the file, or a pack of its project, cannot be read.
        SpecError: it is not a valid spec, or a pack is not valid.
        PlanError: it holds a value or a combination that cannot work.
    """
    located = _models.load_model(Path(spec).absolute(), strategy)
    plan = located.plan
    return Model(
        spec=located.spec,
        name=plan.name,
        version=plan.spec.version,
        strategy=plan.spec.strategy,
        code=located.code,
        values=plan.values.model_dump(by_alias=True),
        packs=tuple(f"{pack.name}@{pack.version}" for pack in located.packs),
        _located=located,
    )


def render_chart(model: Model) -> Chart:
    """Return the chart of a model as `trainchart generate` writes it, with the waivers of the chart's folder.

    Raises:
        SpecError: the training code is not there, or a template of a pack is wrong.
    """
    rendered = render_with_waivers(model._located)
    return Chart(rendered.name, rendered.version, rendered.files, model)


def check_chart(
    chart: Chart | StrPath, *, values: Iterable[StrPath] = (), kube_versions: Iterable[str] = (), engine: str = "auto"
) -> tuple[Finding, ...]:
    """Return what the rules of `trainchart check`, and of packs, find in a chart, a folder or an archive.

    Args:
        chart: from `render_chart`, or the path of a chart.
        values: values files to check with, beside the chart's own values.
        kube_versions: such as 1.34; without any, the oldest supported and the newest known.
        engine: the Helm engine: auto, sdk, binary or the path of a helm program.

    Raises:
        ToolError: a file or the Helm engine is missing; what is wrong in the chart is a finding.
        SpecError: a pack is not valid.
    """
    packs = chart.model._located.packs if isinstance(chart, Chart) else read_packs(project_of(Path(chart)))
    with _written(chart) as folder:
        checked = _check.check_chart(
            folder,
            values=read_values_files(map(Path, values)),
            engine=engine,
            kube_versions=tuple(kube_versions),
            packs=packs,
        )
    return checked.findings


def package_chart(chart: Chart | StrPath, destination: StrPath, *, engine: str = "auto") -> Package:
    """Write the archive of a chart into the folder `destination`, which is created if it does not exist.

    The same content gives the same bytes: times come from SOURCE_DATE_EPOCH or the last commit.

    Args:
        chart: from `render_chart`, or the path of a chart.
        destination: the folder for the archive.
        engine: the Helm engine: auto, sdk, binary or the path of a helm program.

    Raises:
        RenderError: the chart does not render with its own values.
        ChecksFailed: it holds passwords or keys, or was changed since it was generated.
        ToolError: the archive is there with other content, or the Helm engine is missing.
    """
    origin = chart.model.spec.parent if isinstance(chart, Chart) else None
    with _written(chart) as folder:
        packaged = _package.package_chart(
            folder, Path(destination), engine=engine, environment=os.environ, origin=origin
        )
    archive = packaged.archive
    return Package(packaged.path, archive.name, archive.version, archive.identity)


@contextmanager
def _written(chart: Chart | StrPath) -> Iterator[Path]:
    """Yield the path of a chart, for as long as it is needed where it is in memory."""
    if not isinstance(chart, Chart):
        yield Path(chart)
        return
    with tempfile.TemporaryDirectory(prefix="trainchart-chart-") as folder:
        path = Path(folder, chart.name)
        write_tree(path, chart.files, is_ours=lambda _: True)
        yield path
