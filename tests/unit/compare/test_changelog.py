"""What a version says of itself: entries on top of each other, and what to do when upgrading."""

from __future__ import annotations

import pytest
import yaml

from trainchart.compare.changelog import add_to_changelog, build_entry, dump_changes, list_changes
from trainchart.compare.chart import ChartChanges, RenderedVersion, compare_versions
from trainchart.compare.effect import Effect, Fate, ObjectChange
from trainchart.compare.schema import KeyChange, Turn
from trainchart.compare.version import Bump


def changed(effect: Effect, kind: str = "StatefulSet", name: str = "release-mnist-ps") -> ObjectChange:
    return ObjectChange(kind, name, Fate.changed, effect)


def test_entries_pile_up() -> None:
    first = add_to_changelog("", build_entry("0.1.0", None, "2026-01-01"))
    second = add_to_changelog(first, build_entry("0.1.1", ChartChanges("0.1.0", files=("README.md",)), ""))
    assert second == (
        "# Changelog\n\n## 0.1.1\n\n### Changed\n\n- README.md differs\n\n"
        "## 0.1.0 - 2026-01-01\n\nFirst published version.\n"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (ChartChanges("1.0.0", files=("README.md",)), []),
        (ChartChanges("1.0.0", objects={"": (changed(Effect.applied),)}, files=("a",)), []),
        (ChartChanges("1.0.0", objects={"": (changed(Effect.restart),)}, files=("a",)), ["restarts the training"]),
        (
            ChartChanges("1.0.0", objects={"": (changed(Effect.rejected),)}, files=("a",)),
            ["values", "refuses to change StatefulSet release-mnist-ps"],
        ),
        (
            ChartChanges("1.0.0", objects={"": (changed(Effect.rejected, "PersistentVolumeClaim", "data"),)}),
            ["values", "refuses to change PersistentVolumeClaim data", "copy the checkpoints first"],
        ),
        (ChartChanges("1.0.0", keys=(KeyChange("a.b", Turn.removed),)), ["Remove values"]),
    ],
)
def test_upgrading_says_what_to_do(changes: ChartChanges, said: list[str]) -> None:
    _, _, upgrading = build_entry("2.0.0", changes, "").partition("### Upgrading\n\n")
    lines = upgrading.strip().splitlines()
    assert len(lines) == len(said)
    for line, words in zip(lines, said, strict=True):
        assert words in line


def test_artifact_hub_reads_the_changes() -> None:
    keys = (KeyChange("a", Turn.added), KeyChange("b", Turn.removed), KeyChange("c", Turn.narrowed, "type: 'x' → y"))
    assert yaml.safe_load(list_changes(ChartChanges("1.0.0", keys=keys))) == [
        {"kind": "removed", "description": "the value b is gone"},
        {"kind": "removed", "description": "the value c accepts less: type: 'x' → y"},
        {"kind": "added", "description": "the value a is new"},
    ]
    assert yaml.safe_load(list_changes(None)) == [{"kind": "added", "description": "First published version."}]
    assert yaml.safe_load(dump_changes([("deprecated", "use: 'x'\n- y")])) == [
        {"kind": "deprecated", "description": "use: 'x'\n- y"}
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("deprecated: true\n", "", ("the chart is no longer deprecated",)),
        ("", "deprecated: true\n", ("the chart is deprecated",)),
        ("description: a\n", "description: b\n", ('the description is now "b"',)),
        ("maintainers: [{name: a}]\n", "maintainers: [{name: b}]\n", ("Chart.yaml differs",)),
    ],
)
def test_changed_chart_fields_are_told_without_noise(old: str, new: str, words: tuple[str, ...]) -> None:
    def version(number: str, text: str) -> RenderedVersion:
        files = {"Chart.yaml": f"apiVersion: v2\nname: a\nversion: {number}\n{text}".encode()}
        if "description" in text:
            files["README.md"] = text.encode()
        return RenderedVersion(number, files, {})

    changes = compare_versions(version("1.0.0", old), version("1.0.1", new))
    assert changes.reasons == {Bump.patch: words}
