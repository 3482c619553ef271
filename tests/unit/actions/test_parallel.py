"""Work in other processes: in order, and with nothing of the current folder but what is asked for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from trainchart.actions.support.parallel import map_parallel

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
