"""`trainchart run`: exit codes, what goes to stdout and what to stderr. Starts no training."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

_CHART = Path(__file__).parents[1] / "local" / "charts" / "trainer"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trainchart", "run", *arguments],
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=60,
    )


def test_a_dry_run_shows_the_plan_and_leaves_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, str(_CHART), "--dry-run", "--format", "json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["release"] == "trainer-1"
    assert [pod["pod"] for pod in plan["pods"]] == ["chief-0", "worker-0", "worker-1", "ps-0"]
    assert plan["pods"][0]["argv"][-2:] == ["trainer.py", "finish"]
    assert len(plan["addresses"]) == 8
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_as_text_names_commands_and_addresses(tmp_path: Path) -> None:
    done = run(tmp_path, str(_CHART), "--dry-run", "--set", "roles.worker.replicas=1", "--release", "exp-7")
    assert done.returncode == 0, done.stderr
    assert "worker-0  (pod exp-7-trainer-worker-0" in done.stdout
    assert "worker-1" not in done.stdout
    assert "exp-7-trainer-ps-0.exp-7-trainer:2222" in done.stdout
    assert f"--  {sys.executable}".replace("  ", " ") in done.stdout


def test_a_run_tells_what_helm_reads_otherwise_in_a_values_file(tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text("roles:\n  worker: {replicas: 0x1}\n")
    done = run(tmp_path, str(_CHART), "--dry-run", "-f", "v.yaml")
    assert "note: v.yaml:2: roles.worker.replicas: 0x1 is read as the number 1\n" in done.stderr
    assert 'hint: quote it: "0x1", or write 1\n' in done.stderr


MODEL = """\
apiVersion: trainchart/v1
kind: Model
name: digits
description: Digits.
image: {repository: r/digits, tag: "1"}
code: {path: ., command: [python, train.py]}
strategy: single
roles: {worker: {cpu: 1}, ps: {cpu: 1}}
"""


def test_a_model_can_be_tried_with_another_strategy(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    spec = tmp_path / "models" / "digits.yaml"
    spec.write_text(MODEL)
    (tmp_path / "train.py").touch()
    asked = ("--strategy", "multi-worker-mirrored", "--set", "roles.worker.replicas=1", "--dry-run", "--format", "json")
    done = run(tmp_path, "digits", *asked)
    assert done.returncode == 0, done.stderr
    assert [pod["pod"] for pod in json.loads(done.stdout)["pods"]] == ["worker-0"]
    assert "note: models/digits.yaml:8:27: roles.ps is not used: multi-worker-mirrored has no ps" in done.stderr
    assert "note: multi-worker-mirrored shares the work among workers, but there is one" in done.stderr
    assert spec.read_text() == MODEL
    wrong = run(tmp_path, "digits", "--strategy", "multi-worker")
    assert (wrong.returncode, "did you mean multi-worker-mirrored?" in wrong.stderr) == (2, True)


def test_a_folder_of_a_models_name_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    done = run(tmp_path, "net")
    assert done.returncode == 7
    assert "there is no model net, and the folder net is not a chart" in done.stderr
    assert "trainchart init net --from-script net/SCRIPT.py" in done.stderr
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "digits.yaml").write_text(MODEL)
    assert "models here: digits; make one: " in run(tmp_path, "net").stderr


def test_a_script_that_no_strategy_distributes_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "digits.yaml").write_text(MODEL.replace("roles: {worker: {cpu: 1}, ps: {cpu: 1}}\n", ""))
    (tmp_path / "train.py").write_text("import tensorflow as tf\ntf.Module()\n")
    done = run(tmp_path, "digits", "--strategy", "multi-worker-mirrored", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "models/digits.yaml:6:17: train.py does not use multi-worker-mirrored: each pod trains" in done.stderr
    assert "shows nothing" not in run(tmp_path, "digits", "--dry-run").stderr


@pytest.mark.parametrize(
    ("env", "requirements", "where"),
    [
        ('env: {TF_USE_LEGACY_KERAS: "1"}\n', None, "8:7"),
        ('env: {TF_USE_LEGACY_KERAS: "true"}\n', "pandas==2.3.3\n", "8:7"),
        ('env: {TF_USE_LEGACY_KERAS: "1"}\n', "pandas==2.3.3\nTF_Keras==2.21.0\n", ""),
        ('env: {TF_USE_LEGACY_KERAS: "0"}\n', None, ""),
        ('roles: {worker: {env: {TF_USE_LEGACY_KERAS: "1"}}}\n', None, "8:24"),
    ],
)
def test_keras_2_without_its_package_is_noted(tmp_path: Path, env: str, requirements: str | None, where: str) -> None:
    (tmp_path / "models").mkdir()
    spec = MODEL.replace("roles: {worker: {cpu: 1}, ps: {cpu: 1}}\n", env)
    (tmp_path / "models" / "digits.yaml").write_text(spec)
    (tmp_path / "train.py").touch()
    if requirements is not None:
        (tmp_path / "requirements.txt").write_text(requirements)
    done = run(tmp_path, "digits", "--dry-run")
    assert done.returncode == 0, done.stderr
    note = f"note: models/digits.yaml:{where}: TF_USE_LEGACY_KERAS needs tf_keras, which images do not have"
    assert (note in done.stderr, "needs tf_keras" in done.stderr) == (bool(where), bool(where))


LIBRARY_PROGRAM = "from trainchart_training import Training, train\ntrain(Training())\n"


@pytest.mark.parametrize(
    ("program", "more", "is_noted"),
    [
        (LIBRARY_PROGRAM, "", True),
        (LIBRARY_PROGRAM, "volumes: {data: {size: 5Gi, mountPath: /data}}\n", True),
        (LIBRARY_PROGRAM, "volumes: {checkpoints: {size: 5Gi, mountPath: /checkpoints}}\n", False),
        ("print(1)\n", "", False),
    ],
)
def test_library_program_without_checkpoints_volume_is_noted(
    tmp_path: Path, program: str, more: str, is_noted: bool
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "digits.yaml").write_text(MODEL.replace("roles: {worker: {cpu: 1}, ps: {cpu: 1}}\n", more))
    (tmp_path / "train.py").write_text(program)
    done = run(tmp_path, "digits", "--dry-run")
    assert done.returncode == 0, done.stderr
    note = "note: models/digits.yaml:6:17: train.py saves to the volume checkpoints, which the spec does not have"
    assert (note in done.stderr) == is_noted


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["nothing"], 7, "there is no model, chart or archive 'nothing'"),
        (["."], 7, "not a chart"),
        (["gone.tgz"], 7, "gone.tgz"),
        ([str(_CHART), "--release", "Exp_7"], 2, "'Exp_7' is not a release name"),
        ([str(_CHART), "--values", "gone.yaml"], 7, "gone.yaml"),
        ([str(_CHART), "--strategy", "single"], 4, "is fixed"),
        ([str(_CHART), "--code", "gone"], 7, "there is no folder gone"),
        ([str(_CHART), "--kill", "worker-9@1s"], 7, "there is no pod 'worker-9'"),
        ([str(_CHART), "--kill", "worker-1"], 2, "not POD@TIME"),
        ([str(_CHART), "--set", "layers=4,4"], 2, "write \\,4 for one in a string, or --set-json for a list"),
        ([str(_CHART), "--set", "strategy=gossip"], 4, "unknown strategy 'gossip'"),
        ([str(_CHART), "--set-json", "roles=null"], 4, "no training pods"),
        ([str(_CHART), "--resume", "--fresh"], 2, "cannot be used together"),
        ([str(_CHART), "--resume"], 2, "--resume needs the --release"),
        ([str(_CHART), "--resume", "--release", "exp-7"], 7, "there is no release exp-7 to resume"),
        ([str(_CHART), "--claim", "data"], 2, "expected CLAIM=FOLDER"),
    ],
)
def test_bad_input_is_one_clear_error(tmp_path: Path, arguments: list[str], code: int, expected: str) -> None:
    done = run(tmp_path, *arguments)
    # Usage errors are drawn in a frame, which may break a line anywhere.
    said = " ".join(done.stderr.replace("│", " ").split())
    assert expected in said
    assert done.returncode == code
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob(".trainchart/runs/trainer-*"))


@pytest.fixture
def kept_run(tmp_path: Path) -> Path:
    """The record of a run that was started with values, code and a claim of its own."""
    (tmp_path / "own code").mkdir()
    options = {"code": str(tmp_path / "own code"), "namespace": "team-a", "claims": {"checkpoints": str(tmp_path)}}
    values = {"runId": "one", "roles": {"worker": {"replicas": 1}}, "hyperparameters": None}
    record = {"release": "exp-7", "chart": "trainer-0.1.0", "pods": [], "options": options, "values": values}
    folder = tmp_path / ".trainchart/runs/exp-7"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(record))
    return tmp_path


RESUME = (str(_CHART), "--release", "exp-7", "--resume", "--dry-run", "--format", "json")


def resume(folder: Path, *arguments: str) -> tuple[list[str], str]:
    """Return the pods and the run's id that a resumed run would have."""
    done = run(folder, *RESUME, *arguments)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    chief = plan["pods"][0]
    assert chief["workingDirectory"] == f"{folder}/own code"
    assert plan["namespace"] == "team-a"
    assert plan["claims"] == {"exp-7-trainer-checkpoints": str(folder)}
    return [pod["pod"] for pod in plan["pods"]], chief["environment"]["TRAINCHART_RUN_ID"]


