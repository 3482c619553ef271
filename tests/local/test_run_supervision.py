"""`trainchart run` with real processes and the real launcher, but programs without TensorFlow."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

_HERE = Path(__file__).parent
_CHART = _HERE / "charts" / "trainer"
_DEADLINE_SECONDS = 40


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.02)


@dataclass
class Runs:
    """Starts runs in a folder of its own and ends those that a failing test leaves."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, release: str, values: dict[str, object], *options: str) -> subprocess.Popen[str]:
        sets = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
        code = ["--code", str(_HERE / "programs")]
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "trainchart",
                "run",
                str(_CHART),
                "--release",
                release,
                *code,
                *sets,
                *options,
            ],
            cwd=self.folder,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C of whoever runs these tests is not for them.
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def claim(self, release: str) -> Path:
        return self.folder / ".trainchart/runs" / release / "claims" / f"{release}-trainer-checkpoints"


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    made = Runs(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        if process.stderr is None or not process.stderr.closed:
            process.communicate()
    # Whatever a broken guardian leaves must not outlive its test.
    for found in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if found.environ().get("TRAINCHART_LOCAL_POD", "").startswith(str(tmp_path)):
                found.kill()


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=_DEADLINE_SECONDS)
    return process.returncode, out, err


def roles(**args: tuple[int, str]) -> dict[str, object]:
    return {"roles": {name: {"replicas": count, "args": [word]} for name, (count, word) in args.items()}}


def living(pids: list[int]) -> list[int]:
    alive = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                alive.append(pid)
    return alive


def test_chief_done_means_all_done(runs: Runs) -> None:
    code, out, _ = finish(runs.start("exp-1", {}, "--format", "json"))
    result = json.loads(out)
    assert code == 0
    assert result["verdict"] == "Succeeded"
    assert result["step"] == 10
    assert result["metrics"] == {"chief-0": {"accuracy": 0.97}}
    assert {pod["pod"]: pod["state"] for pod in result["pods"]} == {
        "chief-0": "finished",
        "worker-0": "stopped",
        "worker-1": "stopped",
        "ps-0": "stopped",
    }


def test_processes_get_what_the_chart_says(runs: Runs) -> None:
    code, out, _ = finish(runs.start("exp-1", {"runId": "one"}))
    assert code == 0
    assert out.splitlines()[-1].startswith(f"  helm install exp-1 {_CHART} -f .trainchart/runs/exp-1/values.yaml   #")
    environment = json.loads((runs.claim("exp-1") / "environment.json").read_text())
    config = json.loads(environment["TF_CONFIG"])
    addresses = json.loads(environment["TRAINCHART_ADDRESSES"])
    assert config["task"] == {"type": "chief", "index": 0}
    assert config["cluster"]["worker"] == [
        addresses[f"exp-1-trainer-worker-{index}.exp-1-trainer:2222"] for index in (0, 1)
    ]
    assert environment["TRAINCHART_CHECKPOINTS_DIR"] == str(runs.claim("exp-1"))
    assert environment["TRAINCHART_HP_LEARNING_RATE"] == "0.05"
    assert environment["ARGV"] == ["trainer.py", "finish"]
    record = json.loads((runs.folder / ".trainchart/runs/exp-1/run.json").read_text())
    assert record["values"] == {"runId": "one"}
    assert (
        record["command"]
        == f"trainchart run {_CHART} --release exp-1 --code {_HERE}/programs '--set-json=runId=\"one\"'"
    )
    assert record["code"]["folder"] == str(_HERE / "programs")
    assert len(record["code"]["sha256"]) == len(record["chartIdentity"]) == 64
    assert "PYTEST_CURRENT_TEST" not in environment


def test_failure_is_explained_after_one_attempt(runs: Runs) -> None:
    code, out, err = finish(runs.start("exp-1", roles(chief=(1, "serve"), worker=(2, "fail"), ps=(1, "serve"))))
    assert code == 10
    assert "giving up: failures: 1, restarts allowed: 0" in err
    assert out == ""
    assert "failed: worker-" in err
    assert "ValueError: the learning rate is too fast" in err
    assert "next: trainchart logs exp-1 --pod worker-" in err and "logs/worker-" in err
    assert 'Traceback (most recent call last):\n  File "/' not in err.partition("error: the training")[2]


