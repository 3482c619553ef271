"""GET /log: the end of the pod's log over HTTP, in every state and within bounds."""

from __future__ import annotations

import re
import signal
import urllib.error

import pytest

from trainchart_launcher.pump import LOG_BYTES, Tail
from trainchart_launcher.status import render_log
from trainchart_runtime import contract

WAIT_FOR_FILE = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n"


def wait_for_log(pod, expected):
    """Return the log page's lines once one of them matches `expected`."""

    def look():
        try:
            lines = pod.get("/log").splitlines()
        except OSError:
            return None
        return lines if any(re.search(expected, line) for line in lines) else None

    return pod.wait(look, f"{expected} in the log page")


def test_the_page_shows_both_streams_and_the_launchers_own_lines(pod):
    # In pieces, as a program with PYTHONUNBUFFERED writes: a line is one line all the same.
    program = "import os\nfor piece in ('grö', 'ße'): os.write(1, piece.encode()); os.write(2, b'o')\n"
    pod.start(program + "os.write(1, b'\\n'); os.write(2, b'\\n')\n" + WAIT_FOR_FILE)
    wait_for_log(pod, "^größe$")
    lines = wait_for_log(pod, "^oo$")
    assert any(line.startswith("trainchart-launcher: worker-1: attempt 1 of ") for line in lines)


def test_last_words_without_newline_are_a_line_of_their_own(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "100"})
    # An error that is the same at each start would be final.
    pod.start(
        "import os\nos.write(1, b'out'); os.write(2, b'err' + os.environb[b'TRAINCHART_ATTEMPT'])\nraise SystemExit(3)"
    )
    lines = wait_for_log(pod, "attempt 2 ended")
    # Which need not be the last one by now.
    end = next(number for number, line in enumerate(lines) if "attempt 2 ended" in line)
    assert (lines[:end].count("out"), lines[:end].count("err1"), lines[:end].count("err2")) == (2, 1, 1)


def test_at_most_200_lines_are_given_and_as_few_as_asked_for(pod):
    steps = "for number in range(500): print('step', number, flush=number == 499)\n"
    pod.start(WAIT_FOR_FILE + steps + "time.sleep(600)")
    # The launcher says so once the program runs, which may have said something by then.
    wait_for_log(pod, "attempt 1 of ")
    (pod.folder / "go").touch()
    lines = wait_for_log(pod, "^step 499$")
    assert len(lines) == contract.LOG_LINES_LIMIT and lines[-1] == "step 499"
    assert pod.get("/log?lines=2") == "step 498\nstep 499\n"
    assert pod.get("/log?lines=1000000").splitlines() == lines
    assert pod.get("/log?since=5").splitlines() == lines


@pytest.mark.parametrize("query", ["lines=0", "lines=-1", "lines=", "lines=x", "lines=1e3", "lines=" + "9" * 50])
def test_a_number_that_is_none_is_refused(pod, query):
    pod.start(WAIT_FOR_FILE)
    pod.wait(pod.status, "the page")
    with pytest.raises(urllib.error.HTTPError, match="400"):
        pod.get(f"/log?{query}")


def test_the_log_covers_all_attempts_also_between_them(make_pod):
    pod = make_pod(variables={contract.MAX_RESTARTS: "100"})
    pod.start(
        "import os\nattempt = os.environ['TRAINCHART_ATTEMPT']\nprint('this is', attempt)\nraise ValueError(attempt)\n"
    )
    pod.wait_for_status(lambda status: status["state"] == "waiting" and status["attempt"] >= 3)
    lines = wait_for_log(pod, "starting again in 0.8 s")
    assert {"this is 1", "this is 2", "this is 3"} <= set(lines)
    assert [line for line in lines if "program-error (exit code 1)" in line]


def test_a_parked_pod_says_why_it_does_nothing(pod):
    assert pod.run("print('trained')")[0] == 0
    process = pod.start("print('never')")
    assert wait_for_log(pod, "has finished this run; nothing left to do")
    assert "trained" not in pod.get("/log")
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_the_page_is_bounded_however_long_the_lines():
    tail = Tail(LOG_BYTES)
    for number in range(5000):
        tail.add(b"%04d" % number + b"x" * 5000 + b"\n")
    page = render_log(tail.lines(), "")
    lines = page.splitlines()
    assert lines[-1].startswith("4999xxx") and lines[-1].endswith("x…")
    assert 20 < len(lines) <= 200
    assert len(page.encode()) < LOG_BYTES
    assert render_log([], "") == ""
