"""New files come all or none, and what a killed call left is in nobody's way."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainchart.errors import ToolError
from trainchart.host import new_files
from trainchart.host.new_files import write_new_files


def test_what_a_killed_call_left_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, schema, spec = tmp_path / "training" / "train.py", tmp_path / "schema.json", tmp_path / "models" / "a.yaml"
    files = {script: b"print(1)\n", schema: b"{}", spec: b"name: a\n"}

    def kill(path: Path, content: bytes) -> None:
        raise SystemExit

    for steps in (0, 1, 2):
        for path in list(files)[:steps]:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(files[path])
        (tmp_path / ".schema.json.x.tmp").touch()  # half written
        write_new_files(files)
        assert {path: path.read_bytes() for path in files} == files
        assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "schema.json", "training"]
        with pytest.raises(ToolError, match="already exist") as refusal:
            write_new_files(files)
        assert len(refusal.value.problems) == 3
        for path in files:
            path.unlink()
    # What was there before a call that fails is not taken back.
    schema.write_bytes(b"{}")
    monkeypatch.setattr(new_files, "_write_new", kill)
    with pytest.raises(SystemExit):
        write_new_files(files)
    assert schema.read_bytes() == b"{}"


def test_what_was_left_is_removed_when_all_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.touch()
    (tmp_path / ".a.yaml.x.tmp").hardlink_to(path)  # killed after its last step but one
    with pytest.raises(ToolError, match="already exist"):
        write_new_files({path: b"name: a\n"})
    assert list(tmp_path.iterdir()) == [path]


def test_other_files_are_never_replaced(tmp_path: Path) -> None:
    script, spec = tmp_path / "train.py", tmp_path / "a.yaml"
    script.write_text("print(2)\n")
    with pytest.raises(ToolError, match="already exist") as refusal:
        write_new_files({script: b"print(1)\n", spec: b"name: a\n"})
    assert [problem.where for problem in refusal.value.problems] == [str(script)]
    assert script.read_text() == "print(2)\n"
    assert not spec.exists()
    script.unlink()
    script.symlink_to("gone")
    with pytest.raises(ToolError, match="already exist"):
        write_new_files({script: b"print(1)\n", spec: b"name: a\n"})
