"""What a run's folder says about it: while it goes on, at its end, and after it was killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainchart.local.io.release_lock import hold_lock
from trainchart.local.io.run_report import find_runs, read_report
from trainchart.reports.list_table import list_lines
from trainchart.reports.report_json import describe_report
from trainchart.reports.text import status_lines
from trainchart.reports.why import why_lines

STARTED = 1_800_000_000.0
HISTORY = [{"at": STARTED, "phase": "Running", "message": "started by: trainchart run mnist --set x=1"}]
FAILURE = {
    "pod": "worker-0",
    "cause": "program-error",
    "sentence": "The program ended with an exception.",
    "error": "ValueError: no data today",
    "hint": "Read the exception.",
    "exit_code": 1,
    "at": STARTED + 5,
    "log_file": "worker-0.log",
    "last_lines": ["ValueError: no data today"],
}


def make_run(
    runs: Path,
    release: str = "exp-7",
    result: dict[str, Any] | None = None,
    phase: str = "Running",
    pod_state: str = "running",
) -> Path:
    folder = runs / release
    state_folder = folder / "pods/worker-0/state"
    state_folder.mkdir(parents=True)
    (state_folder / "progress.json").write_text('{"step": 40, "examples_per_second": 9.5, "metrics": {"loss": 0.5}}')
    record = {
        "release": release,
        "chart": "mnist-0.1.0",
        "target": "mnist",
        "command": "trainchart run mnist --set x=1",
        "hyperparameters": {"learningRate": 0.1, "verbose": False},
        "code": {"folder": "/code", "commit": "8dc71b42e2b96996", "isDirty": True, "sha256": "653ec229944e786348"},
        "startedAt": STARTED,
        "deciding": ["worker-0"],
        "pods": [{"label": "worker-0", "name": f"{release}-worker-0", "role": "worker", "state": str(state_folder)}],
    }
    state = {
        "phase": phase,
        "since": STARTED + 6,
        "updated": STARTED + 9,
        "pods": {"worker-0": {"state": pod_state, "attempt": 2}},
        "history": HISTORY,
    }
    for name, body in (("run", record), ("state", state), ("result", result)):
        if body is not None:
            (folder / f"{name}.json").write_text(json.dumps(body))
    return folder


def test_a_run_that_goes_on_is_read_from_its_files(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    with hold_lock(tmp_path, "exp-7"):
        report = read_report(folder)
    assert (report.phase, report.outcome, report.is_over) == ("Running", None, False)
    assert (report.progress.step, report.progress.metrics) == (40, {"loss": 0.5})
    assert (report.roles[0].running, report.attempt) == (1, 2)
    page = "\n".join(status_lines(report))
    assert page.startswith("exp-7 (this machine, mnist-0.1.0): Running for ")
    assert "  command  trainchart run mnist --set x=1\n  with     learningRate 0.1, verbose false\n" in page
    assert "  code     /code, commit 8dc71b42e2b9 and changes since, sha256 653ec229944e\n" in page
    assert "GPU:" not in page


def test_speed_of_workers_that_all_decide_counts_once(tmp_path: Path) -> None:
    folder = make_run(tmp_path)
    record = json.loads((folder / "run.json").read_text())
    other = folder / "pods/worker-1/state"
    other.mkdir(parents=True)
    (other / "progress.json").write_text('{"step": 40, "examples_per_second": 9.4}')
    record["deciding"].append("worker-1")
    record["pods"].append({"label": "worker-1", "name": "exp-7-worker-1", "role": "worker", "state": str(other)})
    (folder / "run.json").write_text(json.dumps(record))
    with hold_lock(tmp_path, "exp-7"):
        report = read_report(folder)
    assert report.progress.examples_per_second == 9.5


def test_a_run_that_starts_again_is_not_over(tmp_path: Path) -> None:
    folder = make_run(tmp_path, phase="Succeeded")
    with hold_lock(tmp_path, "exp-7"):
        assert read_report(folder).phase == "Starting"


def test_a_killed_run_is_not_taken_for_a_living_one(tmp_path: Path) -> None:
    report = read_report(make_run(tmp_path))
    assert report.is_over
    assert report.outcome is not None
    assert (report.phase, report.outcome.cause) == ("Failed", "run-killed")
    assert report.roles[0].running == 0
    why = "\n".join(why_lines(report))
    assert "The process of `trainchart run` was killed" in why
    assert f"trainchart run mnist --resume --release exp-7 --runs-dir {tmp_path}" in why


def test_a_killed_run_keeps_the_step_it_reported(tmp_path: Path) -> None:
    report = read_report(make_run(tmp_path))
    assert report.outcome is not None
    assert (report.outcome.step, report.progress.step, report.progress.metrics) == (40, 40, {"loss": 0.5})
    heading, row = list_lines([report])
    assert row[heading.index("STEP") :].startswith("40 ")
    assert describe_report(report)["progress"]["step"] == 40


def test_a_failure_is_explained_as_on_a_cluster(tmp_path: Path) -> None:
    result = {"verdict": "Failed", "failure": FAILURE, "finishedAt": STARTED + 6, "step": 40, "metrics": {}}
    why = "\n".join(why_lines(read_report(make_run(tmp_path, result=result, phase="Failed"))))
    assert "What failed first: worker-0\n  cause      program-error: The program ended with an exception." in why
    assert "  error      ValueError: no data today" in why
    assert "started by: trainchart run mnist --set x=1" in why
    assert "  | ValueError: no data today" in why


def test_a_success_that_did_nothing_is_listed_as_such(tmp_path: Path) -> None:
    result = {"verdict": "Succeeded", "nothingDone": "No step was made.", "finishedAt": STARTED, "metrics": {}}
    (_, line) = list_lines([read_report(make_run(tmp_path, result=result))])
    assert line.startswith("this machine  exp-7    mnist-0.1.0  Succeeded")
    assert line.endswith("nothing-done: No step was made.")


@pytest.mark.parametrize(
    ("verdict", "pod_state", "finished", "failures"), [("Succeeded", "finished", 1, 1), ("Failed", "failed", 0, 2)]
)
def test_ended_tasks_are_counted(tmp_path: Path, verdict: str, pod_state: str, finished: int, failures: int) -> None:
    result = {"verdict": verdict, "finishedAt": STARTED, "metrics": {}}
    [role] = read_report(make_run(tmp_path, result=result, phase=verdict, pod_state=pod_state)).roles
    assert (role.running, role.finished, role.failures) == (0, finished, failures)


def test_local_and_cluster_reports_are_the_same_document(tmp_path: Path) -> None:
    report = describe_report(read_report(make_run(tmp_path)))
    assert (report["origin"], report["namespace"], report["folder"]) == ("local", None, str(tmp_path / "exp-7"))
    assert report["record"]["hyperparameters"] == {"learningRate": 0.1, "verbose": False}
    assert report["phase"] == "Failed"
    assert report["pods"][0]["label"] == "worker-0"


def test_folders_that_no_run_made_are_not_runs(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/run.json").write_text("{}")
    assert find_runs(tmp_path) == []
    assert find_runs(tmp_path / "none") == []


def test_evaluators_measure_beside_the_leading_pod(tmp_path: Path) -> None:
    result = {
        "verdict": "Succeeded",
        "finishedAt": STARTED + 9,
        "step": 40,
        "metrics": {"evaluator-0": {"loss": 0.75}, "worker-0": {"loss": 0.5}},
        "pods": [{"pod": "worker-0", "nanMetrics": ["norm"]}, {"pod": "evaluator-0", "nanMetrics": ["auc"]}],
    }
    folder = make_run(tmp_path, result=result)
    record = json.loads((folder / "run.json").read_text())
    evaluator = tmp_path / "exp-7/pods/evaluator-0/state"
    evaluator.mkdir(parents=True)
    (evaluator / "progress.json").write_text('{"step": 90, "metrics": {"loss": 0.7, "auc": NaN}}')
    record["pods"].append({"label": "evaluator-0", "name": "e", "role": "evaluator", "state": str(evaluator)})
    (folder / "run.json").write_text(json.dumps(record))
    ended = read_report(folder).progress
    assert (ended.step, ended.metrics) == (40, {"loss": 0.5, "evaluator/loss": 0.75})
    assert ended.nan_metrics == ("norm", "evaluator/auc")
    assert (
        "  step 40, loss 0.5, evaluator/loss 0.75, norm NaN, evaluator/auc NaN" in status_lines(read_report(folder))[2]
    )
    (folder / "result.json").unlink()
    killed = read_report(folder).progress
    assert (killed.step, killed.metrics) == (40, {"loss": 0.5, "evaluator/loss": 0.7})
    assert killed.nan_metrics == ("evaluator/auc",)
