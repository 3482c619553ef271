"""What a list of checkpoints is made of."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.checkpoints.listing import (
    NO_MARKER,
    Checkpoint,
    CheckpointList,
    find_surplus,
    group_names,
    parse_evaluations,
)


def test_the_latest_is_the_newest_complete_one() -> None:
    found = CheckpointList("f", [Checkpoint(60, NO_MARKER), Checkpoint(40, "x is missing"), Checkpoint(20)])
    assert found.latest == 20
    assert [each.state for each in found.checkpoints] == ["incomplete", "damaged", "complete"]
    assert CheckpointList("f", [Checkpoint(60, NO_MARKER)]).latest is None


def test_names_are_grouped_by_step() -> None:
    names = ["ckpt-2.json", "ckpt-20.index", "ckpt-2_temp", "checkpoint", "ckpt-x.index", "ckpt-02.index"]
    assert group_names(names) == {2: ["ckpt-2.json", "ckpt-2_temp"], 20: ["ckpt-20.index"]}


def test_only_what_is_older_goes() -> None:
    assert find_surplus(40, [80, 20, 60, 40, 0]) == [0, 20]


def test_results_that_are_not_finite_keep_their_word() -> None:
    assert parse_evaluations({"20": {"loss": 1, "error": "NaN"}}) == {20: {"loss": 1.0, "error": "NaN"}}


@pytest.mark.parametrize(
    "document", [[], 5, {"x": {}}, {"20": []}, {"20": {"loss": [1]}}, {"20": {"loss": "much"}}, {"20": {"loss": True}}]
)
def test_other_evaluations_are_refused(document: Any) -> None:
    with pytest.raises(ValueError):
        parse_evaluations(document)
