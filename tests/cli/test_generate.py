"""generate, plan, explain and schema as a user calls them: exit codes, stdout, stderr, and what lies on disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import call
from trainchart.actions.check import check_chart
from trainchart.archive.lock import WAIVER_FILE
from trainchart.check.finding import Severity

ROOT = Path(__file__).parent.parent.parent
SPEC = """\
apiVersion: trainchart/v1
kind: Model
name: tiny
description: A tiny model.
image: {repository: registry.example.com/tiny, tag: "1.0"}
code: {path: code, command: [python, train.py]}
strategy: single
"""


def trainchart(cwd: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "XDG_DATA_HOME": str(cwd / "data"), "NO_COLOR": "1", **environment}
    return call(cwd, *arguments, environment=known)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one model and its code."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny.yaml").write_text(SPEC)
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print('trained')\n")
    return tmp_path


@pytest.mark.parametrize(
    "roles",
    [
        "{worker: {cpuLimit: 2}, evaluator: {}}",
        "{worker: {}, evaluator: {cpuLimit: 2, ephemeralStorageLimit: 3Gi, labels: {a: b}}}",
        "{worker: {memory: 2Gi, memoryLimit: 3Gi}, evaluator: {env: {A: b}, nodeSelector: {a: b}}}",
    ],
)
def test_unequal_roles_make_a_chart_without_findings(project: Path, roles: str) -> None:
    spec = SPEC.replace("strategy: single", "strategy: multi-worker-mirrored")
    volumes = "volumes: {checkpoints: {size: 1Gi, mountPath: /checkpoints}}\n"
    (project / "models" / "tiny.yaml").write_text(f"{spec}{volumes}roles: {roles}\n")
    assert trainchart(project, "generate", "tiny").returncode == 0
    checked = check_chart(project / "charts" / "tiny", engine="sdk")
    assert [one for one in checked.findings if one.severity is not Severity.info] == []


def test_generate_writes_a_chart_and_keeps_an_up_to_date_one(project: Path) -> None:
    first = trainchart(project, "generate", "tiny")
    assert first.returncode == 0
    assert first.stderr.startswith("note: the run controller, the only pod that may use the Kubernetes API, ")
    assert len(first.stderr.splitlines()) == 1
    assert (
        "trainchart image push --runtime REPOSITORY builds the runtime image; set run.controller.image" in first.stderr
    )
    assert first.stdout.startswith("charts/tiny  0.1.0  new, ")
    before = {path: path.stat().st_mtime_ns for path in (project / "charts").rglob("*")}
    again = trainchart(project, "generate")
    assert again.stdout == "charts/tiny  0.1.0  up to date\n"
    assert {path: path.stat().st_mtime_ns for path in (project / "charts").rglob("*")} == before
    assert trainchart(project, "generate", "--check").returncode == 0


def test_generate_check_names_outdated_files_and_writes_nothing(project: Path) -> None:
    trainchart(project, "generate")
    (project / "models" / "tiny.yaml").write_text(SPEC.replace("A tiny", "A small"))
    done = trainchart(project, "generate", "--check", "--format", "json")
    assert done.returncode == 6
    error = json.loads(done.stderr)
    assert error["error"] == "ChecksFailed"
    assert "charts/tiny/Chart.yaml" in [problem["where"] for problem in error["problems"]]
    assert "A tiny model." in (project / "charts" / "tiny" / "Chart.yaml").read_text()


def test_a_folder_that_is_no_generated_chart_is_never_replaced(project: Path) -> None:
    (project / "charts" / "tiny").mkdir(parents=True)
    (project / "charts" / "tiny" / "precious.txt").write_text("mine")
    done = trainchart(project, "generate")
    assert done.returncode == 7
    assert "Traceback" not in done.stderr
    assert [path.name for path in (project / "charts" / "tiny").iterdir()] == ["precious.txt"]


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (("strategy: single", "strategy: singel"), 3, "did you mean single?"),
        (("description", "descripton"), 3, "models/tiny.yaml:4:1: unknown key descripton"),
        (("strategy: single", "strategy: in-graph\nroles: {ps: {}, worker: {replicas: 0}}"), 4, "worker"),
        (("name: tiny", "name: [tiny"), 3, "not valid YAML"),
        (("path: code", "path: cod"), 3, "there is no folder"),
        (("path: code", "path: ../code"), 4, "models/tiny.yaml:6:8: code.path: '../code' is outside the project"),
        (("path: code", "path: /etc/security"), 4, "'/etc/security' is outside the project"),
        (("train.py", "trian.py"), 3, "there is no script trian.py"),
        (("python, train.py", "python, -m, code.train"), 0, ""),
        (('tag: "1.0"', "tag: latest"), 4, "is a moving tag"),
    ],
)
def test_a_wrong_spec_gets_one_clear_error(project: Path, change: tuple[str, str], code: int, says: str) -> None:
    (project / "models" / "tiny.yaml").write_text(SPEC.replace(*change))
    done = trainchart(project, "generate", "tiny")
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert (project / "charts").exists() is (code == 0)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("generate", "other"), 7, "models here: tiny"),
        (("generate", "nowhere.yaml"), 7, "there is no model spec nowhere.yaml"),
        (("plan",), 2, "Missing argument"),
        (("plan", "tiny", "--fromat", "json"), 2, "--format"),
        (("explain", "tiny", "roles.worker.cpuz"), 7, "did you mean roles.worker.cpu"),
        (("explain", "tiny", "roles.worker.nosuch"), 7, "known below roles.worker: "),
        (("explain", "tiny", "cpu"), 7, "did you mean roles.worker.cpu?"),
        (("explain", "tiny", "strategy.name"), 7, "strategy is a single value"),
        (("genrate",), 2, "No such command"),
        (("runs",), 2, "No such command 'runs'. Did you mean 'list'?"),
    ],
)
def test_wrong_arguments_get_a_hint(project: Path, arguments: tuple[str, ...], code: int, says: str) -> None:
    done = trainchart(project, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr


def test_without_models_the_hint_names_where_they_are_searched(tmp_path: Path) -> None:
    done = trainchart(tmp_path, "generate")
    assert done.returncode == 7
    assert "there is no model spec in models/" in done.stderr


def test_plan_prints_the_very_values_that_are_rendered(project: Path) -> None:
    trainchart(project, "generate")
    plan = json.loads(trainchart(project, "plan", "tiny", "--format", "json").stdout)
    values = yaml.safe_load((project / "charts" / "tiny" / "values.yaml").read_text())
    assert _without_unset(plan["values"], values) == values
    assert yaml.safe_load(trainchart(project, "plan", "tiny").stdout) == plan


def _without_unset(planned: dict[str, Any], written: dict[str, Any]) -> dict[str, Any]:
    """Return what is planned without the empty settings that values.yaml leaves out of roles and the like."""
    return {
        key: _without_unset(value, written.get(key, {})) if isinstance(value, dict) else value
        for key, value in planned.items()
        if value or key in written
    }


def test_explain_names_layer_file_and_line(project: Path) -> None:
    assert trainchart(project, "explain", "tiny", "image.tag").stdout == (
        'image.tag = "1.0"  # models/tiny.yaml:5:48 (model spec)\n'
    )
    memory = trainchart(project, "explain", "tiny", "roles.worker.memory").stdout
    assert "trainchart/plan/defaults.yaml:" in memory
    assert memory.endswith("(built-in)\n")
    everything = json.loads(trainchart(project, "explain", "tiny", "--format", "json").stdout)
    assert {"roles.worker.cpu", "strategy", "run.maxRestarts"} <= {entry["key"] for entry in everything}


def test_schema_accepts_the_specs_here_and_refuses_typos(project: Path) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(trainchart(project, "schema").stdout))
    specs = [*(ROOT / "models").glob("*.yaml"), *(ROOT / "tests" / "golden").glob("*/spec.yaml")]
    assert len(specs) >= 8
    for spec in specs:
        assert [error.message for error in validator.iter_errors(yaml.safe_load(spec.read_text()))] == [], spec
    for change in (("strategy", "stratgy"), ("single", "singel"), ("repository", "repo"), ("name: tiny", "name: 5")):
        assert list(validator.iter_errors(yaml.safe_load(SPEC.replace(*change)))), change


def test_help_teaches_and_is_plain_without_a_terminal(project: Path) -> None:
    done = trainchart(project, "--help")
    assert done.returncode == 0
    assert "\x1b[" not in done.stdout
    for command in ("generate", "check", "run", "logs", "package", "plan", "explain", "schema"):
        shown = trainchart(project, command, "--help")
        assert "Example" in shown.stdout, command
    assert trainchart(project, "--version").stdout.strip() == "0.1.0"


def test_a_read_only_folder_is_a_clear_error(project: Path) -> None:
    (project / "charts").write_text("a file in the way")
    done = trainchart(project, "generate")
    assert done.returncode == 7
    assert "Traceback" not in done.stderr
    assert "hint:" in done.stderr


def test_a_chart_folder_in_a_project_runs_that_projects_code(project: Path, tmp_path: Path) -> None:
    """Two checkouts of one project share an image's name; each runs its own code."""
    other = tmp_path / "other"
    for folder, word in ((project, "here"), (other, "there")):
        (folder / "models").mkdir(parents=True, exist_ok=True)
        (folder / "code").mkdir(exist_ok=True)
        (folder / "models" / "tiny.yaml").write_text(SPEC)
        (folder / "code" / "train.py").write_text(f"print('trained {word}')\n")
        assert trainchart(folder, "generate", XDG_DATA_HOME=str(tmp_path / "data")).returncode == 0
    done = trainchart(project, "run", "charts/tiny", XDG_DATA_HOME=str(tmp_path / "data"))
    assert "trained here" in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["generate tiny", "run tiny", "image build tiny --builder docker --dry-run"])
