"""What can be run, from where: charts edited by hand, bare archives, places that cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from trainchart.local.io.code_index import remember_code

_HERE = Path(__file__).parent
_CHART = _HERE / "charts" / "trainer"
_PROGRAMS = _HERE / "programs"
_REPOSITORY = "registry.example.com/ml/trainer"


def run(folder: Path, *arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run trainchart with a data home of its own; `before` is a shell command that sets limits."""
    command = [sys.executable, "-m", "trainchart", "run", *arguments]
    shell = ["bash", "-c", f'{before}; exec "$@"', "bash"] if before else []
    environment = {**os.environ, "XDG_DATA_HOME": str(folder / "data")}
    return subprocess.run([*shell, *command], cwd=folder, env=environment, text=True, capture_output=True, timeout=60)


def environment_of(folder: Path, release: str) -> dict[str, str]:
    claim = folder / ".trainchart/runs" / release / f"claims/{release}-trainer-checkpoints"
    environment: dict[str, str] = json.loads((claim / "environment.json").read_text())
    return environment


def test_what_a_template_adds_by_hand_reaches_the_process(tmp_path: Path) -> None:
    chart = Path(shutil.copytree(_CHART, tmp_path / "chart"))
    template = chart / "templates/statefulset.yaml"
    text = template.read_text()
    text = text.replace("          env:\n", "          env:\n            - {name: ADDED, value: by-hand}\n")
    text = text.replace("{{ . | quote }}{{ end }}]", '{{ . | quote }}{{ end }}, "--out=/checkpoints/out"]')
    template.write_text(text)
    done = run(tmp_path, str(chart), "--code", str(_PROGRAMS))
    assert done.returncode == 0, done.stderr
    environment = environment_of(tmp_path, "trainer-1")
    assert environment["ADDED"] == "by-hand"
    claim = tmp_path / ".trainchart/runs/trainer-1/claims/trainer-1-trainer-checkpoints"
    assert environment["ARGV"] == ["trainer.py", "finish", f"--out={claim}/out"]


def test_a_bare_archive_runs_where_its_code_is_known(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "trainer-0.1.0.tgz", "w:gz") as archive:
        archive.add(_CHART, "trainer")
    remember_code(_REPOSITORY, _PROGRAMS, tmp_path / "data/trainchart/code.json")
    done = run(tmp_path, "trainer-0.1.0.tgz")
    assert done.returncode == 0, done.stderr
    assert "helm install trainer-1 trainer-0.1.0.tgz" in done.stdout
    assert environment_of(tmp_path, "trainer-1")["TASK_TYPE"] == "chief"


MODEL = """\
apiVersion: trainchart/v1
kind: Model
name: first
description: Digits.
image: {repository: registry.example.com/first, tag: "1"}
code: {path: training, command: [python, train.py]}
strategy: single
"""


def make_project(folder: Path, spec: str = MODEL) -> Path:
    """Make a project with the model `first` and its chart; return the folder of its code."""
    for path, text in (("models/first.yaml", spec), ("training/train.py", "print('hello')\n")):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    environment = {**os.environ, "XDG_DATA_HOME": str(folder.parent / "data")}
    command = [sys.executable, "-m", "trainchart", "generate"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=60)
    return folder / "training"


