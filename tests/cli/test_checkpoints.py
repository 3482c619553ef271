"""`trainchart checkpoints` on folders that TensorFlow has written, and on folders that someone has tampered with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from trainchart.cli.app import app
from trainchart.errors import ChecksFailed, ClusterError, ToolError, UsageError
from trainchart.host.files import read_bytes
from trainchart.local.io.release_lock import hold_lock

FIXTURE = Path(__file__).parents[1] / "fixtures" / "checkpoints"
DATA = "ckpt-40.data-00000-of-00001"
RUNS = Path(".trainchart/runs")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `ck` in the current one, with steps 20 and 40; no project, and no cluster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    shutil.copytree(FIXTURE, tmp_path / "ck")
    return tmp_path / "ck"


def call(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["checkpoints", *arguments])


def read(*arguments: str) -> Any:
    done = call(*arguments, "--format", "json")
    assert done.stdout, done.exception
    return json.loads(done.stdout)


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def copy_step(folder: Path, step: int, new: int) -> None:
    for name in (f"ckpt-{step}.index", f"ckpt-{step}.data-00000-of-00001", f"ckpt-{step}.json"):
        target = folder / name.replace(str(step), str(new), 1)
        target.write_text((folder / name).read_text().replace(f"-{step}.", f"-{new}.")) if name.endswith(
            ".json"
        ) else shutil.copy(folder / name, target)


def test_a_folder_is_listed_by_default(folder: Path) -> None:
    done = call("./ck")
    assert done.exit_code == 0, done.exception
    lines = done.stdout.splitlines()
    assert lines[0] == "folder  ck"
    assert lines[1] == "origin  model mnist, single, release exp-1 in namespace team, since 2026-11-28T07:20:19Z"
    assert lines[3].split() == ["STEP", "WRITTEN", "SIZE", "ENDING", "METRICS", "STATE"]
    assert "last    loss 0.164819  error NaN  complete, latest" in lines[4]
    assert lines[5].endswith("-       loss 0.5                  complete")
    assert len(lines) == 6
    assert call("list", "./ck").stdout == call("./ck", "list").stdout == done.stdout


def test_the_last_of_several_runs_is_named(folder: Path) -> None:
    origin = json.loads((folder / "origin.json").read_text())
    begun = [{"release": "exp-1"}, {"release": "exp-1", "run": "2", "step": 20, "source": "exp-0", "startedAt": "T"}]
    (folder / "origin.json").write_text(json.dumps({**origin, "runs": begun}))
    line = "runs    2, the last one: release exp-1, run 2, from step 20 of release exp-0, since T"
    assert call("./ck").stdout.splitlines()[2] == line
    assert read("./ck")["origin"]["runs"] == begun


def test_the_list_as_json(folder: Path) -> None:
    found = read("./ck")
    assert found["latest"] == 40
    assert found["origin"] == {
        "format": 1,
        "model": "mnist",
        "strategy": "single",
        "image": "",
        "release": "exp-1",
        "namespace": "team",
        "run": "",
        "attempt": 0,
        "createdAt": "2026-11-28T07:20:19Z",
        "runs": [],
    }
    newest = found["checkpoints"][0]
    assert newest.pop("writtenAt").endswith("Z")
    assert newest == {
        "step": 40,
        "bytes": 3937,
        "state": "complete",
        "problem": "",
        "ending": "last",
        "metrics": {"loss": 0.164819, "error": "NaN"},
    }


def test_damage_that_sizes_show_is_listed(folder: Path) -> None:
    os.truncate(folder / DATA, 100)
    (folder / "ckpt-60.index").write_bytes(b"")
    (folder / "ckpt-80.json").write_text("{")
    found = read("./ck")
    assert [(each["step"], each["state"]) for each in found["checkpoints"]] == [
        (80, "damaged"),
        (60, "incomplete"),
        (40, "damaged"),
        (20, "complete"),
    ]
    assert found["checkpoints"][2]["problem"] == f"{DATA} has 100 bytes instead of 2975"
    assert found["latest"] == 20


def test_checkpoints_of_another_library_are_called_unknown(folder: Path) -> None:
    for path in (folder / "origin.json", *folder.glob("ckpt-*.json")):
        path.unlink(missing_ok=True)
    (problem,) = read("./ck")["problems"]
    assert problem.startswith("there is neither origin.json nor a marker, so the training library did not write")


def test_a_checkpoint_is_shown_with_variables_and_files(folder: Path) -> None:
    shown = call("show", "./ck", "20").stdout
    assert "149 in 14 variables" in shown
    assert "dense_2/kernel" in shown and "[4, 8]" in shown
    assert "ckpt-20.data-00000-of-00001  2.9 KiB  2,975" in shown
    whole = read("show", "./ck", "20")
    assert whole["files"] == {"ckpt-20.data-00000-of-00001": 2975, "ckpt-20.index": 962}
    assert whole["variables"][0]["type"] == "float32" and whole["variables"][0]["shape"] == [4, 8]
    error = call("show", "./ck", "30").exception
    assert isinstance(error, ToolError) and error.hint == "steps there: 40, 20"


def test_whole_checkpoints_pass_verification(folder: Path) -> None:
    done = call("verify", "./ck")
    assert done.exit_code == 0, done.exception
    assert done.stdout.splitlines() == [
        "step 40: every byte is as it was written",
        "step 20: every byte is as it was written",
        "a restart restores step 40",
    ]


def test_every_flipped_byte_is_found_with_its_file(folder: Path) -> None:
    for name in (DATA, "ckpt-40.index"):
        content = (folder / name).read_bytes()
        for place in range(0, len(content), 61):
            flip(folder / name, place)
            found = read("verify", "./ck", "40")
            assert found["checkpoints"][0]["problem"].startswith(f"{name}: "), place
            assert found["restart"] == 20
            (folder / name).write_bytes(content)
    assert read("verify", "./ck", "40")["restart"] == 40


def test_damage_ends_verification_with_code_6(folder: Path) -> None:
    flip(folder / DATA, 0)
    done = call("verify", "./ck")
    assert isinstance(done.exception, ChecksFailed)
    assert done.exception.message == "1 of 2 checkpoints in ck cannot be restored"
    assert done.exception.problems[0].message.startswith(f"step 40: {DATA}: the bytes 0 to ")
    assert "a restart restores step 20" in done.stdout
    # The one that was asked for is whole; the restart is the same.
    asked = call("verify", "./ck", "20")
    assert asked.exit_code == 0, asked.exception
    flip(folder / "ckpt-20.index", 5)
    assert "a restart fails: no checkpoint can be read" in call("verify", "./ck").stdout


def test_what_a_training_removes_meanwhile_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_slowly(path: Path, **options: Any) -> bytes:
        if path.name == "ckpt-40.json":
            for part in folder.glob("ckpt-20*"):
                part.unlink()
        return read_bytes(path, **options)

    monkeypatch.setattr("trainchart.actions.support.checkpoint_folder.read_bytes", read_slowly)
    assert [each["step"] for each in read("./ck")["checkpoints"]] == [40]


def test_an_empty_folder_starts_over(folder: Path) -> None:
    (folder.parent / "empty").mkdir()
    assert "no checkpoints" in call("./empty").stdout
    assert call("verify", "./empty").stdout == "a restart starts over: there is no checkpoint\n"


def test_an_export_is_a_folder_to_start_from(folder: Path) -> None:
    assert call("export", "./ck", "20", "start").exit_code == 0
    assert sorted(path.name for path in Path("start").iterdir()) == [
        "checkpoint",
        *("ckpt-20.data-00000-of-00001", "ckpt-20.index", "ckpt-20.json"),
        "origin.json",
    ]
    for path in Path("start").glob("ckpt-*"):
        assert path.read_bytes() == (folder / path.name).read_bytes()
        assert path.stat().st_mtime_ns == (folder / path.name).stat().st_mtime_ns
    assert 'model_checkpoint_path: "ckpt-20"' in Path("start/checkpoint").read_text()
    assert read("verify", "./start")["restart"] == 20
    error = call("export", "./ck", "20", "start").exception
    assert isinstance(error, ToolError) and "is not empty" in error.message


@pytest.mark.parametrize("name", [DATA, "ckpt-40.index"])
def test_a_damaged_checkpoint_is_not_exported(folder: Path, name: str) -> None:
    flip(folder / name, 100)
    error = call("export", "./ck", "40", "start").exception
    assert isinstance(error, ChecksFailed) and name in error.message
    assert sorted(path.name for path in folder.parent.iterdir()) == ["ck"]


def test_a_killed_export_leaves_no_half_of_one(folder: Path) -> None:
    """It is killed while it copies a large file, at whatever place, and the next export succeeds."""
    marker = json.loads((folder / "ckpt-40.json").read_text())
    marker["files"]["ckpt-40.large"] = 400_000_000
    (folder / "ckpt-40.json").write_text(json.dumps(marker))
    with (folder / "ckpt-40.large").open("wb") as file:
        file.truncate(400_000_000)
    command = [sys.executable, "-m", "trainchart", "checkpoints", "export", "./ck", "40", "start"]
    process = subprocess.Popen(command)
    staged = folder.parent / ".start.trainchart-new" / "ckpt-40.large"
    deadline = time.monotonic() + 60
    while not staged.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not Path("start").exists()
    assert call("export", "./ck", "40", "start").exit_code == 0
    assert sorted(path.name for path in folder.parent.iterdir()) == ["ck", "start"]


def test_pruning_asks_and_says_what_it_removes(folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert read("prune", "./ck", "--keep", "1", "--dry-run")["removed"] == [20]
    error = call("prune", "./ck", "--keep", "1").exception
    assert isinstance(error, UsageError) and "--yes" in error.hint
    assert sorted(folder.iterdir()) == before
    done = call("prune", "./ck", "--keep", "1", "--yes")
    assert done.stdout.startswith("removed 1 checkpoint (step 20) in ck (")
    assert not list(folder.glob("ckpt-20*")) and len(list(folder.glob("ckpt-40*"))) == 3
    assert "nothing to remove" in call("prune", "./ck", "--keep", "1", "--yes").stdout


def test_markers_are_removed_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    monkeypatch.setattr(
        "trainchart.actions.support.checkpoint_work.remove_tree", lambda path: removed.append(path.name)
    )
    copy_step(folder, 20, 10)
    assert read("prune", "./ck", "--keep", "1", "--yes")["removed"] == [10, 20]
    assert len(removed) == 6
    assert (removed[0], removed[3]) == ("ckpt-10.json", "ckpt-20.json")


def test_what_is_neither_run_nor_folder_is_a_release(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    monkeypatch.setenv("KUBECONFIG", str(folder.parent / "kubeconfig"))
    done = call("exp-7")
    assert isinstance(done.exception, ClusterError) and "context" in done.exception.message
    assert "looking on the cluster" in done.stderr


@pytest.mark.parametrize("option", ["--namespace=team", "--context=lab"])
def test_a_namespace_or_context_means_a_release(folder: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    """Also where a local run and a folder have that name."""
    make_run(folder)
    (folder.parent / "exp-1").mkdir()
    (folder.parent / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    monkeypatch.setenv("KUBECONFIG", str(folder.parent / "kubeconfig"))
    assert call("exp-1").exit_code == 0
    error = call("list", "exp-1", option).exception
    assert isinstance(error, ClusterError)
    error = call("list", option).exception
    assert isinstance(error, ToolError) and error.message == "name the release"


def test_pruning_counts_whole_checkpoints_only(folder: Path) -> None:
    copy_step(folder, 20, 10)
    flip(folder / DATA, 7)
    assert read("prune", "./ck", "--keep", "1", "--dry-run") == {
        "folder": "ck",
        "kept": [20],
        "removed": [10],
        "bytes": sum(path.stat().st_size for path in folder.glob("ckpt-10*")),
        "isDryRun": True,
    }
    assert read("prune", "./ck", "--keep", "3", "--yes")["removed"] == []


def test_half_a_checkpoint_goes_with_the_old_ones(folder: Path) -> None:
    (folder / "ckpt-5_temp").mkdir()
    (folder / "ckpt-5_temp" / "part").write_text("x")
    (folder / "ckpt-6.index").symlink_to(folder.parent)
    assert read("prune", "./ck", "--keep", "2", "--yes")["removed"] == [5, 6]
    assert folder.parent.is_dir() and not list(folder.glob("ckpt-[56]*"))


def test_a_folder_in_use_is_not_pruned(folder: Path) -> None:
    owners = folder / ".trainchart" / "owners"
    owners.mkdir(parents=True)
    (owners / "exp-7-mnist-worker-0.owner").write_text("{}")
    error = call("prune", "./ck", "--keep", "1", "--yes").exception
    assert isinstance(error, ToolError) and error.message == "ck is in use"
    assert error.problems[0].message == "pod exp-7-mnist-worker-0 may still train there"
    assert (folder / "ckpt-20.json").exists()


def make_run(claim: Path) -> None:
    run = RUNS / "exp-1"
    run.mkdir(parents=True)
    pods = [{"label": "worker-0", "name": "exp-1-mnist-worker-0", "role": "worker"}]
    record = {"release": "exp-1", "chart": "mnist-0.1.0", "pods": pods, "checkpoints": str(claim)}
    (run / "run.json").write_text(json.dumps(record))


def test_a_local_run_has_its_folder(folder: Path) -> None:
    make_run(folder)
    assert read("exp-1")["latest"] == 40
    assert read()["latest"] == 40, "the run that was started last"
    owners = folder / ".trainchart" / "owners"
    owners.mkdir(parents=True)
    (owners / "exp-1-mnist-worker-0.owner").write_text("{}")
    with hold_lock(RUNS, "exp-1"):
        error = call("prune", "exp-1", "--keep", "1", "--yes").exception
        assert isinstance(error, ToolError) and error.message == "exp-1 is running"
    # It was killed, and left the file of its pod.
    assert read("prune", "exp-1", "--keep", "1", "--yes")["removed"] == [20]


def test_a_foreign_record_prunes_nothing_outside_of_its_project(folder: Path, tmp_path_factory: Any) -> None:
    mine = tmp_path_factory.mktemp("mine") / "ck"
    shutil.copytree(folder, mine)
    make_run(mine)
    assert read("exp-1")["latest"] == 40
    error = call("prune", "exp-1", "--keep", "1", "--yes").exception
    assert isinstance(error, ToolError) and error.message.endswith(f"checkpoints are in {mine}, outside this project")
    assert error.hint == f"if that is correct, name the folder: trainchart checkpoints prune {mine} --keep 1"
    assert (mine / "ckpt-20.json").exists()
    assert read("prune", str(mine), "--keep", "1", "--yes")["removed"] == [20]


@pytest.mark.parametrize("link", [".trainchart", ".trainchart/runs", ".trainchart/runs/exp-1"])
def test_links_of_a_project_do_not_move_where_it_ends(folder: Path, tmp_path_factory: Any, link: str) -> None:
    mine = tmp_path_factory.mktemp("mine") / "ck"
    shutil.copytree(folder, mine)
    make_run(mine)
    Path(link).rename("real")
    Path(link).symlink_to(Path("real").absolute())
    error = call("prune", "exp-1", "--keep", "1", "--yes").exception
    assert isinstance(error, ToolError)
    assert error.message.endswith(f"checkpoints are in {mine}, outside this project")


def test_runs_outside_of_projects_prune_only_their_folder(folder: Path) -> None:
    make_run(folder)
    elsewhere = Path("runs").absolute()
    RUNS.rename(elsewhere)
    given = ("prune", "exp-1", "--runs-dir", "runs", "--keep", "1", "--yes")
    error = call(*given).exception
    assert isinstance(error, ToolError) and error.message.endswith(f"are in {folder}, outside {elsewhere}")
    folder.rename(elsewhere / "exp-1" / "ck")
    record = json.loads((elsewhere / "exp-1" / "run.json").read_text())
    (elsewhere / "exp-1" / "run.json").write_text(json.dumps({**record, "checkpoints": "runs/exp-1/ck"}))
    assert read(*given)["removed"] == [20]


def test_a_run_of_an_earlier_version_is_found_by_its_claim(folder: Path) -> None:
    make_run(folder)
    record = json.loads((RUNS / "exp-1" / "run.json").read_text())
    (RUNS / "exp-1" / "run.json").write_text(json.dumps({**record, "checkpoints": "/gone"}))
    error = call("exp-1").exception
    assert isinstance(error, ToolError) and error.message == "the run exp-1 keeps no checkpoints"
    shutil.copytree(FIXTURE, RUNS / "exp-1" / "claims" / "exp-1-mnist-checkpoints")
    assert read("exp-1")["latest"] == 40


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("./gone", "cannot read gone: no such file or directory"),
        ("./ck/origin.json", "cannot read ck/origin.json: not a directory"),
        ("gone", "there is no local run 'gone' in"),
        ("gs://bucket/run", "gs://bucket/run is in an object store"),
    ],
)
def test_what_is_no_folder_is_named(folder: Path, target: str, message: str) -> None:
    error = call(target).exception
    assert isinstance(error, ToolError) and message in error.message


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [make_pipe, make_link, Path.mkdir], ids=["pipe", "link", "folder"])
@pytest.mark.parametrize("name", [DATA, "ckpt-40.index", "ckpt-40.json", "origin.json", "evaluations.json"])
def test_no_link_is_followed_and_no_pipe_waited_for(folder: Path, name: str, make: Callable[[Path], None]) -> None:
    (folder / name).unlink()
    make(folder / name)
    found = read("./ck")
    if name.startswith("ckpt"):
        assert (found["latest"], found["checkpoints"][0]["state"]) == (20, "damaged")
        assert name in found["checkpoints"][0]["problem"]
        assert read("verify", "./ck")["restart"] == 20
        assert isinstance(call("export", "./ck", "40", "start").exception, ChecksFailed)
    else:
        assert found["latest"] == 40
        assert found["problems"][0].startswith(f"{name} cannot be read: ")


@pytest.mark.timeout(60)
def test_many_names_and_deep_files_take_bounded_time(folder: Path) -> None:
    for number in range(100, 3100):
        (folder / f"ckpt-{number}.json").write_text("[" * 50_000)
    for number in range(20_000):
        (folder / f"{number}.index").touch()
    (folder / "origin.json").write_text("[" * 60_000)
    (folder / "evaluations.json").write_text("{" * 500_000)
    (folder / "ckpt-9\x1b[31m.json").write_text("{}")
    with (folder / "ckpt-5000.json").open("wb") as file:
        file.truncate(10**12)
    found = read("./ck")
    assert (len(found["checkpoints"]), found["omitted"]) == (1000, 2003)
    assert found["checkpoints"][0]["problem"] == "ckpt-5000.json is too large to be a marker"
    assert len(found["problems"]) == 2


def test_a_marker_names_no_files_elsewhere(folder: Path) -> None:
    marker = json.loads((folder / "ckpt-40.json").read_text())
    marker["files"] = {"../secret": 6, "ckpt-40.index": 962}
    (folder.parent / "secret").write_text("secret")
    (folder / "ckpt-40.json").write_text(json.dumps(marker))
    assert read("./ck")["checkpoints"][0]["problem"] == "../secret is missing"
    marker["files"] = {}
    (folder / "ckpt-40.json").write_text(json.dumps(marker))
    assert read("./ck")["checkpoints"][0]["problem"] == "ckpt-40.json does not name the index"
