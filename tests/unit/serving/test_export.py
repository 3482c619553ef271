"""Which export of a run is served, and as which version."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.errors import ToolError
from trainchart.serving.export import Export, choose_export, is_in_place, read_step

OLD, NEW, NAMELESS = Export("/a/1", 100, 5.0), Export("/a/2", 200, 9.0), Export("/b", None, 7.0)


def test_the_newest_export_or_that_of_a_step_is_chosen() -> None:
    exports = [NEW, OLD, NAMELESS]
    assert choose_export(exports, None, "exp", goes_on=False) == NEW
    assert choose_export(exports, 100, "exp", goes_on=False) == OLD
    assert (NEW.version, NAMELESS.version, Export("/c", 0, 1.0).version) == (200, 1, 1)


@pytest.mark.parametrize(
    ("exports", "goes_on", "words", "hint"),
    [
        ([], False, "the run exp has exported no model", "trainchart status exp"),
        ([], True, "the run exp has exported no model yet", "trainchart wait exp"),
        ([OLD, NEW], False, "the run exp has no export of step 3", "its exports: 100, 200"),
        ([NAMELESS], False, "the run exp has no export of step 3", "leave --step out"),
    ],
)
def test_an_export_that_is_not_there(exports: list[Export], goes_on: bool, words: str, hint: str) -> None:
    with pytest.raises(ToolError) as refusal:
        choose_export(exports, 3, "exp", goes_on=goes_on)
    assert refusal.value.message == words
    assert hint in refusal.value.hint


@pytest.mark.parametrize(
    ("folder", "record", "step"),
    [
        ("/a/saved_model", {"step": 40}, 40),
        ("/a/1700000000", {}, 1700000000),
        ("/a/7", {"step": 40}, 40),
        ("/a/saved_model", {}, None),
        ("/a/saved_model", {"step": True}, None),
        ("/a/saved_model", {"step": "40"}, None),
        ("/a/saved_model", {"step": 2**63}, None),
        ("/a/99999999999999999999", {}, None),
    ],
)
def test_the_step_of_an_export(folder: str, record: dict[str, Any], step: int | None) -> None:
    assert read_step(folder, record) == step


def test_an_export_under_way_is_passed_over() -> None:
    assert [is_in_place(f"/a/saved_model{end}") for end in ("", ".draft", ".old")] == [True, False, False]
