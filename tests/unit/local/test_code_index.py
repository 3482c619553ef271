"""Which folder holds an image's code on this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.local.io.code_index import index_path, recall_code, remember_code

REPOSITORY = "registry.example.com/ml/mnist"


def test_what_was_remembered_is_recalled(tmp_path: Path) -> None:
    index, code = tmp_path / "share" / "code.json", tmp_path / "code"
    code.mkdir()
    remember_code("other", tmp_path, index)
    remember_code(REPOSITORY, code, index)
    assert recall_code(REPOSITORY, index) == (code,)
    assert recall_code("other", index) == (tmp_path,)
    assert recall_code("unknown", index) == ()
    assert [path.name for path in index.parent.iterdir()] == ["code.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"registry.example.com/ml/mnist": 3}'])
def test_a_broken_index_counts_as_empty_and_is_mended(tmp_path: Path, content: str) -> None:
    index = tmp_path / "code.json"
    index.write_text(content)
    assert recall_code(REPOSITORY, index) == ()
    remember_code(REPOSITORY, tmp_path, index)
    assert recall_code(REPOSITORY, index) == (tmp_path,)


def test_projects_of_one_repository_are_all_known(tmp_path: Path) -> None:
    index, first, second = tmp_path / "code.json", tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        remember_code(REPOSITORY, folder, index)
    assert recall_code(REPOSITORY, index) == (second, first)
    remember_code(REPOSITORY, first, index)
    assert recall_code(REPOSITORY, index) == (first, second)
    shutil.rmtree(first)
    assert recall_code(REPOSITORY, index) == (second,)


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    index, code = tmp_path / "code.json", tmp_path / "code"
    code.mkdir()
    remember_code(REPOSITORY, code, index)
    shutil.rmtree(code)
    with pytest.raises(ToolError) as caught:
        recall_code(REPOSITORY, index)
    assert str(code) in caught.value.message
    assert "--code" in caught.value.hint


def test_a_place_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    remember_code(REPOSITORY, tmp_path, tmp_path / "file" / "code.json")
    assert recall_code(REPOSITORY, tmp_path / "file" / "code.json") == ()


def test_the_index_follows_the_base_directories() -> None:
    assert index_path({"XDG_DATA_HOME": "/srv/data"}) == Path("/srv/data/trainchart/code.json")
    assert index_path({"XDG_DATA_HOME": "relative"}) == Path.home() / ".local/share/trainchart/code.json"
