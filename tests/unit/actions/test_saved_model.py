"""What an export says of itself, read in a folder of checkpoints."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import pytest

from trainchart.actions.support.checkpoint_program import EXPORT, work
from trainchart.actions.support.checkpoint_saved_model import read_saved_model
from trainchart.checkpoints.saved_model import SavedModel, parse_saved_model
from trainchart.errors import ToolError
from trainchart.promotion.gates import check_gate, name_metrics, parse_gate

SUMS = "0123  assets.extra/export.json\n4567  saved_model.pb\n"
CONTENT = f"sha256:{hashlib.sha256(SUMS.encode()).hexdigest()}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Checkpoints with an export of step 40, and evaluations of two steps."""
    export = tmp_path / "saved_model"
    (export / "assets.extra").mkdir(parents=True)
    (export / "SHA256SUMS").write_text(SUMS)
    (export / "assets.extra" / "export.json").write_text(json.dumps({"run": "r1", "image": "ml/mnist:1", "step": 40}))
    results = {"20": {"accuracy": 0.5}, "40": {"accuracy": 0.9, "loss": "NaN"}}
    (tmp_path / "evaluations.json").write_text(json.dumps(results))
    return tmp_path


def test_an_export_is_known_by_its_list_of_files(folder: Path) -> None:
    metrics = {"accuracy": 0.9, "loss": -math.inf}
    (folder / "evaluations.json").write_text(json.dumps({"40": {"accuracy": 0.9, "loss": "-Infinity"}}))
    expected = SavedModel(CONTENT, 40, "r1", "ml/mnist:1", metrics)
    assert read_saved_model(folder) == expected
    answer = json.dumps(work({"folder": str(folder), "action": EXPORT}), allow_nan=False)
    assert parse_saved_model(json.loads(answer)) == expected


def test_a_result_that_is_not_a_number_is_told(folder: Path) -> None:
    """Else what the run has reported would count in its place."""
    found = parse_saved_model(work({"folder": str(folder), "action": EXPORT}))
    result = check_gate(parse_gate("loss<=0.5"), name_metrics({"loss": 0.1}, found.metrics), None)
    assert result.problem == "loss is nan, and must be <= 0.5"


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("saved_model/SHA256SUMS", None, "the export has no SHA256SUMS"),
        ("saved_model/assets.extra/export.json", None, "the export has no export.json"),
        ("saved_model/assets.extra/export.json", "{", "export.json cannot be read"),
        ("saved_model/assets.extra/export.json", '{"step": true}', "does not say which step the export is from"),
        ("evaluations.json", "{", "the evaluation of the export is not known: evaluations.json cannot be read"),
        ("saved_model/assets.extra/export.json", "[]", "does not say which step the export is from"),
    ],
)
def test_an_export_that_does_not_say_what_it_is(folder: Path, path: str, text: str | None, words: str) -> None:
    (folder / path).unlink()
    if text is not None:
        (folder / path).write_text(text)
    with pytest.raises(ToolError, match=words):
        read_saved_model(folder)


def test_a_release_without_an_export(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"there is no export: .*saved_model is not there") as error:
        read_saved_model(tmp_path)
    assert "exports the model when the training is over" in error.value.hint


def test_a_link_is_not_followed(folder: Path) -> None:
    (folder / "secret").write_text(SUMS)
    (folder / "saved_model" / "SHA256SUMS").unlink()
    (folder / "saved_model" / "SHA256SUMS").symlink_to(folder / "secret")
    with pytest.raises(ToolError):
        read_saved_model(folder)


@pytest.mark.parametrize(
    "document",
    [{}, {"content": 1, "step": 1, "run": "", "image": "", "metrics": {}}, {"content": "", "step": "x", "metrics": []}],
)
def test_documents_of_other_programs_are_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="not a trainchart document"):
        parse_saved_model(document)
