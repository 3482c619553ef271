"""Which folder stands for the image's code in a local run: the project's around the chart, or the remembered one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.support.project import MODELS, SUFFIXES
from trainchart.actions.support.run_record import identify_chart
from trainchart.archive.lock import LOCK_FILE, parse_lock
from trainchart.errors import Problem, TrainchartError
from trainchart.helm.rendering import Rendering
from trainchart.host.files import read_text
from trainchart.local.io.code_index import recall_code
from trainchart.local.notices import Notices
from trainchart.local.objects import find_training_sets, image_repository


@dataclass(frozen=True)
class FoundCode:
    """The folder of the training code, and what the user should know about the choice."""

    folder: Path
    notes: tuple[Problem, ...] = ()


def find_project_code(chart: Path, name: str) -> FoundCode | None:
    """Return the code of the model of this chart, in the project that the chart folder or archive lies in.

    The lock of a chart folder names the spec; else it is the spec of the chart's name, which may be another model's.
    """
    specs = [f"{MODELS}/{name}{suffix}" for suffix in SUFFIXES]
    lock = chart / LOCK_FILE
    if lock.is_file():
        specs = [parse_lock(read_text(lock)).spec.name]
    for spec in (folder / spec for folder in chart.absolute().parents for spec in specs):
        if spec.is_file():
            from trainchart.actions.support.models import load_model

            with suppress(TrainchartError):  # a spec that is being edited does not keep its chart from running
                code = load_model(spec).code.absolute()
                is_same = _lies_beside(code, name, identify_chart(chart))
                if is_same and lock.is_file():
                    return FoundCode(code)
                return FoundCode(code, (_note(f"trains the code in {code}, as {spec} says", is_same=is_same),))
    return None


def recall_image_code(chart: Path, name: str, rendering: Rendering) -> FoundCode:
    """Return the code remembered for the image of the rendered chart; without any, the current folder.

    Projects may share an image repository, so the folder beside a chart of the same content goes first.
    """
    sets = find_training_sets(rendering.manifests, Notices())
    repository = image_repository(str(sets[0].container.get("image", ""))) if sets else ""
    folders = recall_code(repository)
    if not folders:
        return FoundCode(Path.cwd())
    identity = identify_chart(chart)
    same = [folder for folder in folders if _lies_beside(folder, name, identity)]
    chosen = (same or folders)[0]
    others = [str(folder) for folder in folders if folder != chosen]
    said = f"trains the code in {chosen}, remembered for the image {repository}"
    if others:
        said += f"; also remembered: {', '.join(others)}"
    return FoundCode(chosen, (_note(said, is_same=bool(same)),))


def _note(said: str, *, is_same: bool) -> Problem:
    """Return the note on a choice of code, and on whether its project holds the very chart that is run."""
    doubt = "" if is_same else "; its project does not contain this chart, so the code may not fit"
    return Problem(said + doubt, hint="choose the code with --code FOLDER")


def _lies_beside(code: Path, name: str, identity: str) -> bool:
    """Tell whether the chart of this identity, which is empty where unknown, is in the project of a code folder."""
    charts = (folder / "charts" / name for folder in (code, *code.parents))
    chart = next((chart for chart in charts if (chart / "Chart.yaml").is_file()), None)
    return bool(identity) and chart is not None and identify_chart(chart) == identity
