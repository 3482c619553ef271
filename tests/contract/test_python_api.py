"""The Python API as it is promised: names, parameters and fields, and what they do in a user's program."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trainchart import api, errors
from trainchart.api import (
    Chart,
    ChecksFailed,
    PlanError,
    Severity,
    SpecError,
    ToolError,
    check_chart,
    load_model,
    package_chart,
    render_chart,
)

ROOT = Path(__file__).parent.parent.parent
PROMISED = {
    "Chart": "name: str, version: str, files: Mapping[str, bytes], model: Model",
    "ChecksFailed": "TrainchartError",
    "Finding": "message: str, path: str, line: int, severity: Severity, hint: str, values: str, rule: str, "
    "is_own_fault: bool, stands_alone: bool",
    "Model": "spec: Path, name: str, version: str, strategy: str, code: Path, values: Mapping[str, Any], "
    "packs: tuple[str, ...]",
    "Package": "path: Path, name: str, version: str, identity: str",
    "PlanError": "TrainchartError",
    "Problem": "message: str, where: str, hint: str",
    "RenderError": "TrainchartError",
    "Severity": "error, warning, info",
    "SpecError": "TrainchartError",
    "ToolError": "TrainchartError",
    "TrainchartError": "Exception",
    "UsageError": "TrainchartError",
    "check_chart": "(chart: 'Chart | StrPath', *, values: 'Iterable[StrPath]' = (), "
    "kube_versions: 'Iterable[str]' = (), engine: 'str' = 'auto') -> 'tuple[Finding, ...]'",
    "load_model": "(spec: 'StrPath', *, strategy: 'str' = '') -> 'Model'",
    "package_chart": "(chart: 'Chart | StrPath', destination: 'StrPath', *, engine: 'str' = 'auto') -> 'Package'",
    "render_chart": "(model: 'Model') -> 'Chart'",
}
"""What users may rely on. A line that changes breaks their programs: add to it, or raise the major version."""


@pytest.fixture
def project(copy_sources: Callable[..., Path], tmp_path: Path) -> Path:
    return copy_sources(tmp_path / "project", "models/digits.yaml", "examples/digits")


def describe(name: str) -> str:
    promised = getattr(api, name)
    if dataclasses.is_dataclass(promised):
        fields = (field for field in dataclasses.fields(promised) if not field.name.startswith("_"))
        return ", ".join(f"{field.name}: {field.type}" for field in fields)
    if inspect.isfunction(promised):
        return str(inspect.signature(promised))
    if issubclass(promised, Exception):
        return promised.__base__.__name__
    return ", ".join(member.value for member in promised)


def test_the_promised_names_and_signatures_hold() -> None:
    assert {name: describe(name) for name in api.__all__} == PROMISED


def test_every_promise_is_documented() -> None:
    page = (ROOT / "docs" / "python-api.md").read_text()
    assert [name for name in PROMISED if f"`{name}" not in page] == []
    fields = [
        field for name in ("Model", "Chart", "Package", "Finding") for field in re.findall(r"(\w+):", PROMISED[name])
    ]
    assert [field for field in fields if f"`{field}`" not in page] == []
    assert all(getattr(api, name).__doc__ for name in PROMISED if inspect.isfunction(getattr(api, name)))


def test_what_the_functions_raise_is_exported() -> None:
    for name in ("load_model", "render_chart", "check_chart", "package_chart"):
        for line in inspect.getdoc(getattr(api, name)).partition("Raises:")[2].splitlines():  # type: ignore[union-attr]
            if line.strip() and line.startswith("    "):
                assert line.split(":")[0].strip() in api.__all__, f"{name}: {line}"


def test_a_model_becomes_a_checked_package(project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    model = load_model(project / "models" / "digits.yaml")
    assert (model.name, model.strategy, model.packs) == ("digits", "single", ())
    assert model.code == project / "examples/digits"
    chart = render_chart(model)
    assert (chart.name, chart.version) == ("digits", model.version)
    assert {"Chart.yaml", "values.yaml", "templates/statefulset.yaml"} <= chart.files.keys()
    assert [each for each in check_chart(chart) if each.severity is not Severity.info] == []
    package = package_chart(chart, tmp_path / "dist")
    assert package.path == tmp_path / "dist" / f"digits-{model.version}.tgz"
    assert check_chart(package.path) == check_chart(chart)
    assert capfd.readouterr() == ("", "")


def test_the_command_line_makes_the_same_chart_and_package(project: Path, tmp_path: Path) -> None:
    chart = render_chart(load_model(project / "models" / "digits.yaml"))
    package = package_chart(chart, tmp_path)
    for command in (["generate", "digits"], ["package", "charts/digits", "-d", "dist"]):
        subprocess.run([sys.executable, "-m", "trainchart", *command], cwd=project, check=True, capture_output=True)
    folder = project / "charts" / "digits"
    assert {name: (folder / name).read_bytes() for name in chart.files} == dict(chart.files)
    assert package_chart(folder, tmp_path).identity == package.identity
    assert (project / "dist" / package.path.name).read_bytes() == package.path.read_bytes()


def test_the_current_folder_changes_nothing(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = render_chart(load_model(project / "models" / "digits.yaml"))
    other = tmp_path / "other"
    other.mkdir()
    (other / "trainchart.yaml").write_text("what is this")
    monkeypatch.chdir(other)
    assert render_chart(load_model(project / "models" / "digits.yaml")) == chart
    check_chart(chart)
    assert sorted(path.name for path in other.iterdir()) == ["trainchart.yaml"]
    monkeypatch.chdir(project / "models")
    assert render_chart(load_model("digits.yaml")) == chart


def test_another_strategy_gives_another_chart(project: Path) -> None:
    model = load_model(project / "models" / "digits.yaml", strategy="multi-worker-mirrored")
    assert model.strategy == "multi-worker-mirrored"
    assert render_chart(model) != render_chart(load_model(project / "models" / "digits.yaml"))


def test_findings_say_where_and_what(project: Path, tmp_path: Path) -> None:
    chart = render_chart(load_model(project / "models" / "digits.yaml"))
    values = tmp_path / "latest.yaml"
    values.write_text("image: {tag: latest}\n")
    broken = Chart(chart.name, chart.version, {**chart.files, "templates/x.yaml": b"kind: [\n"}, chart.model)
    (finding, *_) = [each for each in check_chart(broken) if each.path == "templates/x.yaml"]
    assert (finding.severity, finding.rule) == (Severity.error, "helm-lint")
    assert any(each.values == str(values) for each in check_chart(chart, values=[values]))
    with pytest.raises(ToolError, match=r"1\.2"):
        check_chart(chart, kube_versions=["1.2"])


def test_errors_have_types_problems_and_hints(project: Path, tmp_path: Path) -> None:
    spec = project / "models" / "digits.yaml"
    with pytest.raises(ToolError):
        load_model(project / "models" / "absent.yaml")
    with pytest.raises(ToolError):
        check_chart(tmp_path / "absent")
    text = spec.read_text()
    spec.write_text(text + "nmae: x\n")
    with pytest.raises(SpecError) as wrong:
        load_model(spec)
    assert wrong.value.problems[0].where.startswith(f"{spec}:")
    spec.write_text(text)
    with pytest.raises((PlanError, SpecError)):
        load_model(spec, strategy="nonsense")
    model = load_model(spec)
    chart = render_chart(model)
    changed = Chart(chart.name, chart.version, {**chart.files, "values.yaml": b"a: 1\n"}, model)
    with pytest.raises(ChecksFailed) as drifted:
        package_chart(changed, tmp_path)
    assert drifted.value.hint
    shutil.rmtree(model.code)
    with pytest.raises(SpecError, match="code is not there"):
        render_chart(model)
    assert issubclass(errors.SpecError, api.TrainchartError)


def test_results_cannot_be_changed(project: Path) -> None:
    model = load_model(project / "models" / "digits.yaml")
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.name = "other"  # type: ignore[misc]
    assert "LocatedModel" not in repr(model)


def test_a_typed_program_of_a_user_works(project: Path, tmp_path: Path) -> None:
    program = ROOT / "tests" / "support" / "python_api_user.py"

    argv = [sys.executable, str(program), str(project / "models" / "digits.yaml"), str(tmp_path / "dist")]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(json.loads(done.stdout)["path"]).is_file()


def test_the_command_line_and_the_api_load_apart() -> None:
    """Neither slows the other down."""
    program = "import sys, {}; print([name for name in ('typer', 'rich', 'trainchart.api') if name in sys.modules])"
    for module, loaded in (
        ("trainchart", "[]"),
        ("trainchart.api", "['trainchart.api']"),
        ("trainchart.cli.app", "['typer']"),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program.format(module)], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == loaded, module
