"""Which lines of running pods are worth a word of `why`."""

from __future__ import annotations

import pytest

from trainchart.cluster.log_lines import (
    describe_repeated_warnings,
    find_exceptions,
    find_last_line,
    find_warnings,
    stamp_of,
)
from trainchart.cluster.record import KeptLog
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import Report, TrainingKey
from trainchart_runtime.contract import BUSY_IN, STACK_LINE, WAITS_IN
from trainchart_runtime.run.state import FAILED

ENDED = "trainchart-launcher: chief-0: attempt 1 ended after 4.8 s, exit code 1"


def tell(*texts: str) -> list[str]:
    lines = [LogLine(stamp_of(60.0 * number), "chief-0", text) for number, text in enumerate(texts)]
    return [words.rpartition("UTC): ")[2] for words in describe_repeated_warnings([lines], {})]


def test_a_warning_with_other_numbers_is_the_same() -> None:
    assert tell(*(f"WARNING: step {number} was slow" for number in range(3))) == ["WARNING: step 2 was slow"]


def test_what_ended_programs_printed_is_told_by_their_deaths() -> None:
    printed = ["Traceback (most recent call last):", "TimeoutError: error: timed out"] * 3
    assert tell(*printed, ENDED, "step 1") == []
    assert tell(*["ERROR: slow"] * 3, ENDED, *["ERROR: slow"] * 2) == []
    assert tell(ENDED, *["ERROR: slow"] * 3) == ["ERROR: slow"]


def test_an_exception_that_ended_an_attempt_goes_on_in_none() -> None:
    lines = [LogLine("", "chief-0", text) for text in ("Traceback (most recent call last):", "OSError: busy", ENDED)]
    assert not list(find_exceptions([lines]))
    assert [line.text for line in find_exceptions([[*lines, *lines[:2]]])] == ["OSError: busy"]


def test_lines_of_other_threads_are_no_exception() -> None:
    texts = (
        "Traceback (most recent call last):",
        "step 600 loss 0.4",
        '  File "a.py", line 2',
        "OSError: busy",
        "step 7",
    )
    assert [line.text for line in find_exceptions([[LogLine("", "chief-0", text) for text in texts]])] == [
        "OSError: busy"
    ]


WAITS = f"trainchart-launcher: worker-1: no output for 150 s{WAITS_IN}get (queue.py:171)"
STACKS = [f"trainchart-launcher: {STACK_LINE}{line}" for line in ("Current thread", '  File "queue.py", line 171')]


@pytest.mark.parametrize(
    ("texts", "last", "where"),
    [
        (["step 7", *STACKS, WAITS], "step 7", "get (queue.py:171)"),
        (["step 7", *STACKS, WAITS, "step 8"], "step 8", None),
        (["step 7"], "step 7", None),
        ([*STACKS, WAITS], None, "get (queue.py:171)"),
        ([], None, None),
        (["a word; the program waits in vain"], "a word; the program waits in vain", None),
    ],
)
def test_where_a_program_waits_is_not_its_last_line(texts: list[str], last: str | None, where: str | None) -> None:
    found = find_last_line([LogLine("", "worker-1", text) for text in texts])
    assert (found.line and found.line.text, found.waits and found.waits.text, found.busy) == (last, where, None)


def test_where_a_program_computes_is_not_its_last_line() -> None:
    busy = f"trainchart-launcher: worker-1: no output and no step for 225 s{BUSY_IN}f (/app/train.py:3)"
    found = find_last_line([LogLine("", "worker-1", text) for text in ("step 7", busy)])
    assert found.line and found.busy and found.waits is None
    assert (found.line.text, found.busy.text) == ("step 7", "f (/app/train.py:3)")


def test_the_frame_of_a_traceback_is_no_warning() -> None:
    during = "During handling of the above exception, another exception occurred:"
    assert tell(*["Traceback (most recent call last):", "OSError: error: busy", during] * 3) == ["OSError: error: busy"]


@pytest.mark.parametrize(("silent_since", "is_told"), [(0.0, False), (1.0, True), (500.0, False)])
def test_warning_that_repeats_without_steps_comes_first(silent_since: float, *, is_told: bool) -> None:
    lines = [LogLine(stamp_of(60.0 * number), "worker-0", "warning: batch is empty") for number in range(4)]
    (words,) = describe_repeated_warnings([lines], {}, silent_since)
    assert ("warning: batch is empty. No step was made meanwhile. Fix what it warns about" in words) == is_told


def test_warnings_of_the_start_are_not_told_later() -> None:
    warnings = [LogLine(stamp_of(number), "worker-0", "warning: not increased") for number in range(5)]
    steps = [LogLine(stamp_of(60.0 * number), "worker-0", f"at {number}") for number in range(1, 4)]
    assert list(describe_repeated_warnings([[*warnings, *steps[:1]]], {}))
    assert not list(describe_repeated_warnings([[*warnings, *steps]], {}))


def test_what_all_print_when_one_has_gone_is_no_warning() -> None:
    lines = (
        "E0000 00:00:1.6  35 collective_executor.cc:252] BaseCollectiveExecutor::StartAbort ABORTED: Error reported",
        "E0000 00:00:1.6  35 ring_alg.cc:291] Aborting RingReduce with ABORTED: Collective ops is aborted by: Error",
        "The error could be from a previous operation. Restart your program to reset. [type.googleapis.com/x='']",
        "WARNING:tensorflow:From /venv/saver.py:1068: remove_checkpoint is deprecated and will be removed",
        "WARNING: shard 7 is empty",
    )
    report = Report(TrainingKey("a", "exp", "m"), 0.0, FAILED, "record")
    (found,) = find_warnings([KeptLog("exp-m-worker-0", 0.0, lines)], report, {})
    assert found.text == "WARNING: shard 7 is empty"


GRPC = "Additional GRPC error information from remote target /job:worker/task:1 while calling /a.Worker/RecvBuf:"
HEAD = "Traceback (most recent call last):"
FRAMES = ('  File "/venv/traceback_utils.py", line 167, in error_handler', "    raise error from None", "")
LOST = "tensorflow.errors_impl.UnavailableError: Collective ops is aborted by: recvmsg:Connection reset by peer"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((HEAD, *FRAMES, "ValueError: no shard 7"), ["ValueError: no shard 7"]),
        ((HEAD, *FRAMES, "queue.Empty", "step 7"), ["queue.Empty"]),
        ((FRAMES[0], "    error = 7", "KeyError: 'a'", "step 7"), ["KeyError: 'a'"]),
        ((GRPC, HEAD, *FRAMES, LOST), []),
        ((HEAD, *FRAMES, "step 7"), []),
        (
            (
                HEAD,
                FRAMES[0],
                "KeyError: 'a'",
                "",
                "During handling of the above exception, another",
                HEAD,
                "OSError: b",
            ),
            ["KeyError: 'a'", "OSError: b"],
        ),
    ],
)
def test_warnings_hold_only_the_last_line_of_a_traceback(lines: tuple[str, ...], found: list[str]) -> None:
    report = Report(TrainingKey("a", "exp", "m"), 0.0, FAILED, "record")
    assert [line.text for line in find_warnings([KeptLog("exp-m-worker-0", 0.0, lines)], report, {})] == found
