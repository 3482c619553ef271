"""Changes of many charts, each kind once: what differs by name and hash alone is the same."""

from __future__ import annotations

from trainchart.compare.chart import ChartChanges
from trainchart.compare.defaults import DefaultChange
from trainchart.compare.effect import Effect, Fate, FieldChange, ObjectChange
from trainchart.compare.fleet import Change, FleetChange, group_changes
from trainchart.compare.version import Bump

LABEL = FieldChange("metadata.labels.team", None, "ml")


def changed(name: str, *fields: FieldChange, kind: str = "ConfigMap", effect: Effect = Effect.none) -> ObjectChange:
    return ObjectChange(kind, name, Fate.changed, effect, fields)


def changes(*objects: ObjectChange, defaults: tuple[DefaultChange, ...] = ()) -> ChartChanges:
    return ChartChanges("0.1.0", defaults=defaults, objects={"": objects})


def test_the_same_change_of_two_charts_is_one() -> None:
    found = group_changes(
        {
            name: changes(changed(f"release-{name}-cluster-{number}a2b3c4d", LABEL))
            for number, name in enumerate(("mnist", "lstm"))
        }
    )
    text = "ConfigMap release-CHART-cluster"
    assert found == (
        FleetChange(
            Change(text, Effect.none, Bump.none, ("metadata.labels.team", "+ ml")),
            ("lstm", "mnist"),
        ),
    )


def test_objects_that_change_alike_are_one_change() -> None:
    (group,) = group_changes({"m": changes(changed("release-m-a", LABEL), changed("release-m-b", LABEL))})
    assert group.change.text == "ConfigMap release-CHART-a, ConfigMap release-CHART-b"


def test_another_field_is_another_change() -> None:
    other = FieldChange("metadata.labels.team", None, "vision")
    found = group_changes({"a": changes(changed("release-a", LABEL)), "b": changes(changed("release-b", other))})
    assert [(group.change.lines[-1], group.charts) for group in found] == [("+ ml", ("a",)), ("+ vision", ("b",))]


def test_an_object_with_a_new_hash_in_its_name_is_one_change() -> None:
    old = ObjectChange("Job", "release-m-controller-0123abcd", Fate.removed, Effect.applied)
    new = ObjectChange("Job", "release-m-controller-dcba3210", Fate.added, Effect.applied)
    (group,) = group_changes({"m": changes(old, new)})
    assert group.change == Change("Job release-CHART-controller", Effect.applied, Bump.none)


def test_a_field_that_only_has_another_hash_is_left_out() -> None:
    hashes = FieldChange("rules[0].resourceNames[0]", "release-m-controller-0123abcd", "release-m-controller-dcba3210")
    plan = FieldChange("metadata.annotations.trainchart/plan", "pecabdc0bfb08846", "p3800fed78b7214f")
    (group,) = group_changes({"m": changes(changed("release-m-controller", hashes, plan, LABEL, kind="Role"))})
    assert group.change.lines == ("metadata.labels.team", "+ ml")


def test_a_name_within_a_word_is_not_the_chart() -> None:
    (group,) = group_changes({"ml": changes(changed("release-ml-html", FieldChange("data.html", "xml", "ml")))})
    assert group.change.text == "ConfigMap release-CHART-html"
    assert group.change.lines == ("data.html", "- xml", "+ CHART")


def test_versions_come_first_then_the_worst_effect() -> None:
    default = DefaultChange("run.maxRestarts", 3, 7)
    pods = changed("release-m-worker", LABEL, kind="StatefulSet", effect=Effect.restart)
    found = group_changes({"m": changes(changed("release-m", LABEL), pods, defaults=(default,))})
    assert [group.change.bump for group in found] == [Bump.patch, Bump.none, Bump.none]
    assert [group.change.effect for group in found] == [Effect.none, Effect.restart, Effect.none]


def test_charts_without_changes_give_no_group() -> None:
    assert group_changes({"m": ChartChanges("0.1.0")}) == ()
