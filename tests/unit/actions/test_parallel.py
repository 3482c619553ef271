"""Work in other processes: in order, and with nothing of the current folder but what is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import InvalidStateError
from contextlib import suppress
from pathlib import Path

import pytest

from trainchart.actions.support.parallel import _print_unless_cancelled, map_parallel

_SLOW = """
import pathlib, tempfile, time
from trainchart.actions.support.parallel import map_parallel
def work(folder):
    with tempfile.TemporaryDirectory(dir=folder) as own:
        pathlib.Path(own, "begun").touch()  # an interrupt before that may find the folder without its owner
        time.sleep(600)
if __name__ == "__main__":
    list(map_parallel(work, ["made"] * 9, are_many=True))
"""
_SCRIPT = """
import posixpath
from trainchart.actions.support.parallel import map_parallel
if __name__ == "__main__":
    print(list(map_parallel(posixpath.basename, ["/a", "/b", "/c"], are_many=True)))
"""

_ORDER = """
import operator, threading, time
from trainchart.actions.support.parallel import map_parallel
if __name__ == "__main__":
    for _ in range(THREADS):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    print(list(map_parallel(operator.neg, range(30), are_many=True)))
"""


def test_no_module_of_the_current_folder_is_imported(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_SCRIPT)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for module in ("multiprocessing", "pickle", "random", "signal", "struct"):
        (foreign / f"{module}.py").write_text("open('harmed', 'w')")
    done = subprocess.run(
        [sys.executable, tmp_path / "main.py"], cwd=foreign, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "['a', 'b', 'c']\n", done.stderr
    assert not (foreign / "harmed").exists()


def test_the_environment_is_as_before() -> None:
    before = dict(os.environ)
    assert list(map_parallel(abs, [-1, 2], are_many=True)) == [1, 2]
    assert dict(os.environ) == before


def test_an_interrupt_ends_all_processes_and_they_clean_up(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_SLOW)
    made = tmp_path / "made"
    made.mkdir()
    process = subprocess.Popen(
        [sys.executable, "main.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while len(list(made.glob("*/begun"))) < min(2, len(os.sched_getaffinity(0))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(made.glob("*/begun"))
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1  # of this script, which does not catch the interrupt
    assert errors.endswith("KeyboardInterrupt\n")
    assert not list(made.iterdir())


def test_no_process_outlives_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(_SLOW)
    made = tmp_path / "made"
    made.mkdir()
    process = subprocess.Popen([sys.executable, "main.py"], cwd=tmp_path, start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(made.glob("*/begun")) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait(timeout=60)
    while list_session(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = list_session(process.pid)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    assert not list(made.iterdir())  # they have cleaned up


@pytest.mark.parametrize("threads", [0, 1], ids=["by fork", "anew"])
def test_results_come_in_order(tmp_path: Path, threads: int) -> None:
    (tmp_path / "main.py").write_text(f"THREADS = {threads}\n{_ORDER}")
    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"{[-each for each in range(30)]}\n", done.stderr


def list_session(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


def test_threads_say_all_but_that_tasks_were_cancelled() -> None:
    said: list[BaseException | None] = []

    def run(error: Exception) -> None:
        arguments = threading.ExceptHookArgs((type(error), error, None, None))
        _print_unless_cancelled(lambda found: said.append(found.exc_value), arguments)

    other = ValueError("x")
    run(InvalidStateError("CANCELLED"))
    run(other)
    assert said == [other]
    hook = threading.excepthook
    with pytest.raises(TypeError):
        list(map_parallel(abs, [1, "x"], are_many=True))  # type: ignore[list-item]
    assert threading.excepthook is hook