def test_own_failure_is_restarted_within_the_budget(runs: Runs) -> None:
    values = {**roles(chief=(1, "fail_once"), worker=(1, "serve"), ps=(1, "serve")), "maxRestarts": 1}
    code, out, _ = finish(runs.start("exp-1", values))
    assert code == 0
    assert "  restarted    chief-0 once\n" in out
    result = json.loads((runs.folder / ".trainchart/runs/exp-1/result.json").read_text())
    assert {pod["pod"]: pod["attempts"] for pod in result["pods"]}["chief-0"] == 2


def test_injected_kill_is_survived(runs: Runs) -> None:
    values = roles(chief=(1, "wait_for_restart"), worker=(2, "note_attempt"), ps=(1, "serve"))
    code, out, err = finish(runs.start("exp-1", values, "--kill", "worker-1@200ms", "--format", "json"))
    assert code == 0, err
    attempts = {pod["pod"]: (pod["attempts"], pod["containerRestarts"]) for pod in json.loads(out)["pods"]}
    assert attempts["worker-1"] == (2, 0)
    assert attempts["worker-0"] == (1, 0)
    assert json.loads(out)["warnings"] == []


def test_injected_kill_that_comes_too_late_is_told(runs: Runs) -> None:
    code, out, err = finish(runs.start("exp-1", {}, "--kill", "worker-1@100s", "--format", "json"))
    assert code == 0, err
    (said,) = json.loads(out)["warnings"]
    assert said.startswith("--kill worker-1@100s had no effect: the run ended before that, after ")
    assert f"warning: {said}" in err.splitlines()


def test_killed_launcher_is_restarted_like_a_container(runs: Runs) -> None:
    values = {
        **roles(chief=(1, "wait_for_restart"), worker=(1, "hang_with_children"), ps=(1, "serve")),
        "graceSeconds": 2,
        "maxRestarts": 1,
    }
    process = runs.start("exp-1", values, "--format", "json")
    pids_file = runs.claim("exp-1") / "pids-worker-0.json"
    wait_until(pids_file.exists, "the worker is up")
    pids = json.loads(pids_file.read_text())
    os.kill(pids[1], signal.SIGKILL)
    wait_until(lambda: json.loads(pids_file.read_text())[0] != pids[0], "the worker is up again")
    assert living(pids) == []
    (runs.claim("exp-1") / "second-attempt").touch()
    code, out, err = finish(process)
    assert code == 0, err
    assert {pod["pod"]: pod["containerRestarts"] for pod in json.loads(out)["pods"]}["worker-0"] == 1


def test_evaluator_may_finish(runs: Runs) -> None:
    values = roles(chief=(1, "finish"), worker=(1, "serve"), ps=(1, "serve"), evaluator=(1, "evaluate"))
    code, out, _ = finish(runs.start("exp-1", values, "--format", "json"))
    result = json.loads(out)
    assert code == 0
    assert result["metrics"]["evaluator-0"] == {"accuracy": 0.98}


def test_evaluator_is_stopped_after_its_grace(runs: Runs) -> None:
    values = {
        **roles(chief=(1, "finish"), worker=(1, "serve"), ps=(1, "serve"), evaluator=(1, "serve")),
        "evaluatorGraceSeconds": 1,
    }
    code, _, err = finish(runs.start("exp-1", values))
    assert code == 0
    assert "the evaluator did not finish within 1 s" in err


def test_all_workers_decide_in_multi_worker_mirrored(runs: Runs) -> None:
    values = {"strategy": "multi-worker-mirrored", "roles": {
        "chief": None, "ps": None, "worker": {"replicas": 2, "args": ["finish"]},
    }}  # fmt: skip
    code, out, _ = finish(runs.start("exp-1", values, "--format", "json"))
    assert code == 0
    assert {pod["state"] for pod in json.loads(out)["pods"]} == {"finished"}


def test_interrupt_lets_the_chief_save_before_the_others_go(runs: Runs) -> None:
    process = runs.start("exp-1", roles(chief=(1, "save_on_term"), worker=(1, "serve"), ps=(1, "note_term")))
    for name in ("ready", "ready-ps"):
        wait_until((runs.claim("exp-1") / name).exists, f"{name} is written")
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == 130
    assert f"next:\n  trainchart run {_CHART} --resume --release exp-1 " in out
    assert "Traceback" not in err
    assert (runs.claim("exp-1") / "saved").read_text() == "True"
    assert (runs.claim("exp-1") / "stopped-ps").exists()


