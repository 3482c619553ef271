"""What a chart's own patterns may cost where a run tells of misread values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from trainchart.actions import run
from trainchart.helm.rendering import ValueOverrides


def test_patterns_that_do_not_end_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: x\nversion: 0.1.0\n")
    pattern = "^" + "(|x|)" * 30 + "y$"
    (tmp_path / "values.schema.json").write_text(
        json.dumps({"properties": {"a": {"type": "string", "pattern": pattern}}})
    )
    monkeypatch.setattr(run, "_MISREAD_SECONDS", 0.2)
    (note,) = run._find_misread(tmp_path, ValueOverrides(files=(("v.yaml", "a: 1.10\n"),)))
    assert str(note).startswith("v.yaml: not compared with what Helm reads, which takes too long")
