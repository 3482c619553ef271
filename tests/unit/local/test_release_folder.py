"""Names, locks and contents of a release's folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.deep_trees import deep_tree
from trainchart.errors import ToolError
from trainchart.local.io.release_folder import (
    RUN_FILE,
    UNFINISHED_FILE,
    Existing,
    choose_release,
    claim_release,
    open_release,
    read_record,
    write_record,
)


def use(runs: Path, release: str, existing: Existing = Existing.REFUSE) -> Path:
    """Run a release that leaves a claim, a pod folder and a log."""
    with open_release(runs, release, existing) as folder:
        for name in ("claims/ckpt", "pods/chief-0", "logs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        write_record(folder / RUN_FILE, {"release": release, "chart": "mnist-0.1.0", "pods": []})
        (folder / UNFINISHED_FILE).unlink(missing_ok=True)
    return folder


def test_numbers_go_on_after_the_highest(tmp_path: Path) -> None:
    assert choose_release(tmp_path / "none", "mnist") == "mnist-1"
    for name in ("mnist-2", "mnist-10", "mnist-old", "other-99"):
        (tmp_path / name).mkdir()
    assert choose_release(tmp_path, "mnist") == "mnist-11"
    assert choose_release(tmp_path, "M" * 80) == "m" * 48 + "-1"


def test_claimed_names_differ(tmp_path: Path) -> None:
    assert [claim_release(tmp_path / "runs", "mnist") for _ in range(3)] == ["mnist-1", "mnist-2", "mnist-3"]
    assert (tmp_path / "runs" / ".gitignore").read_text() == "*\n"


def test_a_folder_of_the_users_own_gets_no_gitignore(tmp_path: Path) -> None:
    claim_release(tmp_path, "mnist")
    assert not (tmp_path / ".gitignore").exists()


def test_an_existing_release_needs_a_decision(tmp_path: Path) -> None:
    folder = use(tmp_path, "exp-7")
    with pytest.raises(ToolError, match="exists already") as caught:
        use(tmp_path, "exp-7")
    assert "--resume" in caught.value.hint
    assert "--fresh" in caught.value.hint
    assert (folder / "claims/ckpt").is_dir()


def test_resuming_keeps_claims_and_logs_but_not_pods(tmp_path: Path) -> None:
    use(tmp_path, "exp-7")
    with open_release(tmp_path, "exp-7", Existing.RESUME) as folder:
        assert sorted(path.name for path in folder.iterdir()) == ["claims", "logs", RUN_FILE]


def test_a_fresh_run_keeps_nothing(tmp_path: Path) -> None:
    use(tmp_path, "exp-7")
    with open_release(tmp_path, "exp-7", Existing.FRESH) as folder:
        assert [path.name for path in folder.iterdir()] == [UNFINISHED_FILE]


@pytest.mark.parametrize("existing", list(Existing))
@pytest.mark.parametrize("record", [None, "{}", '{"release": "another", "chart": "mnist-0.1.0", "pods": []}', "["])
def test_a_folder_that_no_run_made_is_never_touched(tmp_path: Path, existing: Existing, record: str | None) -> None:
    (tmp_path / "mydata" / "pods").mkdir(parents=True)
    (tmp_path / "mydata" / "pods" / "file").write_text("x")
    if record is not None:
        (tmp_path / "mydata" / RUN_FILE).write_text(record)
    with pytest.raises(ToolError, match=r"left alone|is damaged") as caught, open_release(tmp_path, "mydata", existing):
        pass
    assert "--fresh" not in caught.value.hint
    assert (tmp_path / "mydata" / "pods" / "file").read_text() == "x"


def test_only_what_exists_can_be_resumed(tmp_path: Path) -> None:
    use(tmp_path, "exp-7")
    (tmp_path / "other").mkdir()
    with pytest.raises(ToolError, match="no release exp-8") as caught, open_release(tmp_path, "exp-8", Existing.RESUME):
        pass
    assert caught.value.hint == "did you mean exp-7? releases there: exp-7"
    assert not (tmp_path / "exp-8").exists()
    with pytest.raises(ToolError) as caught, open_release(tmp_path / "none", "exp-8", Existing.RESUME):
        pass
    assert "--runs-dir" in caught.value.hint
    assert not (tmp_path / "none").exists()


def test_a_running_release_is_locked(tmp_path: Path) -> None:
    with (
        open_release(tmp_path, "exp-7", Existing.REFUSE),
        pytest.raises(ToolError, match="running already"),
        open_release(tmp_path, "exp-7", Existing.FRESH),
    ):
        pass
    use(tmp_path, "exp-7")


def test_what_never_ran_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), open_release(tmp_path, "exp-7", Existing.REFUSE) as folder:
        (folder / "pods").mkdir()
        raise RuntimeError("the plan is impossible")
    assert not folder.exists()


def test_a_start_that_was_killed_does_not_keep_the_name(tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        with open_release(tmp_path, "exp-7", Existing.REFUSE) as folder:
            (folder / "pods").mkdir()
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (tmp_path / "exp-7/pods").is_dir()
    use(tmp_path, "exp-7")


@pytest.mark.parametrize("part", ["claims/ckpt", "pods/chief-0"])
def test_a_deep_tree_is_removed_with_its_run(tmp_path: Path, part: str) -> None:
    with deep_tree(use(tmp_path, "exp-7") / part):
        with open_release(tmp_path, "exp-7", Existing.RESUME) as folder:
            assert sorted(path.name for path in folder.iterdir()) == ["claims", "logs", RUN_FILE]
        with open_release(tmp_path, "exp-7", Existing.FRESH) as folder:
            assert [path.name for path in folder.iterdir()] == [UNFINISHED_FILE]
        assert not folder.exists()


@pytest.mark.parametrize("existing", [Existing.REFUSE, Existing.FRESH])
def test_a_removal_that_is_cut_off_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existing: Existing
) -> None:
    folder = use(tmp_path, "exp-7")

    def kill(*_: object, **__: object) -> None:
        raise SystemExit

    # After run.json, and before what is in folders.
    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", kill)
        with pytest.raises(SystemExit), open_release(tmp_path, "exp-7", Existing.FRESH):
            pass
    assert folder.exists()
    assert not (folder / RUN_FILE).exists()
    assert use(tmp_path, "exp-7", existing) == folder
    assert not (folder / UNFINISHED_FILE).exists()


def test_no_folder_is_removed_or_marked_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").touch()
    folder = use(tmp_path / "runs", "exp-7")
    (folder / "claims" / "link").symlink_to(tmp_path / "other")
    (folder / "pods" / "chief-0").rmdir()
    (folder / "pods").rmdir()
    (folder / "pods").symlink_to(tmp_path / "other")
    with open_release(tmp_path / "runs", "exp-7", Existing.RESUME):
        assert not os.path.lexists(folder / "pods")
    (folder / UNFINISHED_FILE).symlink_to(tmp_path / "new")
    use(tmp_path / "runs", "exp-7", Existing.FRESH)
    assert not (tmp_path / "new").exists()
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["precious"]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ToolError) as caught:
        claim_release(tmp_path / "file" / "runs", "mnist")
    assert "--runs-dir" in caught.value.hint


def test_records(tmp_path: Path) -> None:
    write_record(tmp_path / "run.json", {"pods": [1]})
    assert read_record(tmp_path / "run.json") == {"pods": [1]}
    assert read_record(tmp_path / "none.json") == {}
    (tmp_path / "run.json").write_text("[")
    assert read_record(tmp_path / "run.json") == {}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
