"""Changed values of values.yaml: each is named with old and new value."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.compare.changelog import build_entry
from trainchart.compare.chart import RenderedVersion, compare_versions
from trainchart.compare.defaults import find_changed_defaults


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({"a": {"hidden": 32}}, {"a": {"hidden": 64}}, [("a.hidden", 32, 64)]),
        ({"a": 1, "b": "x"}, {"b": "x", "a": 1}, []),
        ({"a": True}, {"a": 1}, [("a", True, 1)]),
        ({"a": [1, 2]}, {"a": [1]}, [("a", [1, 2], [1])]),
        ({"env": {}}, {"env": {"A": "x"}}, [("env.A", None, "x")]),
        ({"volumes": {"data": {"size": "1Gi"}}}, {"volumes": {}}, [("volumes.data.size", "1Gi", None)]),
        ({"new": 1}, {"gone": 2}, []),
        ({"a": None}, {}, []),
    ],
)
def test_each_changed_default_is_found(
    old: dict[str, Any], new: dict[str, Any], changed: list[tuple[str, Any, Any]]
) -> None:
    found = find_changed_defaults(old, new, without={"new", "gone"})
    assert [(change.path, change.before, change.after) for change in found] == changed


def test_changelog_names_old_and_new_default() -> None:
    def version(hidden: int) -> RenderedVersion:
        values = f"hyperparameters: {{hidden: {hidden}}}\n".encode()
        return RenderedVersion("1.0.0", {"Chart.yaml": b"name: a\nversion: 1.0.0\n", "values.yaml": values}, {})

    changes = compare_versions(version(32), version(64))
    assert "- the default of hyperparameters.hidden changes from 32 to 64\n" in build_entry("1.0.1", changes, "")
    assert changes.bump.name == "patch"
