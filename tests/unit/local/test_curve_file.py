"""The scalars that a local run keeps in its folder: bounded, and harmless where others have written them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainchart.local.io import curve_file
from trainchart.local.io.curve_file import CURVES_FILE, CurveFile, read_points


def test_points_are_kept_once_a_step_and_read_again(tmp_path: Path) -> None:
    keeper = CurveFile(tmp_path)
    keeper.add("chief-0", 1.0, None, {"loss": 3.0}, None)
    for _ in range(2):
        keeper.add("chief-0", 1.0, 10, {"loss": 2.0}, 50.0)
    CurveFile(tmp_path).add("chief-0", 2.0, 10, {"loss": 2.0}, 50.0)
    (point,) = read_points(tmp_path)
    assert (point.step, point.values) == (10, {"loss": 2.0, "examples/s": 50.0})


def test_metrics_of_the_final_evaluation_are_kept(tmp_path: Path) -> None:
    keeper = CurveFile(tmp_path)
    keeper.add("chief-0", 1.0, 10, {"loss": 2.0}, 50.0)
    keeper.add("chief-0", 2.0, 10, {"test_loss": 1.5}, 50.0)
    keeper.add("chief-0", 3.0, 10, {"test_loss": 1.5, "loss": 2.5}, 50.0)
    CurveFile(tmp_path).add("chief-0", 4.0, 10, {"test_loss": 1.5}, 50.0)
    first, last = read_points(tmp_path)
    assert first.values == {"loss": 2.0, "examples/s": 50.0}
    assert (last.step, last.values) == (10, {"test_loss": 1.5})


def test_a_long_run_keeps_a_bounded_number_of_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_file, "POINTS_KEPT", 10)
    keeper = CurveFile(tmp_path)
    for step in range(1000):
        keeper.add("chief-0", float(step), step, {"loss": 1.0}, None)
    points = read_points(tmp_path)
    assert 10 <= len(points) <= 20
    assert points[-1].step == 999
    assert points[0].step == 0


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\n", b"[]\n5\nnull\n", b'{"step": "x"}\n{"st', b'{"step": 1e400}\n']
)
def test_what_is_not_a_point_is_left_out(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CURVES_FILE).write_bytes(content)
    assert read_points(tmp_path) == []


def test_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text('{"task": "a", "step": 1, "values": {"secret": 1.0}}\n')
    (tmp_path / CURVES_FILE).symlink_to(other)
    CurveFile(tmp_path).add("chief-0", 1.0, 10, {"loss": 2.0}, None)
    assert read_points(tmp_path) == []
    assert "loss" not in other.read_text()


def test_a_pipe_in_its_place_stops_no_training(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / CURVES_FILE)
    CurveFile(tmp_path).add("chief-0", 1.0, 10, {"loss": 2.0}, None)
    assert read_points(tmp_path) == []