def test_code_that_a_link_brings_in_from_outside_is_refused(project: Path, tmp_path: Path, command: str) -> None:
    (project / "inside").mkdir()
    (project / "inside" / "train.py").write_text("print('trained')\n")
    (project / "linked").symlink_to("inside")
    (project / "models" / "tiny.yaml").write_text(SPEC.replace("path: code", "path: linked"))
    done = trainchart(project, *command.split())
    assert done.returncode == 0, done.stderr
    (project / "linked").unlink()
    (project / "linked").symlink_to("/etc")
    done = trainchart(project, *command.split())
    assert done.returncode == 3, done.stderr
    assert "code.path: 'linked' leads to /etc, outside the project" in " ".join(done.stderr.split())
    (project / "linked").unlink()
    (project / "linked").symlink_to("linked")
    done = trainchart(project, *command.split())
    assert done.returncode == 3, done.stderr
    assert "there is no folder" in done.stderr


def test_a_run_of_a_hand_edited_chart_says_so(project: Path) -> None:
    assert trainchart(project, "generate").returncode == 0
    assert "not as generated" not in trainchart(project, "run", "charts/tiny", "--dry-run").stderr
    with (project / "charts/tiny/values.yaml").open("a") as file:
        file.write("# mine\n")
    done = trainchart(project, "run", "charts/tiny", "--dry-run")
    assert done.returncode == 0
    assert (
        "note: charts/tiny: values.yaml has changed since it was generated, which check, package and verify refuse"
        in done.stderr
    )


