"""Whole charts as expected output: one case per strategy, each with its spec, its chart and what Helm makes of it.

`make golden` writes them anew. What they mean is asserted in test_chart_semantics.py.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from trainchart.actions.generate import load_model
from trainchart.host.helm import find_engine
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.render.chart import FAMILY, render_chart
from trainchart.render.schema import KUBERNETES_VERSION
from trainchart.rendering import ValueOverrides
from trainchart.resources import read_family

CASES = sorted(path.parent for path in Path(__file__).parent.glob("*/spec.yaml"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_spec_gives_the_expected_chart(case: Path, request: pytest.FixtureRequest) -> None:
    plan = load_model(case / "spec.yaml").plan
    files = render_chart(plan, read_family(FAMILY), read_definitions(KUBERNETES_VERSION)).files
    if request.config.getoption("--update-golden", default=False):
        _write(case / "chart", files)
    expected = {
        path.relative_to(case / "chart").as_posix(): path.read_bytes()
        for path in (case / "chart").rglob("*")
        if path.is_file()
    }
    assert sorted(files) == sorted(expected)
    for path, content in files.items():
        assert content.decode() == expected[path].decode(), f"{path} differs: run make golden and read the difference"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_chart_gives_the_expected_objects(case: Path, request: pytest.FixtureRequest) -> None:
    rendering = find_engine("sdk").render(case / "chart", release="exp-7", overrides=ValueOverrides())
    text = "".join(f"---\n# {m.source}\n{dump_mapping(m.document)}" for m in rendering.manifests)
    text += f"---\n# NOTES.txt\n{dump_mapping({'notes': rendering.notes})}"
    expected = case / "manifests.yaml"
    if request.config.getoption("--update-golden", default=False):
        expected.write_text(text)
    assert text == expected.read_text(), "the objects differ: run make golden and read the difference"


def test_every_strategy_has_a_case() -> None:
    from trainchart.plan.strategies import STRATEGIES

    assert {case.name for case in CASES} == set(STRATEGIES)


def test_rendering_does_not_depend_on_where_and_how_it_runs(tmp_path: Path) -> None:
    spec = CASES[0] / "spec.yaml"
    program = (
        "import sys, hashlib; from pathlib import Path; from trainchart.actions.generate import *\n"
        "from trainchart.host.kubernetes_schemas import read_definitions\n"
        "c = render_chart(load_model(Path(sys.argv[1])).plan, read_family(FAMILY), read_definitions('1.37'))\n"
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


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
