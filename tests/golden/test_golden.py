"""Charts as expected output: one case per strategy, each with its spec, its values and what Helm makes of its chart.

One case keeps its whole chart, whose other files differ between strategies by little. `make golden` writes all anew.
What they mean is asserted in test_chart_semantics.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from tests.support.golden_charts import CASES, GOLDEN, chart_folder, render_case, write_chart
from trainchart.helm.io.choose import find_engine
from trainchart.helm.rendering import ValueOverrides
from trainchart.kubernetes_yaml import dump_mapping

WHOLE = "parameter-server"
"""The case that keeps its whole chart: it has every role."""


@pytest.mark.parametrize("case", CASES)
def test_a_spec_gives_the_expected_chart(case: str, request: pytest.FixtureRequest) -> None:
    files = render_case(case)
    folder = GOLDEN / case / "chart" if case == WHOLE else GOLDEN / case
    if case != WHOLE:
        files = {"values.yaml": files["values.yaml"]}
    elif request.config.getoption("--update-golden", default=False):
        shutil.rmtree(folder)
    if request.config.getoption("--update-golden", default=False):
        write_chart(folder, files)
    if case == WHOLE:
        kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert kept == set(files)
    for path, content in files.items():
        expected = (folder / path).read_text()
        assert content.decode() == expected, f"{path} differs: run make golden and read the difference"


@pytest.mark.parametrize("case", CASES)
def test_a_chart_gives_the_expected_objects(case: str, request: pytest.FixtureRequest) -> None:
    rendering = find_engine("sdk").render(chart_folder(case), release="exp-7", overrides=ValueOverrides())
    text = "".join(f"---\n# {m.source}\n{dump_mapping(m.document)}" for m in rendering.manifests)
    text += f"---\n# NOTES.txt\n{dump_mapping({'notes': rendering.notes})}"
    expected = GOLDEN / case / "manifests.yaml"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(text)
    assert text == expected.read_text(), "the objects differ: run make golden and read the difference"


def test_every_strategy_has_a_case() -> None:
    from trainchart.plan.strategies import STRATEGIES
    from trainchart.spec.model import StrategyName
    from trainchart_runtime.cluster import TASK_TYPES_BY_STRATEGY

    assert set(CASES) == set(STRATEGIES) == set(TASK_TYPES_BY_STRATEGY) == set(get_args(StrategyName))


def test_rendering_does_not_depend_on_where_and_how_it_runs(tmp_path: Path) -> None:
    spec = GOLDEN / CASES[0] / "spec.yaml"
    program = (
        "import sys, hashlib; from pathlib import Path\n"
        "from trainchart.actions.support.models import load_model\n"
        "from trainchart.render.chart import FAMILY, render_chart\n"
        "from trainchart.resources import read_family\n"
        "model = load_model(Path(sys.argv[1])); c = render_chart(model.plan, read_family(FAMILY), model.schema)\n"
        "print(hashlib.sha256(repr(sorted(c.files.items())).encode()).hexdigest())"
    )
    seen = set()
    for seed, zone, locale in (("0", "UTC", "C"), ("1", "Asia/Shanghai", "C.UTF-8"), ("2", "America/Lima", "de_DE")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale}
        folder = tmp_path / seed
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", program, str(spec)],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        )
        seen.add(done.stdout)
    assert len(seen) == 1