@pytest.mark.parametrize("gone", ["values.yaml", "templates/_names.tpl"])
def test_run_names_the_missing_files_of_a_chart(project: Path, gone: str) -> None:
    assert trainchart(project, "generate").returncode == 0
    (project / "charts/tiny" / gone).unlink()
    done = trainchart(project, "run", "charts/tiny", "--dry-run")
    assert done.returncode == 7
    assert done.stderr.splitlines() == [
        f"error: charts/tiny is not complete: {gone} is missing",
        "hint: trainchart generate tiny writes it again",
    ]
    assert "writes it again" in trainchart(project, "check", "charts/tiny").stdout
    assert "generate tiny writes what is missing" in trainchart(project, "package", "charts/tiny").stderr
    assert trainchart(project, "generate", "tiny").returncode == 0
    assert trainchart(project, "run", "charts/tiny", "--dry-run").returncode == 0


@pytest.mark.parametrize("gone", ["README.md", "templates/service.yaml"])
def test_run_notes_missing_files_it_can_do_without(project: Path, gone: str) -> None:
    assert trainchart(project, "generate").returncode == 0
    (project / "charts/tiny" / gone).unlink()
    done = trainchart(project, "run", "charts/tiny", "--dry-run")
    assert done.returncode == 0
    assert f"note: charts/tiny: {gone} is missing since it was generated" in done.stderr
    assert "hint: trainchart generate tiny writes it again" in done.stderr


