"""Trees of any depth are walked as os.walk does, and removed as shutil.rmtree does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.deep_trees import deep_tree
from trainchart.host.trees import remove_tree, walk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Give a folder with files, links to files and folders, and a pipe."""
    folder = tmp_path / "tree"
    for name in ("a/b/c", "a/d", "e"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").touch()
    (folder / "a" / "link").symlink_to("../e")
    (folder / "gone").symlink_to("nowhere")
    os.mkfifo(folder / "e" / "pipe")
    return folder


@pytest.mark.parametrize("follow_links", [False, True])
def test_a_tree_is_walked_as_by_python(tree: Path, follow_links: bool) -> None:
    def prune(parent: str, folders: list[str], names: list[str]) -> tuple[str, list[str], list[str]]:
        folders[:] = sorted(name for name in folders if name != "d")
        return parent, list(folders), sorted(names)

    found = [prune(*step) for step in walk(tree, follow_links=follow_links)]
    assert found == [prune(*step) for step in os.walk(tree, followlinks=follow_links)]


def test_a_folder_that_cannot_be_read_is_passed_over_or_reported(tmp_path: Path) -> None:
    errors: list[OSError] = []
    assert list(walk(tmp_path / "none")) == []
    assert list(walk(tmp_path / "none", on_error=errors.append)) == []
    assert isinstance(errors[0], FileNotFoundError)


def test_a_deep_tree_is_walked_and_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    with deep_tree(top):
        assert sum(len(names) for _, _, names in walk(top)) == 250
        remove_tree(top)
        assert list(tmp_path.iterdir()) == []


def test_a_tree_of_too_long_paths_is_walked_and_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    with deep_tree(top, name="d" * 200):
        assert 10 < sum(len(names) for _, _, names in walk(top)) < 250
        remove_tree(top)
        assert list(tmp_path.iterdir()) == []


def test_links_are_removed_and_not_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").touch()
    (tree / "a" / "b" / "other").symlink_to(tmp_path / "other")
    remove_tree(tree)
    (tmp_path / "link").symlink_to(tmp_path / "other")
    remove_tree(tmp_path / "link")
    remove_tree(tmp_path / "none")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["precious"]
