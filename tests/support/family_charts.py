"""Charts of trainchart's families, as a user makes them from the spec that the family is tested with."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from trainchart.cli.app import app
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import Rendering, ValueOverrides

FAMILIES = Path(__file__).parents[2] / "chart-templates"


def make_family_chart(family: str, folder: Path) -> Path:
    """Generate and check the chart of a family's only spec in `folder`, and return where it lies."""
    (spec,) = (FAMILIES / family / "tests").iterdir()
    (folder / "models").mkdir()
    shutil.copy(spec, folder / "models")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (["generate", spec.stem], ["check", f"charts/{spec.stem}"]):
            done = CliRunner().invoke(app, command)
            assert done.exit_code == 0, done.output
    return folder / "charts" / spec.stem


def render_family_chart(chart: Path, release: str, namespace: str, values: dict[str, Any]) -> Rendering:
    """Render a chart with values of a user's own."""
    overrides = ValueOverrides(files=(("values", json.dumps(values)),))
    return find_engine("sdk").render(chart, release=release, namespace=namespace, overrides=overrides)
