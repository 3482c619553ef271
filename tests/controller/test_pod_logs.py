"""The last lines of every pod are kept when the run is decided, those of the pod that decided it first of all."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.controller.fake_api import FakeApi, make_pod
from trainchart_controller import pod_logs
from trainchart_runtime import causes

CHIEF, WORKER, PS = (f"exp1-mnist-{role}" for role in ("chief", "worker", "ps"))


@pytest.fixture
def decide(api: FakeApi, start: Any, run_to_phase: Any) -> Any:
    """Let worker-1 fail, or the chief succeed, and return the lines that are kept."""

    def decide(task: str, cause: causes.Cause) -> dict[str, list[str]]:
        controller = start()
        run_to_phase("Running")
        api.put_pod(make_pod(task, cause))
        controller.wait()
        return {pod: kept["lines"] for pod, kept in api.logs().items()}

    return decide


def test_last_lines_of_failed_pod_and_each_role_are_kept(api: FakeApi, decide: Any) -> None:
    api.pod_logs = {
        (f"{WORKER}-1", "true"): b"trained\nValueError: no\n",
        (f"{WORKER}-1", "false"): b"gave up before\n",
    }
    api.pod_logs |= {(f"{CHIEF}-0", "false"): b"step 1\nstep 2\n", (f"{WORKER}-0", "false"): b"waiting\n"}
    kept = decide("worker-1", causes.PROGRAM_ERROR)
    assert kept == {
        f"{WORKER}-1": ["trained", "ValueError: no", "gave up before"],
        f"{CHIEF}-0": ["step 1", "step 2"],
        f"{WORKER}-0": ["waiting"],
    }


def test_last_lines_of_second_pod_of_a_role_are_kept(api: FakeApi, decide: Any) -> None:
    api.put_pod(make_pod("worker-1"))
    api.pod_logs = {(f"{WORKER}-1", "false"): b"WARNING input: skipped train-00002.csv\n", (f"{PS}-0", "false"): b""}
    assert decide("chief-0", causes.PROGRAM_ERROR) == {
        f"{WORKER}-1": ["WARNING input: skipped train-00002.csv"],
        f"{PS}-0": [],
    }


def test_kubelets_answer_in_place_of_a_log_is_not_kept(api: FakeApi, decide: Any) -> None:
    lost = b"unable to retrieve container logs for containerd://4f0d6c1b"
    api.pod_logs = {(f"{WORKER}-1", "true"): lost, (f"{WORKER}-1", "false"): b"ValueError: no\n"}
    api.pod_logs |= {(f"{CHIEF}-0", "false"): lost, (f"{WORKER}-0", "false"): b"reading\n" + lost + b"\n"}
    kept = decide("worker-1", causes.PROGRAM_ERROR)
    assert kept == {f"{WORKER}-1": ["ValueError: no"], f"{WORKER}-0": ["reading", lost.decode()]}


def test_of_a_pod_that_has_succeeded_the_programs_lines_are_kept(api: FakeApi, decide: Any) -> None:
    steps = b"".join(b"step %d\n" % number for number in range(500))
    api.pod_logs = {(f"{CHIEF}-0", "true"): steps, (f"{CHIEF}-0", "false"): b"has finished\n"}
    lines = decide("chief-0", causes.SUCCEEDED)[f"{CHIEF}-0"]
    assert len(lines) == 200
    assert lines[-2:] == ["step 499", "has finished"]


def test_record_keeps_as_many_long_lines_as_fit(api: FakeApi, decide: Any) -> None:
    log = ("шаг\x1b\n" + 199 * ("ш" * 15_000 + "\n") + "10%\r\x1b]0;title\x07the error").encode()
    api.pod_logs = {(f"{pod}-0", "false"): log for pod in (CHIEF, WORKER, PS)}
    api.pod_logs[f"{WORKER}-1", "true"] = log
    kept = decide("worker-1", causes.PROGRAM_ERROR)
    for lines in kept.values():
        assert lines[-1] == "the error"
        assert len(lines) > 1
        assert len(json.dumps(lines)) <= 40_000


def test_marks_that_python_takes_for_line_ends_make_no_lines(api: FakeApi, decide: Any) -> None:
    api.pod_logs = {(f"{CHIEF}-0", "false"): "first\nab\x0b\x0c\x1c\x85\u2028cd\nlast\n".encode()}
    lines = decide("worker-1", causes.PROGRAM_ERROR)[f"{CHIEF}-0"]
    assert (lines[0], lines[-1], len(lines)) == ("first", "last", 3)


def test_of_a_long_progress_bar_the_last_state_is_kept(api: FakeApi, decide: Any) -> None:
    bar = b"\r".join(b"%6d/30000 loss 0.5" % step for step in range(30_001))
    api.pod_logs = {(f"{CHIEF}-0", "false"): b"first\n" + bar + b"\n"}
    assert decide("worker-1", causes.PROGRAM_ERROR)[f"{CHIEF}-0"][-1].strip() == "30000/30000 loss 0.5"


@pytest.mark.parametrize("said", ["Authorization: Bearer hunter2", "postgres://me:hunter2@db"])
@pytest.mark.parametrize(("limit", "ending"), [("_END_LIMIT", "\nValueError: no\n"), ("_LINE_BYTES", "\rthe error")])
def test_a_password_is_hidden_wherever_a_long_log_is_cut(
    monkeypatch: pytest.MonkeyPatch, said: str, limit: str, ending: str
) -> None:
    log = f"before {said} is the error here{ending}".encode()
    pod: Any = SimpleNamespace(name=CHIEF)

    class Stub:
        def read_end(self, path: str, seconds: float, most: int) -> bytes:
            del path, seconds
            return log[-most:]

    for most in range(len(ending) + 1, len(log) + 1):
        monkeypatch.setattr(pod_logs, limit, most)
        lines = pod_logs.read_logs(lambda: cast(Any, Stub()), "n", [pod])[CHIEF]["lines"]
        assert "hunter2" not in " ".join(lines)
        assert lines[-1] in ("ValueError: no", "the error")


@pytest.mark.timeout(120)
def test_logs_of_many_hostile_pods_need_little_memory() -> None:
    """A controller has 128 MiB, and needs 25 for itself."""
    program = (
        "import resource\n"
        "from trainchart_controller.pod_logs import read_logs\n"
        "class Api:\n"
        "    def read_end(self, path, seconds, limit):\n"
        "        return (b'ab\\x0b' * 1_100_000 + (b'p' if 'true' in path else b''))[-limit:]\n"
        "class Pod:\n"
        "    def __init__(self, number): self.name = f'worker-{number}'\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "assert len(read_logs(Api, 'n', [Pod(number) for number in range(8)])) == 8\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60


def test_a_run_ends_also_where_no_log_can_be_read(api: FakeApi, decide: Any) -> None:
    api.fail("LOG", "/log", 403, times=100)
    assert decide("worker-1", causes.PROGRAM_ERROR) == {}
    assert api.state()["phase"] == "Failed"