@pytest.mark.parametrize(
    ("arguments", "code", "refusal"),
    [
        # Something is missing, or in the way.
        (("--release", "exp-7"), 7, "exp-7 exists already"),
        (("--release", "exp-8", "--resume"), 7, "there is no release exp-8"),
        (("--only", "wroker"), 7, "no such role or pod"),
        (("--kill", "worker-9@3s"), 7, "there is no pod 'worker-9'"),
        (("--claim", "nope=."), 7, "there is no claim 'nope'"),
        # It cannot be meant so.
        (("--kill", "worker-1"), 2, "is not POD@TIME"),
        (("--kill", "worker-1", "--kill", "worker-9@3s"), 2, "there is no pod 'worker-9'"),
        (("--release", "Exp_1"), 2, "is not a release name"),
        (("--set", "runId"), 2, "'runId': it gives no value"),
    ],
)
def test_a_dry_run_is_refused_where_the_run_would_be(
    kept_run: Path, arguments: tuple[str, ...], code: int, refusal: str
) -> None:
    done = run(kept_run, str(_CHART), *arguments, "--dry-run")
    assert (done.returncode, done.stdout) == (code, "")
    assert refusal in done.stderr


def test_a_resumed_run_keeps_its_values(kept_run: Path) -> None:
    assert resume(kept_run) == (["chief-0", "worker-0", "ps-0"], "one")


