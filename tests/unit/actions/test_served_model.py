"""Which export `trainchart serve` finds in the folder of a run, whatever its record says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from trainchart.actions.support.served_model import ServedModel, ServeRequest, advise_on_problem, copy_model, find_model
from trainchart.errors import ToolError

RECORD = {"release": "exp", "chart": "my-mnist-0.1.0", "deciding": [], "pods": [], "startedAt": 1000.0}


def add_export(folder: Path, written_at: float, record: object = None) -> None:
    (folder / "assets.extra").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"x")
    os.utime(folder / "saved_model.pb", (written_at, written_at))
    if record is not None:
        (folder / "assets.extra" / "export.json").write_text(json.dumps(record))


def find(runs: Path, step: int | None = None, **changes: Any) -> ServedModel:
    (runs / "exp").mkdir(exist_ok=True)
    (runs / "exp" / "run.json").write_text(json.dumps({**RECORD, **changes}))
    return find_model(ServeRequest("exp", runs, step))


def test_the_newest_export_is_found(tmp_path: Path) -> None:
    claims = tmp_path / "exp" / "claims"
    add_export(claims / "a" / "saved_model", 2000.0, {"step": 40})
    add_export(claims / "b" / "export" / "7", 3000.0)
    add_export(claims / "a" / "saved_model.draft", 4000.0, {"step": 80})
    found = find(tmp_path)
    assert (found.name, found.version, found.source) == ("my-mnist", 7, str(claims / "b" / "export" / "7"))
    assert found.notes == ("the export has no SHA256SUMS, so its files cannot be verified",)
    assert find(tmp_path, step=40).version == 40
    assert find(tmp_path, chart="mnist-0.1.0-rc-1", chartName="mnist").name == "mnist"


def test_an_export_in_a_folder_of_the_users_own_is_found(tmp_path: Path) -> None:
    add_export(tmp_path / "mine" / "new", 2000.0)
    (tmp_path / "mine" / "new" / "SHA256SUMS").touch()
    found = find(tmp_path, options={"claims": {"out": str(tmp_path / "mine")}})
    assert (found.source, found.version, found.notes) == (str(tmp_path / "mine" / "new"), 1, ())


def test_what_was_in_such_a_folder_before_is_not_the_runs(tmp_path: Path) -> None:
    add_export(tmp_path / "mine" / "old", 500.0)
    with pytest.raises(ToolError, match="the run exp has exported no model"):
        find(tmp_path, options={"claims": {"out": str(tmp_path / "mine")}}, startedAt=4e9)


@pytest.mark.parametrize(
    ("changes", "record"),
    [
        ({"chart": "../../etc-1"}, {"step": "many"}),
        ({"chart": 3}, [1]),
        ({"chart": None, "options": {"claims": ["a"]}}, "text"),
        ({"chart": "-1", "options": {"claims": {"a": "\0", "b": 3}}, "startedAt": "now"}, 7),
    ],
)
def test_a_record_of_others_does_no_harm(tmp_path: Path, changes: dict[str, Any], record: object) -> None:
    add_export(tmp_path / "exp" / "claims" / "a" / "saved_model", 2000.0, record)
    found = find(tmp_path, **changes)
    assert (found.name, found.version) == ("exp", 1)


def test_an_export_that_cannot_be_copied_is_named(tmp_path: Path) -> None:
    export = tmp_path / "export"
    add_export(export, 2000.0)
    os.mkfifo(export / "pipe")
    with pytest.raises(ToolError, match=r"cannot copy .*: .*pipe"):
        copy_model(ServedModel("a", 1, str(export), ""), tmp_path / "copy" / "1")


@pytest.mark.parametrize("target", ["/dev/null", "/etc/hostname", "/", ".", "../beside", "variables"])
def test_no_link_leads_out_of_an_export_or_repeats_it(tmp_path: Path, target: str) -> None:
    """A training wrote it: a device has no end, a folder may hold itself, and other files are not the model's."""
    export = tmp_path / "export"
    add_export(export, 2000.0)
    (export / "variables").mkdir()
    (tmp_path / "beside").write_text("secret")
    (export / "link").symlink_to(target)
    with pytest.raises(ToolError, match=r"cannot copy .*link is not a regular file, or is a link that leads elsewhere"):
        copy_model(ServedModel("a", 1, str(export), ""), tmp_path / "copy" / "1")
    assert not (tmp_path / "copy").exists()


def test_a_link_to_a_file_of_the_export_is_copied_as_a_file(tmp_path: Path) -> None:
    export = tmp_path / "export"
    add_export(export, 2000.0)
    (export / "same.pb").symlink_to("saved_model.pb")
    (tmp_path / "chosen").symlink_to("export")
    copy = tmp_path / "copy" / "1"
    copy_model(ServedModel("a", 1, str(tmp_path / "chosen"), ""), copy)
    assert not (copy / "same.pb").is_symlink()
    assert (copy / "same.pb").read_bytes() == (export / "saved_model.pb").read_bytes()


def test_an_export_larger_than_the_disk_is_refused_at_once(tmp_path: Path) -> None:
    export = tmp_path / "export"
    add_export(export, 2000.0)
    with (export / "sparse").open("wb") as file:
        file.truncate(2**43)
    with pytest.raises(ToolError, match=r"it has [0-9]+ bytes, and [0-9]+ are free") as refusal:
        copy_model(ServedModel("a", 1, str(export), ""), tmp_path / "copy" / "1")
    assert "TMPDIR" in refusal.value.hint


@pytest.mark.parametrize(
    ("content", "problem", "advice"),
    [
        ("sha256:1", "the content hash is sha256:2, but sha256:1 is pinned", "--set model.content=sha256:…"),
        ("sha256:1", "the files differ from SHA256SUMS: changed: a", "copy it again, or train again"),
        ("", "SHA256SUMS:1 is not a line of sha256sum", "copy it again, or train again"),
        ("", "saved_model.pb is damaged: Error parsing message", "copy it again, or train again"),
        ("", "Op type not registered 'X'", "the TensorFlow that it was trained with"),
    ],
)
def test_advice_fits_the_reason_of_the_server(content: str, problem: str, advice: str) -> None:
    assert advice in advise_on_problem(ServedModel("a", 1, "/a", "", content), problem)