def test_second_interrupt_kills_at_once(runs: Runs) -> None:
    values = {
        **roles(chief=(1, "hang_with_children"), worker=(1, "serve"), ps=(1, "serve")),
        "graceSeconds": 600,
    }
    process = runs.start("exp-1", values)
    pids_file = runs.claim("exp-1") / "pids-chief-0.json"
    wait_until(pids_file.exists, "the chief is up")
    pids = json.loads(pids_file.read_text())
    os.kill(pids[0], signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    time.sleep(1.1)  # closer, they are one request
    process.send_signal(signal.SIGINT)
    code, _, _ = finish(process)
    assert code == 143
    assert living(pids) == []


def test_a_signal_that_a_wrapper_doubles_lets_the_chief_save(runs: Runs) -> None:
    process = runs.start("exp-1", roles(chief=(1, "save_on_term"), worker=(1, "serve"), ps=(1, "note_term")))
    for name in ("ready", "ready-ps"):
        wait_until((runs.claim("exp-1") / name).exists, f"{name} is written")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    code, _, _ = finish(process)
    assert code in (130, 143)
    assert (runs.claim("exp-1") / "saved").exists()


def test_terminate_leaves_nothing_and_says_143(runs: Runs) -> None:
    values = {**roles(chief=(1, "hang_with_children"), worker=(1, "serve"), ps=(1, "serve")), "graceSeconds": 2}
    process = runs.start("exp-1", values)
    pids_file = runs.claim("exp-1") / "pids-chief-0.json"
    wait_until(pids_file.exists, "the chief is up")
    process.send_signal(signal.SIGTERM)
    code, _, _ = finish(process)
    assert code == 143
    assert living(json.loads(pids_file.read_text())) == []


def test_kill_dash_nine_leaves_no_orphan(runs: Runs) -> None:
    values = roles(chief=(1, "hang_with_children"), worker=(1, "hang_with_children"), ps=(1, "serve"))
    process = runs.start("exp-1", values)
    files = [runs.claim("exp-1") / f"pids-{label}.json" for label in ("chief-0", "worker-0")]
    wait_until(lambda: all(file.exists() for file in files), "chief and worker are up")
    pids = [pid for file in files for pid in json.loads(file.read_text())]
    pids += [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    process.kill()
    wait_until(lambda: living(pids) == [], "every process is gone")


def test_killed_guardian_is_replaced_and_leaves_no_orphan(runs: Runs) -> None:
    values = roles(chief=(1, "hang_with_children"), worker=(1, "hang_with_children"), ps=(1, "serve"))
    process = runs.start("exp-1", values)
    files = [runs.claim("exp-1") / f"pids-{label}.json" for label in ("chief-0", "worker-0")]
    wait_until(lambda: all(file.exists() for file in files), "chief and worker are up")
    first = guardian_of(process.pid)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: guardian_of(process.pid) not in (None, first), "there is another guardian")
    pids = [pid for file in files for pid in json.loads(file.read_text())]
    pids += [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    process.kill()
    wait_until(lambda: living(pids) == [], "every process is gone")


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels tie no process to its parent")
def test_programs_end_when_all_their_watchers_are_killed_at_once(runs: Runs) -> None:
    process = runs.start("exp-1", roles(chief=(1, "hang_with_children"), worker=(1, "serve"), ps=(1, "serve")))
    pids_file = runs.claim("exp-1") / "pids-chief-0.json"
    wait_until(pids_file.exists, "the chief is up")
    logs = [runs.folder / f".trainchart/runs/exp-1/logs/{pod}.log" for pod in ("worker-0", "ps-0")]
    wait_until(lambda: all(log.exists() and "serving" in log.read_text() for log in logs), "worker and ps are up")
    watching = [process.pid, *(child.pid for child in psutil.Process(process.pid).children())]
    grandchildren = psutil.Process(process.pid).children(recursive=True)
    programs = [child.pid for child in grandchildren if child.ppid() in watching[1:]]
    assert len(programs) == 3
    for pid in watching:
        os.kill(pid, signal.SIGSTOP)
    for pid in reversed(watching):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: living(programs) == [], "every program is gone")


def guardian_of(pid: int) -> int | None:
    for child in psutil.Process(pid).children():
        with contextlib.suppress(psutil.Error):
            if child.status() != psutil.STATUS_ZOMBIE and "trainchart.local.io.guardian" in child.cmdline():
                return child.pid
    return None


def test_two_runs_side_by_side(runs: Runs) -> None:
    values = roles(chief=(1, "wait_for_restart"), worker=(1, "serve"), ps=(1, "serve"))
    processes = [runs.start(release, values, "--format", "json") for release in ("exp-1", "exp-2")]
    for release in ("exp-1", "exp-2"):
        log = runs.folder / ".trainchart/runs" / release / "logs" / "worker-0.log"
        wait_until(lambda log=log: log.exists() and "serving" in log.read_text(), f"{release} trains")  # type: ignore[misc]
        (runs.claim(release) / "second-attempt").touch()
    assert [finish(process)[0] for process in processes] == [0, 0]
    ports = [
        set(
            json.loads(
                json.loads((runs.claim(release) / "environment.json").read_text())["TRAINCHART_ADDRESSES"]
            ).values()
        )
        for release in ("exp-1", "exp-2")
    ]
    assert not ports[0] & ports[1]


def test_a_run_whose_output_is_closed_stops_in_order_and_says_so(runs: Runs) -> None:
    process = runs.start("exp-1", roles(chief=(1, "save_on_term"), worker=(1, "talk"), ps=(1, "serve")))
    assert process.stderr is not None
    process.stderr.readline()
    wait_until((runs.claim("exp-1") / "ready").exists, "the chief is up")
    process.stderr.close()
    (runs.claim("exp-1") / "talk").touch()
    assert process.wait(_DEADLINE_SECONDS) == 141
    assert (runs.claim("exp-1") / "saved").read_text() == "True"
    told = subprocess.run(
        [sys.executable, "-m", "trainchart", "status", "exp-1"], cwd=runs.folder, capture_output=True, text=True
    )
    assert "Stopped" in told.stdout
    assert "The run was stopped because its output was closed" in told.stdout
    state = json.loads((runs.folder / ".trainchart/runs/exp-1/state.json").read_text())
    assert "the output was closed: stopping all pods" in [entry["message"] for entry in state["history"]]


def test_reader_killed_by_same_ctrl_c_does_not_cut_stop_short(runs: Runs) -> None:
    process = runs.start("exp-1", roles(chief=(1, "save_on_term"), worker=(1, "serve"), ps=(1, "serve")))
    assert process.stderr is not None
    process.stderr.readline()
    wait_until((runs.claim("exp-1") / "ready").exists, "the chief is up")
    process.send_signal(signal.SIGINT)
    process.stderr.close()
    assert process.wait(_DEADLINE_SECONDS) == 130
    assert (runs.claim("exp-1") / "saved").read_text() == "True"


def test_running_release_is_refused_to_others(runs: Runs) -> None:
    first = runs.start("exp-1", roles(chief=(1, "save_on_term"), worker=(1, "serve"), ps=(1, "serve")))
    wait_until((runs.claim("exp-1") / "ready").exists, "the chief is up")
    code, _, err = finish(runs.start("exp-1", {}, "--resume"))
    assert code == 7
    assert "exp-1 is running already" in err
    first.send_signal(signal.SIGTERM)
    assert finish(first)[0] == 143


def test_existing_release_is_resumed_or_started_anew(runs: Runs) -> None:
    assert finish(runs.start("exp-1", {"runId": "one"}))[0] == 0
    code, _, err = finish(runs.start("exp-1", {}))
    assert code == 7
    assert "--resume" in err
    assert "--fresh" in err
    code, out, _ = finish(runs.start("exp-1", {"runId": "two"}, "--resume", "--format", "json"))
    assert (code, (runs.claim("exp-1") / "step").read_text()) == (0, "20")
    code, out, _ = finish(runs.start("exp-1", {}, "--fresh", "--format", "json"))
    assert (code, (runs.claim("exp-1") / "step").read_text()) == (0, "10")
    assert json.loads(out)["step"] == 10


def test_resumed_success_is_parked_and_said_to_have_done_nothing(runs: Runs) -> None:
    assert finish(runs.start("exp-1", {}))[0] == 0
    code, out, err = finish(runs.start("exp-1", {}, "--resume"))
    assert code == 0
    assert "has finished this run" in err
    assert out.startswith("Nothing was left to do: exp-1 ended without an error")
    assert (runs.claim("exp-1") / "step").read_text() == "10"
