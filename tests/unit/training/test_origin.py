"""What the file origin.json says, and whom it keeps out."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainchart_training.saving.origin import (
    FORMAT,
    SIZE_LIMIT,
    Origin,
    RunStart,
    add_run,
    dump_origin,
    find_change,
    find_refusal,
    parse_origin,
    read_environment,
)

NOW = "2026-11-28T07:00:00Z"
MINE = Origin("mnist", "single", "registry.example.com/mnist:1", "exp-7", "team-a", "second", 2)
PATH = "/checkpoints/origin.json"


def test_an_origin_survives_its_file() -> None:
    whole = replace(
        MINE, created_at=NOW, runs=(RunStart("exp-6", "team-a"), RunStart("exp-7", "", "2", 200, "exp-6", NOW))
    )
    assert parse_origin(dump_origin(whole)) == whole
    assert json.loads(dump_origin(Origin(created_at=NOW))) == {"format": FORMAT, "createdAt": NOW}


def test_the_newest_runs_are_kept() -> None:
    origin = MINE
    for number in range(60):
        origin = add_run(origin, RunStart(release="r" * 53, namespace="n" * 63, run=str(number)))
    assert [run.run for run in origin.runs] == [str(number) for number in range(10, 60)]
    assert len(dump_origin(origin)) < SIZE_LIMIT


def test_the_environment_says_whose_checkpoints_these_are() -> None:
    environment = {
        "TRAINCHART_MODEL": "mnist",
        "TRAINCHART_IMAGE": "registry.example.com/mnist:1",
        "TRAINCHART_RELEASE": "exp-7",
        "TRAINCHART_NAMESPACE": "team-a",
        "TRAINCHART_RUN_ID": "second",
        "TRAINCHART_ATTEMPT": "2",
    }
    assert read_environment(environment) == replace(MINE, strategy="")
    assert read_environment({"TRAINCHART_ATTEMPT": "²"}) == Origin()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"format": "1"}',
        '{"format": true}',
        '{"format": 0}',
        '{"format": 1e999}',
        '{"format": 1, "model": 5}',
        '{"format": 1, "attempt": "x"}',
        '{"format": 1, "runs": {}}',
        '{"format": 1, "runs": ["exp-7"]}',
        '{"format": 1, "runs": [{"release": 7}]}',
        '{"format": 1, "runs": [{"step": "7"}]}',
        '{"format": 1, "model": "' + "m" * 1001 + '"}',
        "[" * 100_000,
    ],
)
def test_what_is_not_an_origin_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_origin(text)


def test_control_characters_are_left_out() -> None:
    assert parse_origin('{"format": 1, "release": "a\\u001b[31m\\nb"}').release == "a[31mb"


def test_a_newer_format_is_refused_whatever_else_it_says() -> None:
    newer = parse_origin('{"format": 2, "model": {"name": "mnist"}, "attempt": []}')
    refusal = find_refusal(MINE, newer, PATH)
    assert refusal.startswith("/checkpoints/origin.json has format 2, and")
    assert "knows formats up to 1" in refusal


def test_another_model_is_refused_and_an_unknown_one_is_not() -> None:
    refusal = find_refusal(MINE, replace(MINE, model="lstm"), PATH)
    assert "belong to the model 'lstm' (/checkpoints/origin.json), and this is the model 'mnist'" in refusal
    assert find_refusal(MINE, MINE, PATH) == ""
    assert find_refusal(MINE, Origin(), PATH) == ""
    assert find_refusal(Origin(), MINE, PATH) == ""


@pytest.mark.parametrize(
    ("found", "change"),
    [
        (MINE, ""),
        (Origin(), ""),
        (replace(MINE, run="first", image="other", strategy="mirrored"), ""),
        (replace(MINE, namespace=""), ""),
        (replace(MINE, release="exp-6"), "release exp-6 in namespace team-a"),
        (replace(MINE, release="exp-6", namespace=""), "release exp-6"),
        (replace(MINE, namespace="team-b"), "release exp-7 in namespace team-b"),
        (replace(MINE, runs=(RunStart("exp-6", "team-a"),)), "release exp-6 in namespace team-a"),
        (replace(MINE, release="exp-5", runs=(RunStart("exp-7", "team-a"),)), ""),
    ],
)
def test_another_release_of_the_model_is_named(found: Origin, change: str) -> None:
    assert find_change(MINE, found) == change
