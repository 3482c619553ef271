"""Starting, generating and checking: the generator's marks, and the same objects by other means."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Row, program, time_by_turns
from trainchart.actions.generate import generate_charts
from trainchart.host.files import write_file
from trainchart.scaffold.pack_text import render_pack, render_project_file

ROOT = Path(__file__).parent.parent
KUBERNETES = "1.36.0"
_SPECS = sorted(ROOT.glob("tests/golden/*/spec.yaml"))
_TRAINCHART = Path(sys.executable).with_name("trainchart")


def measure_start() -> list[Row]:
    """Measure `trainchart --help` against the libraries it is made with."""
    libraries = [sys.executable, "-c", "import typer, rich"]
    taken = time_by_turns({"help": program([_TRAINCHART, "--help"]), "libraries": program(libraries)}, repeats=11)
    return [
        Row("`python -c 'import typer, rich'`", taken["libraries"] * 1000, "ms"),
        Row("`trainchart --help`", taken["help"] * 1000, "ms"),
        Row("ratio", taken["help"] / taken["libraries"], "×", mark=1.2),
    ]


def measure_one_chart(helm: Path) -> list[Row]:
    """Measure generating a chart again, as a process and inside one, against rendering it with helm."""
    with tempfile.TemporaryDirectory() as folder:
        charts = Path(folder)
        spec = ROOT / "models" / "mnist.yaml"
        taken = time_by_turns(
            {
                "generate": program([_TRAINCHART, "generate", spec, "--output", charts], cwd=ROOT),
                "again": program([_TRAINCHART, "generate", spec, "--output", charts, "--no-cache"], cwd=ROOT),
                "in process": lambda: generate_charts((spec,), charts, overwrite=False, use_cache=False),
                "template": program([helm, "template", "exp", charts / "mnist", "--kube-version", KUBERNETES]),
            }
        )
    return [
        Row("`helm template` of the result", taken["template"] * 1000, "ms"),
        Row("`trainchart generate mnist`, nothing changed", taken["generate"] * 1000, "ms"),
        Row("ratio", taken["generate"] / taken["template"], "×", mark=2.5),
        Row("the same with `--no-cache`: it is generated again", taken["again"] * 1000, "ms"),
        Row("ratio", taken["again"] / taken["template"], "×"),
        Row("generated again inside a process that is already running", taken["in process"] * 1000, "ms"),
    ]


def measure_hundred() -> list[Row]:
    """Measure a hundred different charts, generated in one process and then checked by one command."""
    with tempfile.TemporaryDirectory() as folder:
        specs = [_write_spec(Path(folder), number) for number in range(100)]
        start = time.perf_counter()
        charts = [each.chart for each in generate_charts(tuple(specs), Path(folder, "charts"), overwrite=False)]
        generated = time.perf_counter()
        program([_TRAINCHART, "check", "--no-cache", *charts])()
        checked = time.perf_counter()
    return [
        Row("100 charts of all strategies generated and written", generated - start, "s", mark=1),
        Row("100 full checks: `trainchart check --no-cache`", checked - generated, "s", mark=10),
    ]


def measure_fleet(helm: Path) -> list[Row]:
    """Measure upgrading two hundred charts after their pack has changed, against rendering each with helm once."""
    with tempfile.TemporaryDirectory() as place:
        project = Path(place)
        (project / "models").mkdir()
        for number in range(200):
            _write_spec(project / "models", number)
        for path, text in render_pack("platform").items():
            write_file(project / "packs" / "platform" / path, text.encode())
        write_file(project / "trainchart.yaml", render_project_file("packs/platform").encode())
        program([_TRAINCHART, "generate"], cwd=project)()
        write_file(project / "packs" / "platform" / "defaults.yaml", b"commonLabels: {team: research}\n")
        start = time.perf_counter()
        program([_TRAINCHART, "upgrade"], cwd=project)()
        upgraded = time.perf_counter()
        charts = sorted((project / "charts").iterdir())
        for chart in charts:
            program([helm, "template", "exp", chart, "--kube-version", KUBERNETES])()
        rendered = time.perf_counter()
    assert len(charts) == 200
    return [
        Row("200 charts rendered by `helm template`, one after the other", rendered - upgraded, "s"),
        Row("200 charts upgraded by `trainchart upgrade` after their pack has changed", upgraded - start, "s", mark=20),
    ]


def _write_spec(folder: Path, number: int) -> Path:
    source = _SPECS[number % len(_SPECS)]
    spec = folder / f"model-{number}.yaml"
    replaced = {"name": f"name: m-{number}", "code": 'code: {path: ".", command: [train]}'}
    lines = [replaced.get(line.partition(":")[0], line) for line in source.read_text().splitlines()]
    spec.write_text("\n".join(lines) + "\n")
    return spec
