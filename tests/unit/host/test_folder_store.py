"""A folder as a place for charts: whatever the file system answers is an error that says what and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainchart.errors import PublishError
from trainchart.host.folder_store import FolderStore


def make_store(folder: Path) -> FolderStore:
    return FolderStore(str(folder), folder)


def test_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert make_store(tmp_path / "nowhere").read("index.yaml") is None
    (tmp_path / "file").write_text("")
    assert make_store(tmp_path / "file").read("index.yaml") is None


@pytest.mark.parametrize("reference", ["../secret", "/etc/passwd", "https://charts.example.com/a.tgz"])
def test_only_files_of_the_folder_are_read(tmp_path: Path, reference: str) -> None:
    with pytest.raises(PublishError, match="is outside the folder"):
        make_store(tmp_path).read(reference)


def test_what_the_file_system_refuses_is_told(tmp_path: Path) -> None:
    with pytest.raises(PublishError, match=r"cannot read .*: file name too long"):
        make_store(tmp_path).read(f"{'a' * 300}.tgz")
    (tmp_path / "index.yaml").mkdir()
    with pytest.raises(PublishError, match=r"cannot write .*index\.yaml: it is a folder"):
        make_store(tmp_path).write("index.yaml", b"")
    (tmp_path / "file").write_text("")
    with pytest.raises(PublishError, match=r"cannot make .*: file exists"), make_store(tmp_path / "file").locked():
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "index.yaml"]
