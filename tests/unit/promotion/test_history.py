"""What revisions of a model server record, what follows for the history, and what a promotion changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.cluster.helm_record import HelmRelease
from trainchart.errors import Conflict, NotFound
from trainchart.promotion.change import (
    change_values,
    find_serving_metrics,
    list_changes,
    refuse_version,
    require_server,
)
from trainchart.promotion.history import describe_entry, find_earlier, list_promotions
from trainchart.promotion.record import (
    NONE,
    Model,
    Promotion,
    Record,
    Source,
    Takeback,
    describe,
    dump_record,
    parse_record,
    read_model,
    read_record,
)

CONTENT = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
OTHER = CONTENT.replace("9f86", "0000")


def model(version: int, content: str = CONTENT) -> Model:
    return Model(version, content, "exp-7-mnist-checkpoints", "saved_model")


def promotion(version: int, accuracy: float = 0.9) -> Promotion:
    source = Source("exp-7", "run-1", version, {"accuracy": accuracy}, "ml/mnist:1", "mnist-0.1.0")
    return Promotion(
        f"2026-11-28T18:00:{version % 60:02}Z", "alice", model(version), source, ("accuracy>=0.9",), "0.1.0"
    )


def revision(
    number: int,
    served: Model,
    record: Record = NONE,
    status: str = "superseded",
    **values: Any,
) -> HelmRelease:
    pins = {"version": served.version, "content": served.content, "claim": served.claim, "path": served.path}
    given = {"model": {"name": "digits", **pins}, "promotion": dump_record(record), "replicas": 3, **values}
    return HelmRelease(
        "digits", number, "digits-prod", given, given, family="model-server", status=status, chart_version="0.1.0"
    )


def promoted(number: int, version: int, status: str = "superseded") -> HelmRelease:
    return revision(number, model(version), Record(promotion(version)), status)


def taken_back(number: int, version: int, bad: int, bad_revision: int, status: str = "deployed") -> HelmRelease:
    takeback = Takeback("2026-11-28T19:00:00Z", "bob", bad_revision, bad, promotion(bad).at, "pods failed")
    return revision(number, model(version), Record(promotion(version), takeback), status)


def test_a_record_survives_the_values_of_a_chart() -> None:
    record = Record(promotion(40), Takeback("2026-11-28T19:00:00Z", "bob", 6, 41, "", "pods failed"))
    assert parse_record(dump_record(record)) == record
    assert parse_record({}) == parse_record(None) == NONE
    assert dump_record(NONE) == {}
    odd = {**dump_record(record), "from": {"release": "exp-7", "step": 10**400, "metrics": {"loss": 10**400}}}
    assert parse_record(odd).promotion == replace(promotion(40), source=Source("exp-7"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)
KEYS = ("at", "by", "gates", "model", "from", "rolledBack", "version", "step", "metrics", "revision")


@given(
    st.dictionaries(
        st.sampled_from(KEYS), VALUES | st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4), max_size=6
    )
)
def test_any_value_is_read_as_a_record(value: dict[str, Any]) -> None:
    record = parse_record(value)
    assert parse_record(dump_record(record)).takeback == record.takeback
    describe(record)


def test_a_record_of_another_model_says_nothing() -> None:
    kept_by_hand = revision(3, model(50), Record(promotion(40)), "deployed")
    assert read_record(kept_by_hand) == NONE
    assert find_serving_metrics(kept_by_hand) is None
    assert find_serving_metrics(promoted(2, 40)) == {"accuracy": 0.9}


def test_the_history_says_what_became_of_each() -> None:
    first, second, third = promoted(2, 40), promoted(3, 41), promoted(4, 42)
    # A later upgrade with --reuse-values keeps the record.
    scaled = replace(promoted(6, 41, "superseded"), revision=6)
    back = taken_back(5, 41, bad=42, bad_revision=4, status="superseded")
    revisions = [revision(1, model(39)), first, second, third, back, scaled, replace(scaled, revision=7)]
    revisions[-1] = replace(revisions[-1], status="deployed")
    entries = list_promotions(revisions)
    assert [(each.revision, each.promotion.model.version, each.state, each.why) for each in entries] == [
        (4, 42, "rolled back", "pods failed"),
        (3, 41, "serving", ""),
        (2, 40, "replaced", ""),
    ]
    body = describe_entry(entries[0])
    assert (body["by"], body["from"]["metrics"], body["why"]) == ("alice", {"accuracy": 0.9}, "pods failed")


def test_going_back_skips_what_was_taken_back() -> None:
    revisions = [revision(1, model(39)), promoted(2, 40), promoted(3, 41, "deployed")]
    assert find_earlier(revisions).revision == 2
    revisions = [*revisions[:2], promoted(3, 41), taken_back(4, 40, bad=41, bad_revision=3)]
    assert find_earlier(revisions).revision == 1
    takeback = Takeback("2026-11-28T19:30:00Z", "bob", 4, 40, promotion(40).at)
    revisions = [*revisions[:3], taken_back(4, 40, 41, 3, "superseded")]
    revisions.append(revision(5, model(39), Record(None, takeback), "deployed"))
    with pytest.raises(NotFound, match="no earlier model to roll back to among the 5 revisions"):
        find_earlier(revisions)


STEPS = st.lists(
    st.tuples(st.sampled_from(["promote", "break", "go back", "scale", "by hand"]), st.integers(40, 43)), max_size=12
)


@given(STEPS)
def test_any_history_has_one_model_that_serves(steps: list[tuple[str, int]]) -> None:
    revisions = [revision(1, model(39), status="deployed")]
    for number, (step, version) in enumerate(steps):
        installed = revisions[-1]
        now, record = f"2026-11-28T18:{number:02}:00Z", read_record(installed)
        new = replace(promotion(version), at=now)
        if step == "scale":
            revisions = add(revisions, read_model(installed.values), parse_record(installed.values["promotion"]))
        elif step == "by hand":
            revisions = add(revisions, model(version), parse_record(installed.values["promotion"]))
        elif step == "go back":
            try:
                earlier = find_earlier(revisions)
            except NotFound:
                continue
            assert read_model(earlier.values) != read_model(installed.values)
            was, served = record.promotion, read_model(installed.values)
            takeback = Takeback(now, "bob", installed.revision, served.version, was.at if was else "")
            revisions = add(revisions, read_model(earlier.values), Record(read_record(earlier).promotion, takeback))
        elif model(version) != read_model(installed.values):
            revisions = add(revisions, model(version), Record(new))
            if step == "break":
                takeback = Takeback(now, "bob", revisions[-1].revision, version, now, "pods failed")
                back = Record(record.promotion, takeback)
                revisions = add(revisions, read_model(installed.values), back)
                broken = next(each for each in list_promotions(revisions) if each.promotion == new)
                assert (broken.state, broken.why) == ("rolled back", "pods failed")
        check_history(revisions)


def add(revisions: list[HelmRelease], served: Model, record: Record) -> list[HelmRelease]:
    earlier = [replace(each, status="superseded") for each in revisions]
    return [*earlier, revision(len(revisions) + 1, served, record, "deployed")]


def check_history(revisions: list[HelmRelease]) -> None:
    entries, record = list_promotions(revisions), read_record(revisions[-1])
    serving = [each.promotion for each in entries if each.state == "serving"]
    assert serving == ([record.promotion] if record.promotion else [])
    assert [each.revision for each in entries] == sorted({each.revision for each in entries}, reverse=True)
    # Helm keeps ten revisions.
    list_promotions(revisions[-10:])


def test_a_revision_that_helm_could_not_apply_is_skipped() -> None:
    revisions = [promoted(1, 40), promoted(2, 41, "failed"), promoted(3, 42, "deployed")]
    assert find_earlier(revisions).revision == 1
    assert [each.state for each in list_promotions(revisions)] == ["serving", "failed", "replaced"]


def test_only_the_model_and_its_record_change() -> None:
    installed = promoted(2, 40, "deployed")
    values = change_values(installed, model(41), Record(promotion(41)))
    assert values["replicas"] == 3
    assert values["model"]["name"] == "digits"
    assert read_model(values) == model(41)
    assert values["promotion"] == dump_record(Record(promotion(41)))
    (change,) = list_changes(installed, values)
    assert (change.key, change.before, change.after) == ("model.version", 40, 41)


def test_nothing_of_the_record_before_is_left() -> None:
    installed = taken_back(5, 40, bad=41, bad_revision=4)
    new = Record(replace(promotion(42), gates=(), source=Source("exp-8")))
    assert change_values(installed, model(42), new)["promotion"] == dump_record(new)


def test_a_canary_that_is_promoted_ends() -> None:
    canary = {"weight": 10, "version": 41, "content": CONTENT}
    installed = revision(2, model(40), status="deployed", canary=canary)
    values = change_values(installed, model(41), NONE)
    assert values["canary"] == {**canary, "weight": 0}
    assert ("canary.weight", 10, 0) in [(each.key, each.before, each.after) for each in list_changes(installed, values)]
    assert change_values(installed, model(42), NONE)["canary"] == canary
    with pytest.raises(Conflict, match="the canary of digits has version 41 with different content"):
        refuse_version(model(41, OTHER), installed, [installed])


def test_a_version_keeps_its_content() -> None:
    revisions = [promoted(1, 40), promoted(2, 41, "deployed")]
    refuse_version(model(40), revisions[1], revisions)
    with pytest.raises(Conflict, match="revision 1 of digits has version 40 with different content") as error:
        refuse_version(model(40, OTHER), revisions[1], revisions)
    assert error.value.hint == "give the export another version: --version 42"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"family": "", "chart_name": "mnist"}, "is not a model server: its chart mnist is not of a chart family"),
        ({"family": "tenant"}, "its chart digits-prod is of the family tenant"),
        ({"values": {}}, "is older than this command: it has no value promotion"),
        ({"dependencies": ("redis",)}, "as part of the umbrella chart digits-prod, whose subcharts Helm does not keep"),
    ],
)
def test_releases_that_cannot_be_promoted_to(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Conflict, match=words):
        require_server(replace(promoted(1, 40), **change), "team-a")


def test_helm_says_what_a_revision_is_for() -> None:
    assert describe(Record(promotion(40))) == "trainchart promote: exp-7 as version 40"
    back = Takeback("", "", 6, 42, why=f"the server ended: {'x' * 400}")
    said = describe(Record(promotion(40), back))
    assert said.startswith("trainchart promote: rolled back version 42 of revision 6: the server ended: xxx")
    assert len(said) == 250
