"""How a run begins in a folder of checkpoints."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_training.errors import SettingsError
from trainchart_training.saving.origin import Origin, RunStart, add_run
from trainchart_training.saving.resume import LATEST, NEVER, Beginning, Wish, decide_beginning, read_wish

MINE = Origin("mnist", "single", release="exp-7", namespace="team-a", run="2")
FIRST = RunStart("exp-7", "team-a", "1")
OTHER = RunStart("exp-6", "team-a", "1")
STEPS = [300, 200, 100]


def begun_by(*runs: RunStart) -> Origin:
    return replace(MINE, run="1", runs=runs)


def decide(wish: Wish | None, found: Origin | None, steps: list[int]) -> Beginning:
    return decide_beginning(wish, MINE, found, steps, "/checkpoints")


def test_the_environment_says_how_a_run_begins() -> None:
    assert read_wish({}) is None
    assert read_wish({"TRAINCHART_RESUME": ""}) is None
    assert read_wish({"TRAINCHART_RESUME": "never"}) == Wish(NEVER)
    assert read_wish({"TRAINCHART_RESUME": "0200"}) == Wish(200)
    environment = {"TRAINCHART_RESUME": "latest", "TRAINCHART_RESUME_DIR": "/r", "TRAINCHART_RESUME_RELEASE": "exp-6"}
    assert read_wish(environment) == Wish(LATEST, "/r", "exp-6")
    with pytest.raises(SettingsError, match=r"set run\.resume=latest, or to a step"):
        read_wish({**environment, "TRAINCHART_RESUME": "never"})


@pytest.mark.parametrize("text", ["newest", "-1", "1.5", "²", "1" * 17, "None"])
def test_an_unknown_way_to_begin_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="expected never, latest or the number of a step"):
        read_wish({"TRAINCHART_RESUME": text})


@pytest.mark.parametrize(
    ("wish", "found", "steps", "beginning"),
    [
        (None, None, STEPS, Beginning(is_begun=True)),
        (None, begun_by(OTHER), STEPS, Beginning(is_begun=True)),
        (Wish(NEVER), None, [], Beginning()),
        (Wish(LATEST), begun_by(OTHER), [], Beginning()),
        (Wish(LATEST), begun_by(OTHER), STEPS, Beginning()),
        (Wish(LATEST), None, STEPS, Beginning()),
        (Wish(NEVER), begun_by(OTHER, FIRST), STEPS, Beginning(aside_after=-1)),
        (Wish(300), begun_by(OTHER), STEPS, Beginning(oldest=300)),
        (Wish(200), begun_by(FIRST), STEPS, Beginning(aside_after=200, oldest=200)),
        (Wish(LATEST, "/r", "exp-6"), None, [], Beginning(is_copied=True)),
        (Wish(LATEST, "/r", "exp-6"), begun_by(FIRST), STEPS, Beginning(aside_after=-1, is_copied=True)),
        # A run that has begun goes on, whatever is asked for.
        (Wish(NEVER), begun_by(FIRST, replace(FIRST, run="2")), STEPS, Beginning(is_begun=True)),
        (Wish(100), begun_by(replace(FIRST, run="2", step=200)), STEPS, Beginning(is_begun=True, oldest=200)),
        (Wish(LATEST, "/r", "exp-6"), begun_by(replace(FIRST, run="2")), STEPS, Beginning(is_begun=True)),
    ],
)
def test_a_run_begins_as_it_is_asked_to(
    wish: Wish | None, found: Origin | None, steps: list[int], beginning: Beginning
) -> None:
    assert decide(wish, found, steps) == beginning


@pytest.mark.parametrize(
    ("wish", "found", "steps", "refusal"),
    [
        (
            Wish(NEVER),
            begun_by(OTHER),
            STEPS,
            "run.resume is never, and /checkpoints already holds checkpoints of release exp-6 in namespace team-a, up"
            " to step 300: set run.resume=latest to continue from them, or give this release a folder of its own",
        ),
        (Wish(NEVER), None, STEPS, "already holds checkpoints, up to step 300: "),
        (Wish(150), begun_by(FIRST), STEPS, "has no complete checkpoint of step 150, but those of steps 100, 200, 300"),
        (Wish(150), None, [], "has no complete checkpoint of step 150, but none"),
        (
            Wish(200),
            begun_by(OTHER),
            STEPS,
            "newer checkpoints of release exp-6 in namespace team-a, up to step 300",
        ),
        (Wish(LATEST, "/r", "exp-6"), begun_by(OTHER), STEPS, "give this release an empty folder"),
    ],
)
def test_what_is_not_the_releases_own_is_left_alone(
    wish: Wish, found: Origin | None, steps: list[int], refusal: str
) -> None:
    beginning = decide(wish, found, steps)
    assert refusal in beginning.refusal
    assert beginning == Beginning(beginning.refusal)


names = st.sampled_from(["", "a", "b"])
runs = st.builds(RunStart, names, names, names, st.none() | st.integers(0, 5))
wishes = st.builds(Wish, st.sampled_from([LATEST, 0, 1, 3]), st.sampled_from(["", "/r"])) | st.just(Wish(NEVER))


@given(
    wish=wishes,
    mine=st.builds(Origin, release=names, namespace=names, run=names),
    found=st.none() | st.builds(Origin, release=names, namespace=names, runs=st.lists(runs, max_size=3).map(tuple)),
    steps=st.lists(st.integers(0, 5), unique=True).map(lambda steps: sorted(steps, reverse=True)),
)
def test_nothing_of_others_is_moved_and_a_run_begins_once(
    wish: Wish, mine: Origin, found: Origin | None, steps: list[int]
) -> None:
    beginning = decide_beginning(wish, mine, found, steps, "/c")
    last = found.runs[-1] if found and found.runs else None
    if beginning.aside_after is not None:
        assert last and (last.namespace, last.release) == (mine.namespace, mine.release)
        assert any(step > beginning.aside_after for step in steps)
    if not beginning.refusal:
        after = add_run(found or mine, RunStart(mine.release, mine.namespace, mine.run))
        assert decide_beginning(wish, mine, after, steps, "/c").is_begun
