"""A program that does nothing: noticed, and asked where it waits; others are left alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from trainchart_launcher import standstill
from trainchart_launcher.stacks import describe_stacks, find_group, read_stacks
from trainchart_launcher.standstill import StandstillWatch
from trainchart_runtime import contract
from trainchart_runtime.cluster import Task

HANGS = """
import queue, threading, time

def read(items):
    time.sleep(1000)

def next_batch(items):
    return items.get()

items = queue.Queue()
threading.Thread(target=read, args=(items,), daemon=True).start()
print("ready", flush=True)
next_batch(items)
"""
NO_WAY = "print('ready', flush=True)\nimport time\ntime.sleep(1000)"
SPINS = "print('ready', flush=True)\nwhile True: pass"
QUIET_SECONDS = 0.5
PACKAGES = "/opt/venv/lib/python3.12/site-packages"


@pytest.fixture
def start(tmp_path):
    """Starts a program as an image's Python would; returns its process once it is ready."""
    started = []

    def start(text, *, can_be_asked=True):
        program = tmp_path / "train.py"
        program.write_text(text)
        code = f"import trainchart_stacks, runpy; runpy.run_path({str(program)!r})"
        command = [sys.executable, *(("-c", code) if can_be_asked else (str(program),))]
        environ = {**os.environ, "TRAINCHART_ATTEMPT": "1"}
        started.append(subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, process_group=0))
        assert started[-1].stdout.readline() == b"ready\n"
        return started[-1]

    yield start
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """Watches a process until a line is printed or it is stopped; returns (the watch, printed lines)."""
    printed, watches = [], []
    monkeypatch.setattr(standstill, "print_line", printed.append)

    def watch(process, task_type="worker", count_output=lambda: 0):
        progress = str(tmp_path / "progress.json")
        made = StandstillWatch(Task(task_type, 1), process.pid, progress, count_output, quiet=QUIET_SECONDS)
        made.start()
        watches.append(made)
        return printed

    yield watch
    for each in watches:
        each.stop()


def test_a_program_says_where_each_of_its_threads_waits(start, pod):
    process = start(HANGS)

    def ask():
        words = describe_stacks(read_stacks(process.pid))
        return words if words.startswith("wait (threading.py:") else ""

    for _ in range(2):
        words = pod.wait(ask, "the wait for an item")
        assert ", called from next_batch (" in words and "/train.py:8)" in words
        assert "; another thread is in read (" in words
    assert process.poll() is None


def test_a_program_without_the_means_is_left_alone(start):
    process = start(NO_WAY, can_be_asked=False)
    assert read_stacks(process.pid) == []
    assert process.poll() is None


def test_only_programs_of_the_launcher_can_be_asked():
    code = "import os, trainchart_stacks; print([n for n in os.listdir('/proc/self/fd')])"
    environ = {name: value for name, value in os.environ.items() if name != "TRAINCHART_ATTEMPT"}
    ran = [
        subprocess.run([sys.executable, "-c", code], env=each, capture_output=True, text=True, check=True).stdout
        for each in (environ, {**environ, "TRAINCHART_ATTEMPT": "1"})
    ]
    assert len(eval(ran[1])) == len(eval(ran[0])) + 1


def test_a_standstill_is_told_once_with_all_stacks(start, watch, pod):
    printed = watch(start(HANGS))
    last = pod.wait(lambda: next((line for line in printed if contract.WAITS_IN in line), None), "its line")
    assert last.startswith("worker-1: no output, no step and hardly any CPU time for ")
    assert ", called from next_batch (" in last
    stacks = [line for line in printed if line.startswith(contract.STACK_LINE)]
    assert any(line.endswith(" in read") for line in stacks)
    seen = len(printed)
    time.sleep(2 * QUIET_SECONDS)
    assert len(printed) == seen


def test_a_new_step_or_output_begins_a_new_wait(start, watch, pod):
    written = [0]
    printed = watch(start(HANGS), count_output=lambda: written[0])
    pod.wait(lambda: [line for line in printed if contract.WAITS_IN in line], "the first")
    written[0] += 1
    pod.wait(lambda: len([line for line in printed if contract.WAITS_IN in line]) == 2, "the second")


@pytest.mark.parametrize("task_type", ["ps", "evaluator"])
def test_tasks_that_wait_for_others_are_not_watched(start, watch, task_type):
    printed = watch(start(HANGS), task_type)
    time.sleep(3 * QUIET_SECONDS)
    assert printed == []


def test_a_halted_program_is_not_told(start, watch):
    halted = start(HANGS)
    halted.send_signal(signal.SIGSTOP)
    printed = watch(halted)
    time.sleep(4 * QUIET_SECONDS)
    assert printed == []


def test_a_program_that_computes_without_a_step_is_told_once(start, watch, pod):
    printed = watch(start(SPINS))
    line = pod.wait(lambda: next(iter(printed), None), "its line")
    assert line.startswith("worker-1: no output and no step for ")
    assert f"{contract.BUSY_IN}<module> (" in line and line.endswith("/train.py:2)")
    time.sleep(3 * QUIET_SECONDS)
    assert len(printed) == 1


