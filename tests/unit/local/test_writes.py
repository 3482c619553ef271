"""What a program writes where a pod may not, as the end of a local run names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from trainchart.local.io.writes import WATCH_FOLDER, describe_writes, read_code_times
from trainchart.local.plan import WRITES_FILE

PROGRAM = """
import os
os.makedirs("ckpt/sub")
open("ckpt/a", "w")
open("read.txt")
open(os.path.join(os.environ["HOME"], ".cachefile"), "ab")
os.makedirs(os.path.join(os.environ["HOME"], ".cache", "matplotlib"))
open(os.path.join(os.environ["VOLUME"], "b"), "w")
os.rename(os.path.join(os.environ["VOLUME"], "b"), "moved")
os.makedirs(os.environ["VOLUME"], exist_ok=True)
os.makedirs(".", exist_ok=True)
open("/dev/null", "w")
print(bool(os.environ.get("OTHER_SITE")))
"""

TENSORFLOW_PROGRAM = """
import os
from tensorflow.python.lib.io import _pywrap_file_io as file_io
from tensorflow.python.ops import summary_ops_v2
import json
file_io.RecursivelyCreateDir(b"export/variables")
file_io.CreateDir(".")
file_io.WritableFile("checkpoint.tmp" + "0a" * 16, "w")
file_io.WritableFile("gs://bucket/checkpoint", "w")
summary_ops_v2.create_file_writer_v2(logdir=os.path.join(os.environ["HOME"], "events"))
print(summary_ops_v2.create_file_writer_v2(os.environ["VOLUME"]))
"""
"""`import json` stands for what a real TensorFlow imports after these modules."""


FAILING_PROGRAM = """
import contextlib, os, sys
for path, mode in [("gone", "r"), ("gone", "r+"), ("none/gone", "w"), ("read.txt", "x")]:
    with contextlib.suppress(OSError):
        open(path, mode)
for write, given in [(os.rename, ("gone", "there")), (os.link, ("gone", "there")), (os.mkdir, ("none/gone",))]:
    with contextlib.suppress(OSError):
        write(*given)
with contextlib.suppress(OSError):
    os.open("gone", os.O_RDWR)