def code_of(folder: Path, chart: Path) -> tuple[str, str]:
    """Return the code folder of a run of `chart`, started in `folder`, and the notes on it."""
    done = run(folder, str(chart), "--dry-run", "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["pods"][0]["workingDirectory"], " ".join(done.stderr.split())


def test_an_archive_in_a_project_runs_the_code_of_that_project(tmp_path: Path) -> None:
    mine = make_project(tmp_path / "mine")
    (tmp_path / "mine/dist").mkdir()
    with tarfile.open(tmp_path / "mine/dist/first-0.1.0.tgz", "w:gz") as archive:
        archive.add(tmp_path / "mine/charts/first", "first")
    archive_file = tmp_path / "mine/dist/first-0.1.0.tgz"
    code, notes = code_of(tmp_path, archive_file)
    assert code == str(mine)
    assert f"note: trains the code in {mine}, as {tmp_path}/mine/models/first.yaml says hint:" in notes
    spec = tmp_path / "mine/models/first.yaml"
    spec.write_text(spec.read_text().replace("Digits.", "Letters."))
    subprocess.run([sys.executable, "-m", "trainchart", "generate"], cwd=tmp_path / "mine", check=True, timeout=60)
    code, notes = code_of(tmp_path, archive_file)
    assert code == str(mine)
    assert "its project does not contain this chart" in notes


def test_a_chart_of_another_project_names_the_code_it_runs(tmp_path: Path) -> None:
    make_project(tmp_path / "mine", MODEL.replace("Digits.", "Letters."))
    theirs = make_project(tmp_path / "theirs")
    assert code_of(tmp_path, tmp_path / "theirs/charts/first") == (str(theirs), "")
    chart = Path(shutil.copytree(tmp_path / "mine/charts/first", tmp_path / "theirs/tried/first"))
    code, notes = code_of(tmp_path, chart)
    assert code == str(theirs)
    assert "its project does not contain this chart" in notes


def test_a_remembered_code_folder_is_named_with_its_chart(tmp_path: Path) -> None:
    mine = make_project(tmp_path / "mine", MODEL.replace("Digits.", "Letters."))
    theirs = make_project(tmp_path / "theirs")
    (tmp_path / "out").mkdir()
    chart = Path(shutil.copytree(tmp_path / "mine/charts/first", tmp_path / "out/first"))
    code, notes = code_of(tmp_path, chart)
    assert code == str(mine)
    assert f"trains the code in {mine}, remembered for the image registry.example.com/first" in notes
    assert f"also remembered: {theirs}" in notes
    assert "does not contain" not in notes
    values = chart / "values.yaml"
    values.write_text(values.read_text() + "\n# edited\n")
    code, notes = code_of(tmp_path, chart)
    assert code == str(theirs)
    assert "its project does not contain this chart" in notes


@pytest.mark.parametrize("length", [0, 2500])
def test_a_values_file_that_was_cut_off_is_named(tmp_path: Path, length: int) -> None:
    make_project(tmp_path)
    values = tmp_path / "charts/first/values.yaml"
    values.write_text(values.read_text()[:length].rpartition("\n")[0])
    done = run(tmp_path, "charts/first")
    assert done.returncode == 5, done.stderr
    said = " ".join(done.stderr.split())
    assert "more are missing hint: the chart's values.yaml seems to be damaged" in said
    assert "charts/first: values.yaml has changed since it was generated" in said
    assert len(done.stderr.splitlines()) == 5


def test_a_write_into_the_code_folder_is_named(tmp_path: Path) -> None:
    chart = Path(shutil.copytree(_CHART, tmp_path / "chart"))
    template = chart / "templates/statefulset.yaml"
    read_only = "          securityContext: {readOnlyRootFilesystem: true}\n          env:\n"
    template.write_text(template.read_text().replace("          env:\n", read_only))
    (tmp_path / "code").mkdir()
    (tmp_path / "code/trainer.py").write_text("open('beside', 'w')")
    done = run(tmp_path, str(chart), "--code", "code")
    assert done.returncode == 0, done.stderr
    assert f"warning: the program wrote {tmp_path}/code/beside: in a pod" in " ".join(done.stderr.split())


def test_code_that_is_not_there_is_explained(tmp_path: Path) -> None:
    done = run(tmp_path, str(_CHART))
    assert done.returncode == 10
    assert "program-missing" in done.stderr
    assert f"The code was expected in {tmp_path}: set its folder with --code" in done.stderr


def test_why_gives_the_advice_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("import no_such_module\n")
    single = ("--set", "roles.worker.replicas=0,roles.ps.replicas=0")
    done = run(tmp_path, str(_CHART), "--release", "x1", *single)
    advice = "put it into the code folder; or choose another Python with --python."
    assert advice in done.stderr
    why = subprocess.run(
        [sys.executable, "-m", "trainchart", "why", "x1"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    ).stdout
    assert advice in why
    assert "image" not in why.partition("What to do next")[2].partition("\n")[0]


def test_quiet_prints_the_last_lines_of_a_failed_program(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("steps = 3\nprint('never)\n")
    single = ("--set", "roles.worker.replicas=0,roles.ps.replicas=0")
    done = run(tmp_path, str(_CHART), "--code", str(tmp_path), "-q", *single)
    assert (done.returncode, done.stdout) == (10, "")
    assert done.stderr.startswith("error: ")
    assert 'trainer.py", line 2' in done.stderr
    assert "print('never)" in done.stderr


def test_a_python_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, str(_CHART), "--python", "python9.9")
    assert done.returncode == 7
    assert "python9.9" in done.stderr
    assert not list((tmp_path / ".trainchart/runs").glob("trainer-*"))


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_full_disk_is_one_clear_error(tmp_path: Path, blocks: int) -> None:
    # A limit on the size of files stands for a full disk: it holds for root as well.
    done = run(tmp_path, str(_CHART), "--code", str(_PROGRAMS), before=f"trap '' XFSZ; ulimit -f {blocks}")
    assert done.returncode == 7
    assert done.stderr.startswith("error: cannot ")
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / ".trainchart/runs").glob("trainer-*"))