def test_a_process_whose_output_nobody_reads_is_named(start, watch, pod):
    child = "import sys; sys.stdout.write('x' * 500_000)"
    program = (
        f"import subprocess, sys\nprint('ready', flush=True)\n"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE).wait()\n"
    )
    printed = watch(start(program))
    last = pod.wait(lambda: next((line for line in printed if contract.WAITS_IN in line), None), "its line")
    assert re.search(rf"; its process \d+ \(python\S*\) {contract.UNREAD_PIPE}$", last)


def test_dead_processes_that_a_program_waits_for_are_counted(start, watch, pod):
    loader = "import os, signal; os.kill(os.getpid(), signal.SIGBUS)"
    program = (
        "import queue, subprocess, sys\nprint('ready', flush=True)\n"
        f"loaders = [subprocess.Popen([sys.executable, '-c', {loader!r}]) for _ in range(2)]\n"
        "loaders.append(subprocess.Popen([sys.executable, '-c', '']))\n"
        "queue.Queue().get()\n"
    )
    printed = watch(start(program))
    last = pod.wait(lambda: next((line for line in printed if contract.WAITS_IN in line), None), "its line")
    assert last.endswith(f"; 2 {contract.PROCESSES_DIED} (SIGBUS)")


def test_the_group_of_a_program_is_found(start):
    process = start(HANGS)
    assert find_group(process.pid) == [process.pid]


def test_the_verdict_of_the_watchdog_says_where_it_waited(make_pod):
    pod = make_pod(variables={contract.NO_PROGRESS_SECONDS: "0.4"})
    program = (
        "import os, threading, trainchart_stacks\n"
        "open(os.environ['TRAINCHART_PROGRESS_FILE'], 'w').write('{\"step\": 7}')\n"
        "threading.Event().wait()\n"
    )
    assert pod.run(program)[0] == 143
    assert pod.message.cause == "no-progress"
    assert pod.message.error.startswith("(the program waited in wait (threading.py:")
    assert "/program.py:3)" in pod.message.error


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], ""),
        (["Current thread 0x1 (most recent call first):"], ""),
        (['  File "/a.py", line 1 in f'], ""),
        (
            ["Thread 0x1 [main] (most recent call first):", '  File "/app/a (1).py", line 3 in <module>'],
            "<module> (/app/a (1).py:3)",
        ),
        (
            [
                "Current thread 0x1 (most recent call first):",
                f'  File "{PACKAGES}/tensorflow/python/eager/execute.py", line 53 in quick_execute',
                '  File "/opt/trainchart/python/trainchart_training/roles.py", line 9 in train',
                '  File "/app/train.py", line 60 in main',
                "  ...",
            ],
            "quick_execute (tensorflow/python/eager/execute.py:53), called from main (/app/train.py:60)",
        ),
        (
            [
                "Current thread 0x1 (most recent call first):",
                '  File "/usr/lib/python3.12/queue.py", line 1 in get',
                '  File "<frozen runpy>", line 88 in _run_code',
            ],
            "get (queue.py:1)",
        ),
        (
            [
                "Current thread 0x1 (most recent call first):",
                '  File "/usr/lib/python3.12/queue.py", line 1 in get',
                '  File "<string>", line 4 in <module>',
            ],
            "get (queue.py:1), called from <module> (<string>:4)",
        ),
    ],
)
def test_stacks_are_described(lines, words):
    assert describe_stacks(lines) == words


def test_a_program_that_threads_keep_alive_is_described(start, pod):
    program = (
        "import threading, time\ndef serve():\n    time.sleep(1000)\nthreading.Thread(target=serve).start()\n"
        "print('ready', flush=True)\n"
    )
    process = start(program)
    words = pod.wait(lambda: _starts(describe_stacks(read_stacks(process.pid)), "_shutdown: "), "the end of main")
    assert words.startswith(
        "_shutdown: its main thread has ended, and it waits for its other threads; another thread is in serve ("
    )


def test_what_keeps_a_program_alive_is_named_of_libraries_too(start, pod):
    program = (
        "import http.server, threading\nserver = http.server.HTTPServer(('127.0.0.1', 0), None)\n"
        "threading.Thread(target=server.serve_forever).start()\nprint('ready', flush=True)\n"
    )
    process = start(program)
    words = pod.wait(lambda: _starts(describe_stacks(read_stacks(process.pid)), "_shutdown: "), "the end of main")
    assert "; another thread is in serve_forever (socketserver.py:" in words


def _starts(words, beginning):
    return words if words.startswith(beginning) else ""


def test_the_call_of_python_that_waits_is_named(start, pod):
    program = (
        "import multiprocessing, time\npool = multiprocessing.get_context('fork').Pool(1)\n"
        "print('ready', flush=True)\npool.map(time.sleep, [1000])\n"
    )
    process = start(program)
    words = pod.wait(lambda: _starts(describe_stacks(read_stacks(process.pid)), "wait (threading.py:"), "the wait")
    assert ", called from map (pool.py:" in words and ", called from <module> (" in words


def test_a_description_has_an_end():
    long = [f'  File "/app/{"x" * 900}.py", line 1 in {"y" * 900}']
    assert len(describe_stacks(["Current thread 0x1 (most recent call first):", *long])) <= 400
