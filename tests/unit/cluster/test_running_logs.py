"""What logs of programs that make steps tell of threads that have died, and of tasks that are not connected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainchart.cluster.log_lines import stamp_of
from trainchart.cluster.running_logs import describe_dead_threads, describe_lone_tasks, describe_short_data
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import PodReport, Progress, Report, TrainingKey
from trainchart_runtime.run.state import RUNNING, SUCCEEDED, Verdict

HEAD = (
    "Exception in thread Thread-1 (save):",
    "Traceback (most recent call last):",
    '  File "/code/train.py", line 17',
)
ERROR = "OSError: [Errno 28] No space left on device"
DONE = (
    "trainchart-launcher: worker-0: attempt 1 ended after 690.3 s, succeeded (exit code 0)",
    "trainchart-launcher: worker-0: has finished this run; nothing left to do",
)
STEPS = ("step 110", "step 120")
ENDED = "trainchart-launcher: worker-0: attempt 1 ended after 4.8 s, exit code 1"


def log(*texts: str, label: str = "worker-0") -> list[LogLine]:
    return [LogLine(stamp_of(60.0 * number), label, text) for number, text in enumerate(texts)]


def test_thread_that_died_is_named_while_steps_come() -> None:
    (words,) = describe_dead_threads([log("step 100", *HEAD, ERROR, *STEPS)], {"worker-0": ["results"]})
    assert words.startswith("a thread of worker-0 has died, and its program continues without it: ")
    assert f"{ERROR} (Thread-1 (save), 00:04:00 UTC)" in words
    assert "saving checkpoints" in words
    assert "Free space where it writes (claim results, /tmp), then restart" in words


def test_lines_of_others_stand_within_a_traceback() -> None:
    mixed = (HEAD[0], HEAD[1], "step 101 loss 0.4", HEAD[2], ERROR, *STEPS)
    (words,) = describe_dead_threads([log(*mixed)], {})
    assert f"without it: {ERROR} (Thread-1 (save), " in words


def test_process_of_multiprocessing_that_died_is_named() -> None:
    (words,) = describe_dead_threads([log("Process loader-3:", *HEAD[1:], "KeyError: 'image'", *STEPS)], {})
    assert words.startswith("a process of worker-0 has died, and its program continues without it: KeyError: 'image'")
    assert words.endswith("Fix the error. Also let the program exit when a process fails")


@pytest.mark.parametrize(
    "texts",
    [
        STEPS,
        ("Traceback (most recent call last):", '  File "a.py"', ERROR, *STEPS),
        (*HEAD, ERROR, ENDED, *STEPS),
        HEAD,
    ],
)
def test_other_exceptions_are_not_of_threads(texts: tuple[str, ...]) -> None:
    assert not list(describe_dead_threads([log(*texts)], {}))


def test_same_thread_error_in_many_pods_is_told_once() -> None:
    logs = [log(*HEAD, ERROR, *STEPS, label=f"worker-{index}") for index in range(3)]
    (words,) = describe_dead_threads(logs, {})
    assert words.startswith(
        "threads of worker-0, worker-1, worker-2 have died, and their programs continue without them: "
    )


def wait(other: int, seconds: int, reason: str = "refuses connections") -> str:
    return f"trainchart-launcher: waiting for 1 peer for {seconds} s: exp-m-worker-{other}.exp-m:2222 ({reason})"


def run(step: int | None, at: float = 1000.0) -> Report:
    pods = tuple(
        PodReport(f"exp-m-worker-{index}", f"worker-{index}", "worker", "Running", "node1", 0, 0.0, {}, False)
        for index in range(2)
    )
    return Report(TrainingKey("a", "exp", "m"), 1000.0, RUNNING, "record", pods=pods, progress=Progress(step, at=at))


def test_tasks_that_make_steps_without_peers_train_alone() -> None:
    logs = [log("step 9", wait(1, 204), "step 10"), log(wait(0, 202), "step 12", label="worker-1")]
    (words,) = describe_lone_tasks(run(10), logs)
    assert words.startswith("worker-0, worker-1 made steps, but their programs did not connect to each other")
    assert "port 2222" in words
    assert "TF_CONFIG" in words


@pytest.mark.parametrize(
    ("report", "texts"),
    [
        (run(None), (wait(1, 204), "step 10")),
        (run(10, at=100.0), (wait(1, 204), "step 10")),
        (run(10), (wait(1, 42), "step 10")),
        (run(10), (wait(1, 204, "name does not resolve"), "step 10")),
        (run(10), (wait(1, 204), "trainchart-launcher: all peers have answered after 210 s", "step 10")),
        (run(10), (wait(1, 204), ENDED, "step 10")),
        (run(10), (wait(1, 204),)),
    ],
)
def test_tasks_are_not_alone_while_it_is_not_known(report: Report, texts: tuple[str, ...]) -> None:
    assert not list(describe_lone_tasks(report, [log(*texts)]))


def test_success_of_lone_tasks_is_told_from_kept_lines() -> None:
    report = replace(run(500, at=100.0), outcome=Verdict(SUCCEEDED, "exp-m-worker-0"))
    (words,) = describe_lone_tasks(report, [log(wait(1, 204), "step 500", *DONE)])
    assert words.startswith("worker-0 made steps, but its program did not connect to its peers")


SHORT = (
    "/usr/lib/keras/epoch_iterator.py:116: UserWarning: Your input ran out of data; interrupting training. Make sure"
)


def test_task_that_ran_out_of_data_is_named_where_others_wait() -> None:
    for end in ((), DONE):
        logs = [log("step 1", "step 2", label="chief-0"), log("step 1", SHORT, *end)]
        (words,) = describe_short_data(logs)
        assert words.startswith("worker-0 (00:01:00 UTC) ran out of data before the others, as Keras warned")


@pytest.mark.parametrize(
    "logs",
    [
        [log("step 1", SHORT)],
        [log(SHORT, label="chief-0"), log(SHORT)],
        [log("step 1", label="chief-0"), log(SHORT, ENDED, "step 1")],
        [],
    ],
    ids=["a single task", "all tasks", "an ended attempt", "no logs"],
)
def test_data_that_ended_for_all_or_before_is_no_cause(logs: list[list[LogLine]]) -> None:
    assert not list(describe_short_data(logs))
