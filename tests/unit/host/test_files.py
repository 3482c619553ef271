"""Folders and files are replaced whole or not at all, and only what is ours."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.host import files
from trainchart.host.files import read_bytes, read_text, read_tree, tidy_tree, write_file, write_tree

OLD = {"trainchart.lock.yaml": b"old", "templates/a.yaml": b"old"}
NEW = {"trainchart.lock.yaml": b"new", "templates/b.yaml": b"new", "ci/x-values.yaml": b""}


def is_ours(folder: Path) -> bool:
    return (folder / "trainchart.lock.yaml").is_file()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "charts" / "mnist"
    write_tree(folder, OLD, is_ours=is_ours)
    return folder


def assert_old_tree_alone(target: Path) -> None:
    assert read_tree(target) == dict(sorted(OLD.items()))
    assert [entry.name for entry in target.parent.iterdir()] == ["mnist"]


def test_a_tree_is_replaced_whole(target: Path) -> None:
    assert_old_tree_alone(target)
    write_tree(target, NEW, is_ours=is_ours)
    assert read_tree(target) == dict(sorted(NEW.items()))
    assert [entry.name for entry in target.parent.iterdir()] == ["mnist"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_tree(tmp_path / "empty", NEW, is_ours=is_ours)
    assert set(read_tree(tmp_path / "empty")) == set(NEW)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("years of work")
    with pytest.raises(ToolError, match="was not written by trainchart"):
        write_tree(tmp_path, NEW, is_ours=is_ours)
    assert thesis.read_text() == "years of work"
    with pytest.raises(ToolError, match="is a file, expected a folder"):
        write_tree(thesis, NEW, is_ours=is_ours)


def test_a_full_disk_leaves_the_old_tree(target: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(ToolError, match="cannot write"):
            write_tree(target, {**NEW, "values.yaml": b"x" * 5000}, is_ours=is_ours)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert_old_tree_alone(target)


def test_ctrl_c_between_the_two_renames_leaves_the_old_tree(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def interrupted(self: Path, other: Path) -> Path:
        if self.name.endswith("new"):
            raise KeyboardInterrupt
        return rename(self, other)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_tree(target, NEW, is_ours=is_ours)
    assert_old_tree_alone(target)


def test_what_a_killed_attempt_left_is_put_right(target: Path) -> None:
    # Killed between the renames: the old tree is retired, the new one staged, and nothing at the target.
    target.rename(target.with_name(".mnist.trainchart-old"))
    staged = target.with_name(".mnist.trainchart-new")
    staged.mkdir()
    (staged / "half").write_text("")
    with pytest.raises(ToolError):
        write_tree(target, {"a": b"", "a/b": b""}, is_ours=is_ours)
    assert_old_tree_alone(target)


def test_a_removal_that_was_cut_off_is_finished(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink = os.unlink

    def unlink_and_die(path: str, **options: int) -> None:
        unlink(path, **options)
        if path == "trainchart.lock.yaml":
            raise SystemExit

    # Killed while the old tree is removed, which is no tree of ours any more.
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", unlink_and_die)
        with pytest.raises(SystemExit):
            write_tree(target, NEW, is_ours=is_ours)
    (left,) = {*target.parent.iterdir()} - {target}
    (left / "rest").touch()
    assert set(read_tree(target)) == set(NEW)
    # What is left is no tree: it is not taken back where the new one is removed.
    shutil.rmtree(target)
    write_tree(target, NEW, is_ours=is_ours)
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert set(read_tree(target)) == set(NEW)


@pytest.mark.parametrize("end", ["new", "old", "gone"])
def test_leftovers_of_a_tree_are_removed(target: Path, end: str) -> None:
    before = read_tree(target)
    left = target.with_name(f".mnist.trainchart-{end}")
    left.mkdir()
    (left / "half").touch()
    tidy_tree(target)
    assert [path.name for path in target.parent.iterdir()] == [target.name]
    assert read_tree(target) == before


@pytest.mark.timeout(20)
def test_a_pipe_that_appears_after_a_check_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "values.yaml"
    os.mkfifo(path)
    monkeypatch.setattr(Path, "is_fifo", lambda self: False)
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        read_bytes(path)
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        read_bytes(path, follow_links=False)


def test_a_link_is_followed_unless_it_may_not_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a")
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(tmp_path / "link") == b"a"
    with pytest.raises(ToolError, match="link is a link"):
        read_bytes(tmp_path / "link", follow_links=False)


def test_a_pipe_of_the_shell_is_read() -> None:
    end, other = os.pipe()
    os.write(other, b"a: 1")
    os.close(other)
    assert read_bytes(Path(f"/dev/fd/{end}")) == b"a: 1"
    os.close(end)


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot write /proc/trainchart-test"):
        write_tree(Path("/proc/trainchart-test"), NEW, is_ours=is_ours)
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolError, match="cannot write"):
        write_tree(tmp_path / "file" / "chart", NEW, is_ours=is_ours)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "", "a\0b"])
def test_no_file_lands_outside(tmp_path: Path, name: str) -> None:
    with pytest.raises(ToolError, match="not a relative path inside"):
        write_tree(tmp_path / "chart", {name: b""}, is_ours=is_ours)
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_a_tree_stays_a_link(target: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(target)
    write_tree(link, NEW, is_ours=is_ours)
    assert link.is_symlink()
    assert set(read_tree(target)) == set(NEW)


def test_two_writers_at_once_leave_one_whole_tree(target: Path) -> None:
    trees = [{"trainchart.lock.yaml": b"", **{f"f{n}": bytes([tree]) for n in range(30)}} for tree in range(2)]
    threads = [
        threading.Thread(target=lambda tree=tree: [write_tree(target, tree, is_ours=is_ours) for _ in range(10)])
        for tree in trees
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_tree(target) in [dict(sorted(tree.items())) for tree in trees]
    assert [entry.name for entry in target.parent.iterdir()] == ["mnist"]


def test_write_file_is_atomic_and_keeps_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "new" / "x.tgz"
    write_file(path, b"one")
    write_file(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in path.parent.iterdir()] == ["x.tgz"]
    reference = tmp_path / "reference"
    reference.write_text("")
    assert path.stat().st_mode == reference.stat().st_mode


def test_write_file_failing_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "x.tgz"
    write_file(path, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(ToolError, match="cannot write"):
            write_file(path, b"n" * 500)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.tgz"]
    with pytest.raises(ToolError, match="cannot write"):
        write_file(tmp_path, b"")


def test_reading_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="no such file") as missing:
        read_bytes(tmp_path / "gone.yaml")
    assert "spelling" in missing.value.hint
    with pytest.raises(ToolError, match="is a folder, expected a file"):
        read_bytes(tmp_path)
    (tmp_path / "latin").write_bytes(b"first\nm\xfcller\n")
    with pytest.raises(ToolError, match="latin:2: not UTF-8"):
        read_text(tmp_path / "latin")
    (tmp_path / "large").write_bytes(b"x" * 11)
    assert read_bytes(tmp_path / "large", limit=11) == b"x" * 11
    with pytest.raises(ToolError, match="larger than 10 bytes"):
        read_bytes(tmp_path / "large", limit=10)
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_text(tmp_path / "bom") == "a: 1\n"


@pytest.mark.timeout(20)
def test_devices_are_not_read() -> None:
    with pytest.raises(ToolError, match="/dev/zero is neither a file nor a folder"):
        read_bytes(Path("/dev/zero"))
    assert read_bytes(Path(os.devnull)) == b""


def test_a_tree_with_a_pipe_or_a_dangling_link_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ToolError, match="neither a file nor a folder"):
        read_tree(tmp_path)
    (tmp_path / "pipe").unlink()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(ToolError, match="which cannot be read"):
        read_tree(tmp_path)
    with pytest.raises(ToolError, match="is not a folder"):
        read_tree(tmp_path / "gone")


def test_links_inside_of_a_tree_are_followed(tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    (chart / "shared").mkdir(parents=True)
    (chart / "shared" / "a.yaml").write_text("a")
    (chart / "templates").symlink_to("shared")
    (chart / "b.yaml").symlink_to("shared/a.yaml")
    (tmp_path / "link").symlink_to(chart)
    expected = dict.fromkeys(("b.yaml", "shared/a.yaml", "templates/a.yaml"), b"a")
    assert read_tree(chart) == expected
    assert read_tree(tmp_path / "link") == expected


@pytest.mark.parametrize("name", ["file", "folder"])
def test_links_out_of_a_tree_are_refused(name: str, tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    chart.mkdir()
    (tmp_path / "file").write_text("a secret")
    (tmp_path / "folder").mkdir()
    (chart / "link").symlink_to(f"../{name}")
    with pytest.raises(ToolError, match="outside "):
        read_tree(chart)


def test_links_in_circles_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "link").symlink_to(f"../{other}")
    with pytest.raises(ToolError, match="a folder that contains it"):
        read_tree(tmp_path)
    (tmp_path / "a" / "link").unlink()
    (tmp_path / "a" / "self").symlink_to("self")
    with pytest.raises(ToolError, match="which cannot be read"):
        read_tree(tmp_path)


def test_links_that_make_many_files_of_few_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "TREE_LIMIT", 100)
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        for name in ("x", "y"):
            if number:
                (tmp_path / str(number) / name).symlink_to(f"../{number - 1}")
    with pytest.raises(ToolError, match="more than 100 files"):
        read_tree(tmp_path)


def test_only_a_killed_writers_leftovers_are_removed(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom trainchart.host import files\n"
        "files.os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_file(Path(sys.argv[1]), b'new')\n"
    )
    target = tmp_path / "a.yaml"
    subprocess.run([sys.executable, "-c", script, str(target)], check=False)
    left = [path.name for path in tmp_path.iterdir()]
    assert len(left) == 1
    assert left[0].startswith(".a.yaml.")
    handle, living = files.make_temporary(tmp_path, ".a.yaml.")
    (tmp_path / ".a.yaml.mine").touch()
    write_file(target, b"newer")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([living.name, ".a.yaml.mine", "a.yaml"])
    os.close(handle)
    write_file(target, b"newest")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.yaml.mine", "a.yaml"]


def test_a_lock_of_another_program_is_waited_for_and_then_named(tmp_path: Path) -> None:
    with (
        files.locked(tmp_path),
        pytest.raises(ToolError, match=f"another program has locked {tmp_path} .process {os.getpid()}") as refusal,
        files.locked(tmp_path, wait_seconds=0.2),
    ):
        pass
    assert "for more than 0 seconds" in refusal.value.message
    with files.locked(tmp_path, wait_seconds=0):
        pass


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_file_that_is_swapped_while_a_tree_is_read_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, secret, path = tmp_path / "chart", tmp_path / "secret", tmp_path / "chart" / "values.yaml"
    folder.mkdir()
    secret.write_text("secret")
    path.write_text("good")
    open_inside = files.open_inside

    def swap_first(root: Path, target: Path) -> int:
        path.unlink()
        path.symlink_to(secret) if kind == "link" else os.mkfifo(path)
        return open_inside(root, target)

    monkeypatch.setattr(files, "open_inside", swap_first)
    problem = ": part of the path changed while it was read" if kind == "link" else " is neither a file nor a folder"
    with pytest.raises(ToolError, match=f"{path}{problem}"):
        read_tree(folder)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_folder_swapped_while_a_tree_is_read_is_refused(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, elsewhere = tmp_path / "chart", tmp_path / "elsewhere"
    for place, text in ((folder / "files" / "below", "good"), (elsewhere / "below", "secret")):
        place.mkdir(parents=True)
        (place / "key").write_text(text)

    def swap() -> None:
        if not (folder / "files").is_symlink():
            (folder / "files").rename(tmp_path / "moved")
            (folder / "files").symlink_to(elsewhere)

    # Before a file of the folder is looked at, or after that, when it is read.
    look, open_file = Path.is_file, os.open
    if moment == "before":
        monkeypatch.setattr(Path, "is_file", lambda self: (swap(), look(self))[1])
    else:
        monkeypatch.setattr(os, "open", lambda *given, **options: (swap(), open_file(*given, **options))[1])
    with pytest.raises(ToolError, match=r"below/key(: part of the path changed| is now a link)"):
        read_tree(folder)
