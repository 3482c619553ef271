"""Which checkpoints are complete, whose they are, which may go, and when a training has stalled."""

from __future__ import annotations

import math

import pytest

from trainchart_training.saving.catalogue import (
    EARLY,
    LAST,
    Marker,
    VariableShape,
    belongs_to,
    dump_marker,
    find_damage,
    find_difference,
    find_expired,
    find_steps,
    has_stalled,
    parse_marker,
)

KERNEL = VariableShape("dense/kernel", "float32", (64, 10))
BIAS = VariableShape("dense/bias", "float32", (10,))
MARKER = Marker(200, [KERNEL, BIAS], {"ckpt-200.index": 12, "ckpt-200.data-00000-of-00001": 345})


def test_a_marker_survives_its_file() -> None:
    assert parse_marker(dump_marker(MARKER)) == MARKER


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"step": 1}',
        '{"step": 1, "ending": "", "files": 3, "variables": []}',
        '{"step": 1e999, "ending": "", "files": {}, "variables": []}',
        '{"step": 1, "ending": "", "files": {}, "variables": [["kernel", "float32", [[2]]]]}',
        '{"step": 1, "ending": "", "files": {}, "variables": [["kernel", 5, [2]]]}',
        '{"step": 1, "ending": "", "files": {}, "variables": [["kernel", "float32"]]}',
        f'{{"step": {2**63}, "ending": "", "files": {{}}, "variables": []}}',
        '{"step": 1, "ending": "another", "files": {}, "variables": []}',
        '{"step": 1, "ending": [], "files": {}, "variables": []}',
        '{"step": 1, "ending": "", "files": {"a": -1}, "variables": []}',
        f'{{"step": 1, "ending": "", "files": {{}}, "variables": [["kernel", "float32", [{2**63}]]]}}',
        f'{{"step": 1, "ending": "", "files": {{}}, "variables": [["kernel", "float32", {[1] * 255}]]}}',
        '{"step": 1, "ending": "", "files": {}, "variables": [' + '["", "", []],' * 100_000 + '["", "", []]]}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:60],
)
def test_half_a_marker_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        parse_marker(text)


def test_steps_are_those_with_a_marker_the_newest_first() -> None:
    names = ["ckpt-9.json", "ckpt-1000.json", "ckpt-200.index", "ckpt-300.json.draft", "checkpoint", "logs"]
    assert find_steps(names) == [1000, 9]
    # The marker of a step has one name.
    assert find_steps(["ckpt-007.json", "ckpt-٣.json", "ckpt-0.json"]) == [0]


def test_the_newest_stay() -> None:
    assert find_expired([0, 200, 1000, 400], keep=2) == [200, 0]
    assert find_expired([0, 200], keep=2) == []


@pytest.mark.parametrize(
    ("name", "is_part"),
    [
        ("ckpt-20.index", True),
        ("ckpt-20.data-00000-of-00002", True),
        ("ckpt-20.json.draft", True),
        ("ckpt-20_temp", True),
        ("ckpt-200.index", False),
        ("ckpt-2.index", False),
        ("saved_model", False),
    ],
)
def test_parts_of_a_checkpoint(name: str, is_part: bool) -> None:
    assert belongs_to(name, 20) is is_part


def test_damage_is_named() -> None:
    assert find_damage(MARKER, dict(MARKER.files)) == ""
    assert find_damage(MARKER, {"ckpt-200.index": 12}) == "ckpt-200.data-00000-of-00001 is missing"
    shorter = {**MARKER.files, "ckpt-200.index": 3}
    assert find_damage(MARKER, shorter) == "ckpt-200.index has 3 bytes instead of 12"


def test_another_model_is_known_by_shapes_not_automatic_names() -> None:
    renamed = [VariableShape("dense_1/kernel", "float32", (64, 10)), BIAS]
    assert find_difference([KERNEL, BIAS], renamed) == ""
    wider = [VariableShape("dense/kernel", "float32", (32, 10)), BIAS]
    assert find_difference([KERNEL, BIAS], wider) == (
        "dense/kernel is float32 [64, 10] here, dense/kernel float32 [32, 10] there"
    )
    assert find_difference([KERNEL], [KERNEL, BIAS]) == "there are 1 variables here and 2 there"


def test_training_ends_at_its_last_step_or_without_improvement() -> None:
    # Saved at a stop, say, before the result was exported.
    assert not MARKER.is_last(max_steps=200, may_stop_early=True)
    assert Marker(200, [], {}, LAST).is_last(max_steps=200, may_stop_early=False)
    assert not Marker(200, [], {}, LAST).is_last(max_steps=201, may_stop_early=True)
    assert Marker(200, [], {}, EARLY).is_last(max_steps=1000, may_stop_early=True)
    # Without early stopping it may go on, up to its last step.
    assert not Marker(200, [], {}, EARLY).is_last(max_steps=1000, may_stop_early=False)
    assert Marker(200, [], {}, EARLY).is_last(max_steps=200, may_stop_early=False)


@pytest.mark.parametrize(
    ("falls", "values", "patience", "stalled"),
    [
        (True, [0.9, 0.5, 0.6, 0.5], 2, True),
        (True, [0.9, 0.5, 0.6, 0.4], 2, False),
        (False, [0.5, 0.9, 0.8, 0.9], 2, True),
        (False, [0.5, 0.8, 0.8, 0.9], 2, False),
        (True, [0.5, 0.6], 2, False),
        (True, [0.5, 0.6, 0.7], 0, False),
        (True, [0.5, math.nan, 0.6], 2, True),
        (True, [0.5, math.nan, 0.4], 2, False),
        (False, [0.5, math.nan, math.nan], 2, True),
        (True, [math.nan, 0.9, 0.8], 1, False),
        (True, [math.nan, math.nan, math.nan], 1, True),
    ],
)
def test_stalled_means_no_better_than_before(falls: bool, values: list[float], patience: int, stalled: bool) -> None:
    # The order of the steps counts, not the one they are kept in.
    evaluations = {step: {"watched": value} for step, value in reversed(list(enumerate(values)))}
    assert has_stalled(evaluations, "watched", patience, falls) is stalled