open("read.txt", "r+")
"""


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    """A run of one pod, with folders for its code, home and volume."""
    for name in ("code", "home", "volume", "site", "runs"):
        (tmp_path / name).mkdir()
    (tmp_path / "code/read.txt").touch()
    (tmp_path / "site/sitecustomize.py").write_text("import os; os.environ['OTHER_SITE'] = '1'")
    environment = {
        "HOME": str(tmp_path / "home"),
        "VOLUME": str(tmp_path / "volume"),
        "PYTHONPATH": f"{WATCH_FOLDER}:{tmp_path / 'site'}",
        WRITES_FILE: str(tmp_path / "runs/writes"),
        "TRAINCHART_LOCAL_WRITABLE": f"{tmp_path / 'volume'}:{tmp_path / 'runs'}",
        "TRAINCHART_LOCAL_READ_ONLY": f"{tmp_path / 'code'}:{tmp_path / 'home'}",
    }
    pod = SimpleNamespace(environment=environment, working_directory=str(tmp_path / "code"))
    return SimpleNamespace(
        pods=[pod], release_folder=str(tmp_path / "code/runs/exp-1"), outputs=[f"{tmp_path}/code/claim"]
    )


def run(plan: Any, *command: str) -> str:
    pod = plan.pods[0]
    ended = subprocess.run(command, env=pod.environment, cwd=pod.working_directory, capture_output=True, check=True)
    assert not ended.stderr
    return ended.stdout.decode()


def test_python_notes_what_a_pod_may_not_write(plan: Any, tmp_path: Path) -> None:
    said = run(plan, sys.executable, "-c", PROGRAM)
    noted = Path(plan.pods[0].environment[WRITES_FILE]).read_text().splitlines()
    expected = ["code/ckpt", "home/.cachefile", "code/moved"]
    assert [os.path.relpath(path, tmp_path) for path in noted] == expected
    assert said == "True\n", "the sitecustomize that Python would have found is imported, too"


def test_a_write_that_fails_is_not_noted(plan: Any, tmp_path: Path) -> None:
    run(plan, sys.executable, "-c", FAILING_PROGRAM)
    assert Path(plan.pods[0].environment[WRITES_FILE]).read_text() == f"{tmp_path}/code/read.txt\n"


def test_tensorflows_own_writes_are_noted(plan: Any, tmp_path: Path) -> None:
    for name in ("lib/io/_pywrap_file_io", "ops/summary_ops_v2"):
        module = tmp_path / f"site/tensorflow/python/{name}.py"
        module.parent.mkdir(parents=True)
        (tmp_path / "site/tensorflow/__init__.py").touch()
        module.write_text(
            "CreateDir = RecursivelyCreateDir = lambda path: None\n"
            "WritableFile = lambda path, mode: None\n"
            "create_file_writer_v2 = lambda logdir: 'writer'\n"
        )
    said = run(plan, sys.executable, "-c", TENSORFLOW_PROGRAM)
    noted = Path(plan.pods[0].environment[WRITES_FILE]).read_text().splitlines()
    assert [os.path.relpath(path, tmp_path) for path in noted] == ["code/export", "code/checkpoint", "home/events"]
    assert said == "writer\n"


def test_end_of_run_names_written_paths(plan: Any, tmp_path: Path) -> None:
    before = read_code_times(plan)
    assert describe_writes(plan, before) == ()
    run(plan, sys.executable, "-c", PROGRAM)
    # What no Python writes is seen as well; what people edit, runs and volumes are not the program's.
    run(
        plan,
        "/bin/sh",
        "-c",
        "echo x > read.txt; mkdir -p .git runs/exp-1 claim; touch .git/x edited.py runs/exp-1/log claim/x",
    )
    (warning,) = describe_writes(plan, before)
    places = ", ".join(str(tmp_path / name) for name in ("code/ckpt", "code/moved", "code/read.txt", "home/.cachefile"))
    assert warning.startswith(f"the program wrote {places}: in a pod only volumes and /tmp are writable")


def test_odd_names_are_named_once_in_one_line(plan: Any, tmp_path: Path) -> None:
    before = read_code_times(plan)
    run(plan, sys.executable, "-c", "for name in (b'a\\xfc', b'b\\nc\\rd', 'ü'.encode()): open(name, 'w')")
    (warning,) = describe_writes(plan, before)
    places = ", ".join(f"{tmp_path}/code/{name}" for name in ("a\\udcfc", "b\\nc\\rd", "ü"))
    assert warning.startswith(f"the program wrote {places}: in a pod")


@pytest.mark.parametrize(
    ("count", "named"),
    [
        (20, "w/00, {0}/w/01, {0}/w/02, {0}/w/03, {0}/w/04, {0}/w/05, "),
        (21, "w/ (21 files), {0}/x: in a pod"),
    ],
)
def test_many_written_paths_are_grouped_by_folder(plan: Any, tmp_path: Path, count: int, named: str) -> None:
    folder = f"{tmp_path}/elsewhere"
    paths = [f"{folder}/w/{number:02}" for number in range(count)] + [f"{folder}/x"] * (count > 20)
    Path(plan.pods[0].environment[WRITES_FILE]).write_text("\n".join(paths))
    (warning,) = describe_writes(plan, read_code_times(plan))
    assert warning.startswith(f"the program wrote {folder}/{named.format(folder)}")
    assert " more: " not in warning


def test_folders_beyond_a_sensible_number_are_counted(plan: Any) -> None:
    paths = [f"/a{number:02}/{name}" for number in range(25) for name in "bc"]
    Path(plan.pods[0].environment[WRITES_FILE]).write_text("\n".join(paths))
    (warning,) = describe_writes(plan, read_code_times(plan))
    assert "/a00/ (2 files), /a01/ (2 files)" in warning
    assert "/a19/ (2 files) and 5 more: in a pod" in warning


def test_unwatched_run_names_nothing(plan: Any) -> None:
    before = read_code_times(plan)
    del plan.pods[0].environment[WRITES_FILE]
    run(plan, "/bin/sh", "-c", "echo x > file")
    assert describe_writes(plan, before) == ()
