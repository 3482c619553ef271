"""What the end of a local run says: only what is there, and commands that do what they say."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from trainchart.local.io.outputs import find_outputs
from trainchart.local.missing_modules import TENSORFLOW_PACKAGE
from trainchart.local.plan import LocalPlan
from trainchart.local.pod_plan import PodPlan
from trainchart.local.report import (
    describe_result,
    explain_hint,
    hint_here,
    introduce_plan,
    summarize_plan,
)
from trainchart.local.result import Failure, Outputs, PodResult, RunResult
from trainchart.local.summary import resume_command, summarize_result, warn_of_loss
from trainchart.local.verdict import Verdict

STARTED = 4_000_000_000.0
"""After every clock: when a file came to its place cannot be set."""
WRITTEN = Outputs(is_changed=True)


def make_plan(folder: Path, *, checkpoints: str = "", claims: tuple[str, ...] = ("checkpoints",)) -> LocalPlan:
    pod = PodPlan(
        name="exp-7-mnist-chief-0",
        label="chief-0",
        role="chief",
        argv=("python",),
        environment={},
        shown_argv=(),
        secrets=frozenset(),
        working_directory="/code",
        pod_folder=str(folder / "pods/chief-0"),
        folders=(),
        files=(),
        paths={},
        log_file="chief-0.log",
        termination_file="",
        state_folder="",
        stop_grace_seconds=1,
        max_restarts=0,
    )
    folders = {name: str(folder / "claims" / name) for name in claims}
    return LocalPlan(
        release="exp-7",
        namespace="default",
        chart="mnist-0.1.0",
        release_folder=str(folder),
        pods=(pod,),
        addresses={},
        deciding=("chief-0",),
        evaluator_grace_seconds=1,
        claims=folders,
        outputs=tuple(folders.values()),
        checkpoints=checkpoints or str(folder / "claims/checkpoints"),
        tensorboard_logs=str(folder / "claims/checkpoints/logs"),
        hyperparameters={},
        warnings=(),
    )


def make_result(step: int | None = None, speed: float | None = None, verdict: Verdict = Verdict.SUCCEEDED) -> RunResult:
    pod = PodResult("chief-0", "exp-7-mnist-chief-0", "chief", "finished", 0, 1, 0, step, speed, {}, "chief-0.log")
    return RunResult(verdict, "exp-7", "/runs/exp-7", 3.0, (pod,), ("chief-0",), None, None)


def summarize(result: RunResult, plan: LocalPlan, folder: str = ".trainchart/runs/exp-7") -> str:
    record = {"target": "my model", "release": "exp-7", "hyperparameters": {"maxSteps": 300, "seed": 1}}
    return summarize_result(plan, result, record, folder, ("helm install exp-7 charts/mnist -f values.yaml",))


def write(path: Path, modified: float = STARTED + 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.utime(path, (modified, modified))


def test_a_summary_names_only_what_is_there(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, claims=("checkpoints", "exports"))
    (tmp_path / "claims/checkpoints/logs").mkdir(parents=True)
    (tmp_path / "claims/exports").mkdir()
    said = summarize(replace(make_result(step=5), outputs=find_outputs(plan, STARTED)), plan)
    assert "checkpoints" not in said
    assert "TensorBoard" not in said
    assert "tensorboard" not in said
    assert "claim " not in said
    assert "serve" not in said


def test_events_are_found_wherever_they_are(tmp_path: Path) -> None:
    plan = make_plan(tmp_path, claims=("checkpoints", "runs"))
    write(tmp_path / "claims/checkpoints/ckpt-1.index")
    for name in ("train", "test"):
        write(tmp_path / f"claims/runs/tb/2026/{name}/events.out.tfevents.1.host")
    write(tmp_path / "pods/chief-0/volumes/scratch/events.out.tfevents.2.host")
    write(tmp_path / "claims/runs/out/saved_model.pb")
    outputs = find_outputs(plan, STARTED)
    assert outputs.events == (str(tmp_path / "claims/runs/tb/2026"), str(tmp_path / "pods/chief-0/volumes/scratch"))
    assert outputs.saved_models == (str(tmp_path / "claims/runs/out"),)
    said = summarize(replace(make_result(step=5), outputs=outputs), plan)
    assert "  trainchart serve exp-7\n" in said
    assert f"  TensorBoard  {tmp_path}/claims/runs/tb/2026\n" in said
    assert "  trainchart tensorboard exp-7\n" in said
    assert f"  checkpoints  {tmp_path}/claims/checkpoints\n" in said


def test_what_was_in_a_claim_before_is_no_result_of_the_run(tmp_path: Path) -> None:
    before = ("a/saved_model.pb", "tb/events.out.tfevents.1.host", "ckpt-1.index")
    mine = tmp_path / "mine"
    for name in before:
        write(mine / name, STARTED - 60)
    plan = replace(make_plan(tmp_path / "run"), outputs=(str(mine),), claims={"data": str(mine)}, checkpoints=str(mine))
    assert find_outputs(plan, STARTED) == Outputs(claims=(("data", str(mine)),), holds_files=True)
    for name in before:
        write(mine / "new" / name)
    assert find_outputs(plan, STARTED) == Outputs(
        checkpoints=str(mine),
        saved_models=(str(mine / "new/a"),),
        events=(str(mine / "new/tb"),),
        claims=(("data", str(mine)),),
        holds_files=True,
        written=(str(mine / "new/a"), str(mine / "new/ckpt-1.index")),
        is_changed=True,
    )


def test_long_name_of_a_claim_stands_apart_from_its_folder(tmp_path: Path) -> None:
    outputs = replace(WRITTEN, claims=(("exp-7-mnist-data", "/data/mnist"),))
    assert "  claim exp-7-mnist-data  /data/mnist\n" in summarize(
        replace(make_result(), outputs=outputs), make_plan(tmp_path)
    )


def test_events_are_named_by_the_folder_the_chart_gives(tmp_path: Path) -> None:
    write(tmp_path / "claims/checkpoints/logs/worker/events.out.tfevents.1.host")
    assert find_outputs(make_plan(tmp_path), STARTED).events == (str(tmp_path / "claims/checkpoints/logs"),)


def test_a_folder_with_events_alone_holds_no_checkpoints(tmp_path: Path) -> None:
    write(tmp_path / "claims/checkpoints/logs/events.out.tfevents.1.host")
    assert find_outputs(make_plan(tmp_path), STARTED).checkpoints == ""
    assert (
        find_outputs(make_plan(tmp_path, checkpoints="gs://bucket/exp-7"), STARTED).checkpoints == "gs://bucket/exp-7"
    )


def test_only_files_of_this_start_count_as_its_work(tmp_path: Path) -> None:
    write(tmp_path / "claims/checkpoints/ckpt-1.index", STARTED - 60)
    assert not find_outputs(make_plan(tmp_path), STARTED).is_changed
    write(tmp_path / "claims/checkpoints/ckpt-2.index")
    assert find_outputs(make_plan(tmp_path), STARTED).is_changed


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (make_result(), "Its program reported no step, and wrote no checkpoint"),
        (
            replace(make_result(), before={"verdict": "Succeeded", "step": 300}),
            "No step was trained: the training was at step 300 already",
        ),
        (replace(make_result(step=300, speed=0.0), before={"step": 290}, outputs=WRITTEN), "at step 300"),
        (replace(make_result(step=300), before={"step": 300}), "at step 300"),
        (replace(make_result(), before={"verdict": "Succeeded"}), "the training had already finished."),
        (replace(make_result(), before={"verdict": "Failed"}), "Its program reported no step"),
    ],
)
def test_a_success_without_any_work_is_not_called_one(tmp_path: Path, result: RunResult, words: str) -> None:
    plan = make_plan(tmp_path)
    said = summarize(result, plan)
    what = "kept" if (result.before or {"verdict": "Failed"}).get("verdict") == "Failed" else "left to do"
    assert said.startswith(f"Nothing was {what}: exp-7 ended without an error")
    assert describe_result(plan, result)["step"] == (result.step or (result.before or {}).get("step"))
    assert words in said
    assert "examples/s" not in said
    assert "helm install" not in said
    assert words in describe_result(plan, result)["nothingDone"]


def test_files_of_earlier_starts_are_not_denied(tmp_path: Path) -> None:
    write(tmp_path / "claims/checkpoints/ckpt-1.index", STARTED - 60)
    plan = make_plan(tmp_path)
    outputs = find_outputs(plan, STARTED)
    stopped_before = replace(make_result(), before={"verdict": "Stopped"}, outputs=outputs)
    said = summarize(stopped_before, plan)
    assert said.startswith("Nothing was added: exp-7 ended without an error")
    assert "The files of earlier starts are still there." in said
    assert "wrote no checkpoint" not in said
    assert "Write files below" not in said
    assert summarize(replace(make_result(), outputs=outputs), plan).startswith("Nothing was kept: ")


@pytest.mark.parametrize("before", [{}, {"verdict": "Stopped", "step": 5200}])
def test_what_a_start_without_a_step_wrote_is_named(tmp_path: Path, before: dict[str, object]) -> None:
    plan = make_plan(tmp_path, claims=("checkpoints", "exports"))
    claims = tmp_path / "claims"
    write(claims / "checkpoints/ckpt-5000.index", STARTED - 60)
    for name in ("saved_model.pb", "variables/variables.index"):
        write(claims / "exports/model" / name)
    for name in ("evaluations.json", "logs/events.out.tfevents.1.host", ".trainchart/owners/exp-7.owner"):
        write(claims / "checkpoints" / name)
    result = replace(make_result(step=5000, speed=0.0), before=before, outputs=find_outputs(plan, STARTED))
    said = summarize(result, plan)
    assert said.startswith("Nothing was left to train: exp-7 ended without an error")
    assert "No step was trained: the training was at step 5000 already." in said
    assert f" This start wrote {claims}/exports/model, {claims}/checkpoints/evaluations.json.\n" in said
    assert "hyperparameters.maxSteps=10000" in said


def test_what_the_launcher_keeps_is_no_work_of_a_start(tmp_path: Path) -> None:
    write(tmp_path / "claims/checkpoints/.trainchart/owners/exp-7.owner")
    outputs = find_outputs(make_plan(tmp_path), STARTED)
    assert not (outputs.is_changed or outputs.holds_files or outputs.written or outputs.checkpoints)


def test_copies_with_old_times_count_as_work_of_a_start(tmp_path: Path) -> None:
    write(tmp_path / "claims/checkpoints/exported/saved_model.pb", 1_000_000_000.0)
    outputs = find_outputs(make_plan(tmp_path), 1_500_000_000.0)
    assert outputs.is_changed
    assert outputs.written == (str(tmp_path / "claims/checkpoints/exported"),)


def test_a_start_that_kept_nothing_is_not_complete(tmp_path: Path) -> None:
    before = {"verdict": "Succeeded", "nothingDone": "Its program reported no step.", "step": None}
    assert summarize(replace(make_result(), before=before), make_plan(tmp_path)).startswith("Nothing was kept: ")
    before = {"verdict": "Succeeded", "nothingDone": "No step was made.", "step": 300}
    assert summarize(replace(make_result(), before=before), make_plan(tmp_path)).startswith("Nothing was left to do: ")


@pytest.mark.parametrize(
    "result",
    [
        make_result(step=1),
        replace(make_result(), outputs=WRITTEN),
        replace(make_result(step=400), before={"step": 300}),
        # Stopped after its last checkpoint, so the same steps again.
        replace(make_result(step=300), before={"step": 300}, outputs=WRITTEN),
        make_result(verdict=Verdict.STOPPED),
    ],
)
def test_a_run_that_worked_is_not_called_idle(tmp_path: Path, result: RunResult) -> None:
    assert result.nothing_done == ""
    assert summarize(result, make_plan(tmp_path)).startswith(f"{result.verdict}: exp-7 after 3.0 s")


def test_steps_without_a_file_are_warned_of(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    write(tmp_path / "claims/checkpoints/ckpt-1.index")
    kept = replace(make_result(step=300), outputs=find_outputs(plan, STARTED))
    assert warn_of_loss(plan, kept) == ()
    bucket = replace(plan, checkpoints="gs://bucket/exp-7", outputs=())
    assert warn_of_loss(bucket, replace(make_result(step=300), outputs=find_outputs(bucket, STARTED))) == ()
    assert warn_of_loss(plan, replace(make_result(step=300), verdict=Verdict.FAILED)) == ()
    (warning,) = warn_of_loss(plan, make_result(step=300))
    assert warning.startswith("nothing was kept: the program wrote no file into a volume")
    assert "$TRAINCHART_CHECKPOINTS_DIR" in warning
    (warning,) = warn_of_loss(replace(plan, checkpoints=""), make_result(step=300))
    assert "add a volume checkpoints to the model spec" in warning


@pytest.mark.parametrize(
    ("module", "packages"),
    [
        ("keras", "tensorflow-cpu==2.21.0"),
        ("tensorflow", "tensorflow-cpu==2.21.0"),
        ("tf_keras", "tensorflow-cpu==2.21.0 tf_keras"),
        ("pandas", "pandas"),
        ("official", "tf-models-official"),
        ("cv2", "opencv-python-headless"),
    ],
)
def test_missing_module_hint_names_its_package(tmp_path: Path, module: str, packages: str) -> None:
    assert f"`python -m pip install {packages}`" in hint_here(lack(module), make_plan(tmp_path))


def test_missing_keras_hint_names_tf_keras(tmp_path: Path) -> None:
    failure = replace(lack("keras"), cause="keras-missing", error="ImportError: Keras cannot be imported.")
    hint = hint_here(failure, make_plan(tmp_path))
    assert "`python -m pip install tensorflow-cpu==2.21.0 tf_keras`" in hint
    assert "TF_USE_LEGACY_KERAS" in hint


def test_refused_program_hint_is_not_about_its_folder(tmp_path: Path) -> None:
    failure = replace(lack("x"), cause="program-missing", error="cannot start './a': it is a folder", hint="Check it.")
    assert hint_here(failure, make_plan(tmp_path)) == "Check it."
    missing = replace(failure, error="cannot start './a': no such program")
    assert "set its folder with --code" in hint_here(missing, make_plan(tmp_path))


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("object_detection", "Copy object_detection from https://github.com/tensorflow/models, in research/"),
        ("tensorflow_examples", "Copy tensorflow_examples from https://github.com/tensorflow/examples"),
        ("utils", "Install the package that contains utils, which can have another name; if the module is yours"),
        ("json.gone", "The json that is installed does not have it: the program needs another version of it."),
        ("google", "Install the package that contains google, which can have another name"),
    ],
)
def test_module_without_a_known_package_is_not_guessed(tmp_path: Path, module: str, words: str) -> None:
    hint = hint_here(lack(module), make_plan(tmp_path))
    assert hint.startswith(words)
    assert "pip install" not in hint


def lack(module: str) -> Failure:
    return Failure(
        pod="chief-0",
        cause="module-missing",
        sentence="",
        error=f"ModuleNotFoundError: No module named '{module}'",
        hint="",
        exit_code=1,
        at=0.0,
        log_file="",
        last_lines=(),
    )


def test_unset_hyperparameter_is_named_with_its_option(tmp_path: Path) -> None:
    plan = replace(make_plan(tmp_path), hyperparameters={"lr": None, "maxSteps": 3})
    note = "note: lr unset: the program decides, or refuses to start; set values with --set hyperparameters.lr=VALUE"
    assert note in introduce_plan(plan)
    assert note in summarize_plan(plan)
    assert "hyperparameters: lr unset, maxSteps 3" in summarize_plan(plan)
    failure = Failure("chief-0", "program-error", "", "KeyError: 'TRAINCHART_HP_LR'", "Read it.", 1, 0.0, "", ())
    assert "set a value: --set hyperparameters.lr=VALUE\n" in explain_hint(failure, plan)
    assert "the program decides" not in " ".join(introduce_plan(make_plan(tmp_path)))


def test_hint_names_the_package_of_the_readme() -> None:
    assert f"pip install {TENSORFLOW_PACKAGE}\n" in (Path(__file__).parents[3] / "README.md").read_text()


def test_printed_commands_find_the_run_again(tmp_path: Path) -> None:
    plan = make_plan(tmp_path)
    stopped = summarize(make_result(verdict=Verdict.STOPPED), plan, "/data/my runs/exp-7")
    assert "trainchart run 'my model' --resume --release exp-7 --runs-dir '/data/my runs'   # continues" in stopped
    done = summarize(make_result(step=5), plan, "elsewhere/exp-7")
    assert "  trainchart logs exp-7 --runs-dir elsewhere\n" in done
    assert done.endswith("  helm install exp-7 charts/mnist -f values.yaml")
    idle = summarize(replace(make_result(step=300), before={"step": 300}), plan)
    assert "--resume --release exp-7 --set hyperparameters.maxSteps=600" in idle
    assert "--set hyperparameters.maxSteps=48000" in summarize(
        replace(make_result(), before={"verdict": "Succeeded", "step": 24000}), plan
    )
    assert resume_command({"target": "mnist", "release": "a"}, ".trainchart/runs/a").endswith("--release a")


def test_metric_that_is_not_a_number_is_named(tmp_path: Path) -> None:
    result = make_result(step=5)
    diverged = replace(result, pods=(replace(result.pods[0], nan_metrics=("loss", "norm")),))
    assert "  chief-0: not a number: loss, norm\n" in summarize(diverged, make_plan(tmp_path))
