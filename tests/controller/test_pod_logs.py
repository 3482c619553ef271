"""The last lines of each role are kept when the run is decided, those of the pod that decided it first of all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_api import FakeApi, make_pod
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


def test_of_the_pod_that_failed_and_of_each_role_the_last_lines_are_kept(api: FakeApi, decide: Any) -> None:
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


def test_of_a_pod_that_has_succeeded_the_programs_lines_are_kept(api: FakeApi, decide: Any) -> None:
    steps = b"".join(b"step %d\n" % number for number in range(500))
    api.pod_logs = {(f"{CHIEF}-0", "true"): steps, (f"{CHIEF}-0", "false"): b"has finished\n"}
    lines = decide("chief-0", causes.SUCCEEDED)[f"{CHIEF}-0"]
    assert len(lines) == 200
    assert lines[-2:] == ["step 499", "has finished"]


def test_of_long_lines_the_record_keeps_as_many_as_it_has_room_for(api: FakeApi, decide: Any) -> None:
    log = ("шаг\x1b\n" + 199 * ("ш" * 15_000 + "\n") + "10%\r\x1b]0;title\x07the error").encode()
    api.pod_logs = {(f"{pod}-0", "false"): log for pod in (CHIEF, WORKER, PS)}
    api.pod_logs[f"{WORKER}-1", "true"] = log
    kept = decide("worker-1", causes.PROGRAM_ERROR)
    for lines in kept.values():
        assert lines[-1] == "the error"
        assert len(lines) > 1
        assert len(json.dumps(lines)) <= 40_000


def test_a_run_ends_also_where_no_log_can_be_read(api: FakeApi, decide: Any) -> None:
    api.fail("LOG", "/log", 403, times=100)
    assert decide("worker-1", causes.PROGRAM_ERROR) == {}
    assert api.state()["phase"] == "Failed"
