"""What a command is to train or examine: a chart folder, an archive, or a model whose chart is made for it."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.support.chart_drift import find_edits
from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.project import NO_PROJECT, find_spec, suggest_model
from trainchart.actions.support.run_code import FoundCode, find_project_code
from trainchart.archive.lock import LOCK_FILE
from trainchart.errors import PlanError, Problem, ToolError
from trainchart.helm.io.inputs import find_near_chart, require_chart
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.plan.strategies import find_strategy
from trainchart.scaffold.model_name import is_model_name

_ARCHIVES = (".tgz", ".tar.gz")


@dataclass(frozen=True)
class Target:
    """A chart on disk, perhaps in a scratch folder, and what is known beside it."""

    chart: Path
    chart_name: str
    code: FoundCode | None
    """Where a model spec says that its code is."""
    notes: tuple[Problem, ...] = ()
    """What the author of a model spec should know of."""


@contextmanager
def open_target(target: str, strategy: str) -> Iterator[Target]:
    """Give the chart that `target` means; one that is made of a model, perhaps with another strategy, is temporary.

    Raises:
        ToolError: there is no such model or chart.
        PlanError: a strategy is given for a chart, whose own is fixed.
    """
    path = Path(target)
    if is_chart(path):
        if strategy:
            raise PlanError(
                f"the strategy of the chart {target} is fixed", hint="--strategy takes a model, or its spec file"
            )
        require_chart(path)
        name = _read_chart_name(path)
        yield Target(path, name, find_project_code(path, name), find_edits(path))
        return
    spec = find_spec(target)
    if not spec.is_file():
        raise _no_model(target, spec)
    if strategy:
        find_strategy(strategy)
    with tempfile.TemporaryDirectory(prefix="trainchart-") as scratch:
        yield _render_model(spec, Path(scratch), strategy)


def _no_model(target: str, spec: Path) -> ToolError:
    """Return the error about a target that is neither a chart nor a model; it may be a folder of that name."""
    known = suggest_model(target)
    if not Path(target).is_dir():
        near = find_near_chart(Path(target)) if "/" in target else None
        hint = (
            f"did you mean {near}?" if near else known or f"{NO_PROJECT}; or name a chart folder, a .tgz or a spec file"
        )
        return ToolError(f"there is no model, chart or archive {target!r}", hint=hint)
    name, script = shlex.quote(target), shlex.quote(f"{target}/SCRIPT.py")
    make = f"make one: trainchart init {name}, or trainchart init {name} --from-script {script}"
    return ToolError(
        f"there is no model {target}, and the folder {target} is not a chart",
        hint=f"{known}; {make}" if known else make,
    )


def is_chart(target: Path) -> bool:
    """Say whether `target` means a chart. A model's code may lie in a folder of the model's name, which is none."""
    if target.is_dir():
        has_mark = any((target / name).is_file() for name in ("Chart.yaml", LOCK_FILE))
        return has_mark or not is_model_name(str(target))
    return target.name.endswith(_ARCHIVES)


def _render_model(spec: Path, scratch: Path, strategy: str) -> Target:
    """Generate the chart of a model spec, perhaps with another strategy, into `scratch`."""
    from trainchart.actions.support.chart_folder import render_model_to

    model = render_model_to(spec, scratch, strategy)
    assert model.code is not None, "a model has code"
    return Target(model.chart, _read_chart_name(model.chart), FoundCode(model.code.absolute()), model.notes)


def _read_chart_name(chart: Path) -> str:
    try:
        name = parse_mapping(read_chart_files(chart)["Chart.yaml"].decode(errors="replace")).get("name")
    except (KeyError, YamlError) as err:
        raise ToolError(f"cannot read Chart.yaml of {chart}: {err}", hint="is this the chart that you mean?") from err
    if not isinstance(name, str) or not name:
        raise PlanError(f"Chart.yaml of {chart} has no name")
    return name