@pytest.mark.parametrize("command", ["run", "check", "package", "verify"])
def test_generated_chart_without_its_chart_file_is_named(project: Path, command: str) -> None:
    assert trainchart(project, "generate").returncode == 0
    (project / "charts/tiny/Chart.yaml").unlink()
    for folder, chart in ((project, "charts/tiny"), (project / "charts", "tiny")):
        if chart == "tiny" and command == "package":
            continue  # that is the model, whose chart is generated first
        done = trainchart(folder, command, chart)
        assert done.returncode == 7
        assert done.stderr.splitlines() == [
            f"error: {chart} is not complete: Chart.yaml is missing",
            "hint: trainchart generate tiny writes it again",
        ]


def test_run_of_a_chart_says_that_its_code_is_gone(project: Path) -> None:
    assert trainchart(project, "generate").returncode == 0
    (project / "code").rename(project / "moved")
    for more in ((), ("--dry-run",)):
        done = trainchart(project, "run", "charts/tiny", *more)
        assert done.returncode == 7
        assert done.stderr.splitlines()[-2:] == [
            f"error: the code folder {project}/code is not there",
            "hint: give its current folder with --code FOLDER",
        ]
    assert trainchart(project, "run", "charts/tiny", "--dry-run", "--code", "moved").returncode == 0


def test_a_full_disk_behind_stdout_is_a_clear_error(project: Path) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "trainchart", "plan", "tiny"]
        done = subprocess.run(command, cwd=project, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 7
    assert "no space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_hand_edits_are_refused_unless_overwritten(project: Path) -> None:
    trainchart(project, "generate")
    chart = project / "charts" / "tiny"
    (chart / "values.yaml").write_text("mine: 1\n")
    (chart / "templates" / "extra.yaml").write_text("# mine\n")
    (chart / "README.md").unlink()
    checked = trainchart(project, "generate", "--check")
    refused = trainchart(project, "generate", "--format", "json")
    assert (checked.returncode, refused.returncode) == (6, 6)
    assert "charts/tiny/values.yaml: was changed by hand" in checked.stderr
    edits = {problem["where"] for problem in json.loads(refused.stderr)["problems"]}
    assert edits == {"charts/tiny/values.yaml", "charts/tiny/templates/extra.yaml"}
    assert (chart / "values.yaml").read_text() == "mine: 1\n"
    assert trainchart(project, "generate", "--overwrite").returncode == 0
    assert not (chart / "templates" / "extra.yaml").exists()
    assert trainchart(project, "generate", "--check").returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify", "charts/tiny"),
        ("check", "charts/tiny"),
        ("package", "charts/tiny"),
        ("generate", "--check"),
        ("check", "models/my small.yaml"),
    ],
)
def test_hints_name_the_spec_file_not_the_chart(project: Path, arguments: tuple[str, ...]) -> None:
    (project / "models" / "tiny.yaml").rename(project / "models" / "my small.yaml")
    assert trainchart(project, "generate").returncode == 0
    with (project / "charts/tiny/values.yaml").open("a") as file:
        file.write("# mine\n")
    done = trainchart(project, *arguments)
    said = " ".join((done.stdout + done.stderr).split())
    assert "trainchart generate 'my small'" in said
    assert "trainchart generate tiny" not in said


def test_verify_reports_a_spec_that_makes_another_chart(project: Path) -> None:
    assert trainchart(project, "generate").returncode == 0
    (project / "models" / "tiny.yaml").write_text(SPEC.replace("name: tiny", "name: small"))
    done = trainchart(project, "verify", "charts/tiny")
    assert done.returncode == 6
    assert "models/tiny.yaml: the spec now describes the chart small, not tiny" in done.stderr
    assert "differs from what the model spec gives" not in done.stderr
    assert "trainchart generate tiny makes small; remove charts/tiny" in " ".join(done.stderr.split())