def test_a_resumed_run_lays_new_values_over_its_own(kept_run: Path) -> None:
    (kept_run / "more.yaml").write_text("roles: {worker: {replicas: 2}}")
    pods = ["chief-0", "worker-0", "worker-1", "ps-0"]
    assert resume(kept_run, "-f", "more.yaml") == (pods, "one")
    assert resume(kept_run, "--set", "runId=two") == (["chief-0", "worker-0", "ps-0"], "two")


def test_a_resumed_run_forgets_its_values_when_told_to(kept_run: Path) -> None:
    assert resume(kept_run, "--reset-values") == (["chief-0", "worker-0", "worker-1", "ps-0"], "run-1")


def test_resumed_run_without_any_file_says_it_starts_over(kept_run: Path) -> None:
    warning = "note: the previous start left no file in a volume, so this one trains from step 0"
    (kept_run / "ckpt-1.index").touch()
    assert warning not in run(kept_run, *RESUME).stderr
    (kept_run / "empty").mkdir()
    assert warning in run(kept_run, *RESUME, "--claim", "checkpoints=empty").stderr


def test_the_helm_program_of_a_record_must_be_named_again(kept_run: Path) -> None:
    (kept_run / "helm").write_text("#!/bin/sh\necho ran > ran\n")
    (kept_run / "helm").chmod(0o755)
    file = kept_run / ".trainchart/runs/exp-7/run.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "options": {**record["options"], "engine": "./helm"}}))
    done = run(kept_run, *RESUME)
    assert done.returncode == 7
    assert "--engine ./helm, or auto" in done.stderr
    assert not (kept_run / "ran").exists()
    assert resume(kept_run, "--engine", "auto") == (["chief-0", "worker-0", "ps-0"], "one")


def test_a_run_is_not_resumed_as_another_model(kept_run: Path) -> None:
    file = kept_run / ".trainchart/runs/exp-7/run.json"
    before = json.dumps({**json.loads(file.read_text()), "chartName": "digits", "target": "digits"})
    file.write_text(before)
    # Not even with values that the other model does not know: they are not what is wrong.
    for arguments in (RESUME[:-3], (*RESUME[:-3], "--set", "hyperparameters.nothing=1"), RESUME):
        done = run(kept_run, *arguments)
        assert done.returncode == 4
        assert "exp-7 is a run of digits, not of trainer" in done.stderr
        assert "trainchart run digits --resume --release exp-7" in done.stderr
    assert file.read_text() == before
    assert [path.name for path in file.parent.iterdir()] == ["run.json"]


@pytest.mark.parametrize("flags", [(), ("--fresh",), ("--fresh", "--dry-run")])
def test_a_run_is_not_replaced_by_another_models(kept_run: Path, flags: tuple[str, ...]) -> None:
    file = kept_run / ".trainchart/runs/exp-7/run.json"
    before = json.dumps({**json.loads(file.read_text()), "chartName": "digits", "target": "digits"})
    file.write_text(before)
    done = run(kept_run, str(_CHART), "--release", "exp-7", *flags)
    assert done.returncode == 4
    assert "exp-7 is a run of digits, not of trainer" in done.stderr
    assert "trainchart run digits --resume --release exp-7; or choose another name with --release" in done.stderr
    assert file.read_text() == before


def test_errors_are_json_where_asked(tmp_path: Path) -> None:
    done = run(tmp_path, str(_CHART), "--kill", "x", "--format", "json")
    assert json.loads(done.stderr)["exitCode"] == 2
