"""The code of an image as it lies in a folder: what is left out, what is refused."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from trainchart.archive.lock import LOCK_FILE
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.errors import PlanError, ToolError
from trainchart.images.inputs import require_no_secrets
from trainchart.images.io import code_folder
from trainchart.images.io.code_folder import read_code, read_ignore_rules


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    for name in ("train.py", "lib/model.py", "lib/__pycache__/model.pyc", "data/big.bin", ".git/HEAD", "run.sh"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "run.sh").chmod(0o755)
    return folder


def names(folder: Path) -> list[str]:
    return [file.path for file in read_code(folder, read_ignore_rules(folder))]


def test_ignored_files_stay_out_and_programs_stay_programs(code: Path) -> None:
    (code / ".dockerignore").write_text("data\n")
    assert names(code) == ["run.sh", "train.py", "lib/model.py"]
    files = read_code(code, read_ignore_rules(code))
    assert [file.is_executable for file in files] == [True, False, False]
    assert files[2].content == b"lib/model.py"


def test_what_follows_from_an_image_is_no_part_of_it(code: Path) -> None:
    before = names(code)
    for name in (
        "charts/net/Chart.yaml",
        "charts/net/trainchart.lock.yaml",
        "charts/net/templates/x.yaml",
        ".trainchart/runs/net/out",
        "net.yaml",
    ):
        path = code / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (code / "lib" / ".trainchart-schema.json").write_text("{}")
    files = read_code(code, read_ignore_rules(code), without=frozenset({(code / "net.yaml").resolve()}))
    assert [file.path for file in files] == before


@pytest.mark.parametrize("folder", ["", "lib"])
def test_a_file_named_like_a_lock_makes_no_chart(code: Path, folder: str) -> None:
    before = names(code)
    (code / folder / LOCK_FILE).write_text("mine")
    assert sorted(names(code)) == sorted([*before, f"{folder}/{LOCK_FILE}".lstrip("/")])


def test_packed_charts_stay_out_of_images_other_archives_do_not(code: Path) -> None:
    (code / "dist").mkdir()
    (code / "dist" / "data.tgz").write_bytes(b"\x1f\x8b no archive")
    before = names(code)
    files = {"Chart.yaml": b"apiVersion: v2\nname: net\nversion: 1.0.0\n", "values.yaml": b""}
    (code / "dist" / "other-1.0.0.tgz").write_bytes(pack_chart(files, BuildInfo()).data)
    files[LOCK_FILE] = b"format: 1\n"
    (code / "lib" / "net-1.0.0.tgz").write_bytes(pack_chart(files, BuildInfo()).data)
    for name in ("lib/net-1.0.0.tgz.prov", "lib/index.yaml", "dist/index.yaml"):
        (code / name).write_text(name)
    assert sorted(names(code)) == sorted([*before, "dist/other-1.0.0.tgz", "dist/index.yaml"])


def test_a_list_of_packages_that_would_be_missing_is_refused(code: Path) -> None:
    (code / "requirements.txt").write_text("mlxtend==0.25.0\n")
    assert "requirements.txt" in names(code)
    (code / ".dockerignore").write_text("*.txt\n")
    with pytest.raises(ToolError, match=r"requirements\.txt is excluded from the image by \.dockerignore"):
        names(code)
    (code / "requirements.txt").unlink()
    (code / "requirements.txt").mkdir()
    with pytest.raises(ToolError, match=r"requirements\.txt is not a regular file"):
        names(code)


def test_rules_that_cannot_be_read_are_not_taken_for_none(code: Path) -> None:
    (code / ".dockerignore").symlink_to("gone")
    with pytest.raises(ToolError, match=r"cannot read .*\.dockerignore: no such file"):
        names(code)
    (code / ".dockerignore").unlink()
    (code / ".dockerignore").mkdir()
    with pytest.raises(ToolError, match=r"\.dockerignore is a folder, expected a file"):
        names(code)


def test_included_folder_does_not_bring_back_its_git_folder(code: Path) -> None:
    (code / "lib" / ".git").mkdir()
    (code / "lib" / ".git" / "config").write_text("url = https://me:token@git.example.com/lib")
    (code / ".dockerignore").write_text("*\n!lib\n!.git/HEAD\n")
    assert names(code) == [".git/HEAD", "lib/model.py"]
    (code / ".dockerignore").write_text("*\n!lib\n!lib/.git\n")
    assert names(code) == ["lib/model.py", "lib/.git/config"]


def test_what_nobody_wants_is_not_even_looked_at(code: Path) -> None:
    (code / ".dockerignore").write_text("data\n")
    (code / "data" / "gone").symlink_to("/nowhere")
    assert "data/gone" not in names(code)


def test_inside_links_are_followed_outside_ones_refused_at_once(code: Path, tmp_path: Path) -> None:
    for name, target in (("same.py", "train.py"), ("again", "lib"), ("lib2", "lib")):
        (code / name).symlink_to(target)
    assert {"same.py", "again/model.py", "lib/model.py", "lib2/model.py"} <= set(names(code))
    (tmp_path / "shared").mkdir()
    (code / "shared").symlink_to(tmp_path / "shared")
    (code / "passwords").symlink_to("/etc/passwd")
    (code / "gone").symlink_to("old.py")
    with pytest.raises(ToolError) as refusal:
        names(code)
    assert {problem.where.removeprefix(f"{code}/"): problem.message for problem in refusal.value.problems} == {
        "gone": "leads to old.py, which does not exist",
        "passwords": "leads to /etc/passwd, outside the code folder",
        "shared": f"leads to {tmp_path}/shared, outside the code folder",
    }
    (code / ".dockerignore").write_text("passwords\nshared\ngone\n")
    assert "same.py" in names(code)


def test_what_stays_out_comes_in_by_no_other_name(code: Path) -> None:
    (code / ".env").write_text("PASSWORD=1")
    (code / ".aws").mkdir()
    (code / ".aws" / "credentials").write_text("key")
    (code / "lib" / "settings").symlink_to("../.env")
    (code / "keys").symlink_to(".aws")
    (code / "head").symlink_to("again/HEAD")
    (code / "again").symlink_to(".git")
    (code / ".dockerignore").write_text(".env\n.aws\n!train.py\n")
    with pytest.raises(ToolError) as refusal:
        names(code)
    assert {problem.where.removeprefix(f"{code}/"): problem.message for problem in refusal.value.problems} == {
        "again": "leads to .git, which is excluded from the image",
        "head": "leads to .git/HEAD, which is excluded from the image",
        "keys": "leads to .aws, which is excluded from the image",
        "lib/settings": "leads to .env, which is excluded from the image",
    }
    (code / ".dockerignore").write_text(".env\n.aws\nlib/settings\nkeys\nhead\nagain\n")
    assert not {"keys/credentials", "lib/settings", "head", "again/HEAD"} & set(names(code))


def test_folder_under_two_names_omits_the_same_files_in_both(code: Path) -> None:
    for path in ("lib/tests/data.bin", "lib/notes.txt"):
        (code / path).parent.mkdir(exist_ok=True)
        (code / path).write_text(path)
    (code / "lib2").symlink_to("lib")
    (code / ".dockerignore").write_text("data\nlib/tests\nlib/notes.txt\n")
    assert names(code) == ["run.sh", "train.py", "lib/model.py", "lib2/model.py"]
    (code / ".dockerignore").write_text("data\nlib/tests\nlib/notes.txt\n!lib/tests/data.bin\n")
    assert {"lib/tests/data.bin", "lib2/tests/data.bin"} <= set(names(code))


def test_a_key_behind_a_link_is_refused_where_it_lies(code: Path) -> None:
    (code / ".ssh").mkdir()
    (code / ".ssh" / "config").write_text("Host")
    (code / "keys").symlink_to(".ssh")
    rules = read_ignore_rules(code)
    with pytest.raises(PlanError) as refusal:
        require_no_secrets(read_code(code, rules), rules)
    assert [problem.where for problem in refusal.value.problems] == [".ssh/config"]


def test_a_name_that_is_not_text_is_refused(code: Path) -> None:
    Path(os.fsdecode(bytes(code / "lib") + b"/caf\xe9.txt")).touch()
    with pytest.raises(ToolError, match=r"the name of 'lib/caf.udce9\.txt' is not UTF-8"):
        names(code)


def test_links_to_themselves_are_refused_with_the_others(code: Path) -> None:
    for name, target in (("self", "self"), ("one", "two"), ("two", "one")):
        (code / name).symlink_to(target)
    with pytest.raises(ToolError) as refusal:
        names(code)
    assert {problem.where.removeprefix(f"{code}/") for problem in refusal.value.problems} == {"self", "one", "two"}


def test_a_folder_that_leads_into_itself_ends(code: Path) -> None:
    (code / "one").mkdir()
    (code / "two").mkdir()
    (code / "self").symlink_to(".")
    (code / "one" / "link").symlink_to("../two")
    (code / "two" / "link").symlink_to("../one")
    with pytest.raises(ToolError) as refusal:
        names(code)
    assert {problem.message for problem in refusal.value.problems} == {"leads into a folder that contains it"}
    assert len(refusal.value.problems) == 3


def test_data_is_not_code(code: Path) -> None:
    with pytest.raises(ToolError, match="larger than 0 MiB") as refusal:
        read_code(code, read_ignore_rules(code), limit=5)
    assert ".dockerignore" in refusal.value.hint


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["pipe", "device", "large", "outside"])
def test_rules_are_read_from_a_small_file_only(code: Path, kind: str) -> None:
    path = code / ".dockerignore"
    (code.parent / "secret").write_text("[secret\n")
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "outside":
        path.symlink_to("../secret")
    else:
        path.write_bytes(b"#" * 2_000_000)
    with pytest.raises(ToolError, match=r"\.dockerignore is (neither a file|larger than|a link to \S+, outside)"):
        read_ignore_rules(code)


@pytest.mark.timeout(60)
def test_links_that_multiply_folders_are_refused(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_folder, "TREE_LIMIT", 500)
    for number in range(12):
        (code / f"l{number}").mkdir()
        if number < 11:
            for name in ("a", "b"):
                (code / f"l{number}" / name).symlink_to(f"../l{number + 1}")
    with pytest.raises(ToolError, match="holds more than 500 files and folders") as refusal:
        names(code)
    assert ".dockerignore" in refusal.value.hint


def test_large_sparse_file_is_refused_without_reading_it(code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (code / "data.bin").open("wb") as stream:
        stream.truncate(20 * 1024**3)

    def read(path: Path) -> bytes:
        assert path.name != "data.bin", "it is read whole"
        return b""

    monkeypatch.setattr(Path, "read_bytes", read)
    with pytest.raises(ToolError, match="larger than 256 MiB"):
        names(code)


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_code_that_is_swapped_while_it_is_read_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, secret, path = tmp_path / "code", tmp_path / "secret", tmp_path / "code" / "train.py"
    folder.mkdir()
    secret.write_text("secret")
    path.write_text("good")
    look = code_folder._find_fault

    def swap_after(*given: Any) -> str:
        fault = look(*given)
        path.unlink()
        path.symlink_to(secret) if kind == "link" else os.mkfifo(path)
        return fault

    monkeypatch.setattr(code_folder, "_find_fault", swap_after)
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    with pytest.raises(ToolError):
        read_code(folder, read_ignore_rules(folder))


@pytest.mark.parametrize("swapped", ["a/code/package", "a/code", "a"])
def test_a_folder_of_code_that_is_swapped_is_refused(
    swapped: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one above: where the code lies is known before it is read."""
    folder, package, elsewhere = tmp_path / "a" / "code", "a/code/package", tmp_path / "elsewhere"
    for place, text in ((tmp_path / package, "good"), (elsewhere / package.removeprefix(swapped).strip("/"), "secret")):
        place.mkdir(parents=True)
        (place / "train.py").write_text(text)
    open_file = os.open

    def swap_first(*given: Any, **options: Any) -> int:
        if not (tmp_path / swapped).is_symlink():
            (tmp_path / swapped).rename(tmp_path / "moved")
            (tmp_path / swapped).symlink_to(elsewhere)
        return open_file(*given, **options)

    monkeypatch.setattr(os, "open", swap_first)
    with pytest.raises(ToolError, match="part of the path changed while it was read"):
        read_code(folder, read_ignore_rules(folder))
    with pytest.raises(ToolError, match=r"leads to .* now|links that an image cannot contain"):
        read_code(folder, read_ignore_rules(folder))
