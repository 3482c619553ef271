"""The charts of the golden cases, one per strategy. Only one is kept as a folder; the others are made here."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from trainchart.actions.support.models import build_values_schema, load_model
from trainchart.render.chart import FAMILY, render_chart
from trainchart.resources import read_family

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = tuple(sorted(path.parent.name for path in GOLDEN.glob("*/spec.yaml")))


@functools.cache
def render_case(case: str) -> Mapping[str, bytes]:
    """Return the files of a case's chart, generated from its spec."""
    plan = load_model(GOLDEN / case / "spec.yaml").plan
    return render_chart(plan, read_family(FAMILY), build_values_schema(plan)).files


@functools.cache
def chart_folder(case: str) -> Path:
    """Return a folder CASE/chart with the case's chart, which lasts as long as this process."""
    kept = GOLDEN / case / "chart"
    if kept.is_dir():
        return kept
    folder = _temporary_folder() / case / "chart"
    write_chart(folder, render_case(case))
    return folder


def list_charts() -> list[Path]:
    return [chart_folder(case) for case in CASES]


def write_chart(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


@functools.cache
def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="trainchart-golden-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