def test_verify_takes_no_spec_from_beside_a_foreign_chart(project: Path) -> None:
    foreign = project / "download"
    for name in ("models", "code"):
        (foreign / name).mkdir(parents=True)
        for file in (project / name).iterdir():
            (foreign / name / file.name).write_bytes(file.read_bytes().replace(b"A tiny", b"Another"))
    assert trainchart(foreign, "generate").returncode == 0
    done = trainchart(project, "verify", "download/charts/tiny")
    assert done.returncode == 6
    assert "models/tiny.yaml: the spec is not the one it was generated from" in done.stderr
    assert trainchart(project, "verify", "download/charts/tiny", "--spec", "download/models/tiny.yaml").returncode == 0
    lock = foreign / "charts" / "tiny" / "trainchart.lock.yaml"
    lock.write_text(lock.read_text().replace("models/tiny.yaml", "download/models/tiny.yaml"))
    done = trainchart(project, "verify", "download/charts/tiny")
    assert done.returncode == 7 and "name the model spec with --spec" in " ".join(done.stderr.split())
    lock.write_text(lock.read_text().replace("download/models/tiny.yaml", "models/tiny.yaml"))
    (project / "models" / "tiny.yaml").rename(project / "models" / "other.yaml")
    done = trainchart(project, "verify", "download/charts/tiny")
    assert done.returncode == 7
    said = " ".join(done.stderr.split())
    assert "there is no spec models/tiny.yaml to generate download/charts/tiny from" in said
    assert "change into the folder of the chart's project, or name the model spec with --spec" in said


@pytest.mark.parametrize("has_file", [True, False])
@pytest.mark.parametrize("spec", ["tiny.yaml", "specs/tiny.yaml"])
def test_verify_finds_a_spec_outside_of_models(project: Path, spec: str, has_file: bool) -> None:
    if has_file:
        (project / "trainchart.yaml").write_text("apiVersion: trainchart/v1\nkind: Project\n")
    (project / "specs").mkdir()
    (project / "models" / "tiny.yaml").rename(project / spec)
    if not has_file:  # paths in a spec start from its own folder then
        shutil.copytree(project / "code", project / "specs" / "code")
    done = trainchart(project, "generate", spec)
    assert done.returncode == 0, done.stderr
    done = trainchart(project, "verify", "charts/tiny")
    assert done.returncode == 0, done.stderr


def test_verify_finds_a_spec_in_another_folder_of_models(project: Path) -> None:
    (project / "trainchart.yaml").write_text("apiVersion: trainchart/v1\nkind: Project\nmodels: team/specs\n")
    (project / "team").mkdir()
    (project / "models").rename(project / "team" / "specs")
    assert trainchart(project, "generate").returncode == 0
    done = trainchart(project, "verify", "charts/tiny")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("gone", ["", "README.md"])
def test_verify_of_an_outdated_chart_says_generate(project: Path, gone: str) -> None:
    assert trainchart(project, "generate").returncode == 0
    if gone:
        (project / "charts/tiny" / gone).unlink()
    else:
        (project / "models" / "tiny.yaml").write_text(SPEC.replace("A tiny", "A small"))
    done = trainchart(project, "verify", "charts/tiny")
    assert done.returncode == 6
    assert done.stderr.rstrip().endswith("hint: bring the chart up to date: trainchart generate tiny")


def test_generate_keeps_waivers_and_restores_missing_files(project: Path) -> None:
    trainchart(project, "generate")
    chart = project / "charts" / "tiny"
    (chart / "README.md").unlink()
    (chart / WAIVER_FILE).write_text("[]\n")
    assert trainchart(project, "generate").returncode == 0
    assert (chart / "README.md").is_file()
    assert (chart / WAIVER_FILE).read_text() == "[]\n"


@pytest.mark.parametrize("link", ["charts", "charts/tiny"])
def test_a_link_takes_no_chart_out_of_the_project(project: Path, link: str) -> None:
    outside = project.parent / f"{project.name}-outside"
    outside.mkdir()
    (project / link).parent.mkdir(exist_ok=True)
    (project / link).symlink_to(outside)
    done = trainchart(project, "generate", "tiny")
    assert (done.returncode, list(outside.iterdir())) == (7, [])
    assert f"charts/tiny leads to {outside}" in done.stderr
    # Who names the folder outside means it.
    assert trainchart(project, "generate", "tiny", "--output", str(outside)).returncode == 0


@pytest.mark.parametrize("name", ["models/other.yaml", "other.yaml"])
def test_a_named_pipe_is_no_spec(project: Path, name: str) -> None:
    os.mkfifo(project / name)
    done = trainchart(project, "generate", name)
    assert done.returncode == 7
    assert f"{name} is neither a file nor a folder" in done.stderr
    assert trainchart(project, "generate", "tiny").returncode == 0
