"""Work in other processes: in order, and with nothing of the current folder but what is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trainchart.actions.support.parallel import map_parallel

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