def test_a_folder_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    done = run(tmp_path, str(_CHART), "--code", str(_PROGRAMS), "--runs-dir", "/proc/runs")
    assert done.returncode == 7
    assert "cannot make /proc/runs" in done.stderr
    assert "--runs-dir" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_report_of_a_failure_holds_a_secret(tmp_path: Path) -> None:
    chart = Path(shutil.copytree(_CHART, tmp_path / "chart"))
    template = chart / "templates/statefulset.yaml"
    entry = "{name: API_KEY, valueFrom: {secretKeyRef: {name: hub, key: key}}}"
    template.write_text(template.read_text().replace("          env:\n", f"          env:\n            - {entry}\n"))
    (tmp_path / "trainer.py").write_text("import os, sys\nsys.exit('bad key ' + os.environ['API_KEY'])\n")
    single = ("--set", "roles.worker.replicas=0,roles.ps.replicas=0")
    done = run(tmp_path, str(chart), "--quiet", *single, before="export API_KEY=topsecret123")
    assert done.returncode == 10, done.stderr
    assert "bad key ***" in done.stderr
    assert "topsecret123" not in done.stdout + done.stderr
    folder = tmp_path / ".trainchart/runs/trainer-1"
    for name in ("run.json", "state.json", "result.json"):
        assert "topsecret123" not in (folder / name).read_text()


def test_no_record_of_a_command_holds_a_secret(tmp_path: Path) -> None:
    (tmp_path / "trainer.py").write_text("")
    single = ("--set", "roles.worker.replicas=0,roles.ps.replicas=0", "--set", "env.HUB_TOKEN=topsecret123")
    run(tmp_path, str(_CHART), "--quiet", *single)
    folder = tmp_path / ".trainchart/runs/trainer-1"
    assert "env.HUB_TOKEN=***" in json.loads((folder / "run.json").read_text())["command"]
    assert "topsecret123" not in (folder / "state.json").read_text()
    for options in ((), ("--format", "json")):
        status = [sys.executable, "-m", "trainchart", "status", "trainer-1", *options]
        said = subprocess.run(status, cwd=tmp_path, capture_output=True, text=True, timeout=60).stdout
        assert "env.HUB_TOKEN=***" in said
        assert "topsecret123" not in said
