"""The installed Kubernetes schemas are found and told apart by version."""

from __future__ import annotations

import pytest

from trainchart.errors import ToolError
from trainchart.host.kubernetes_schemas import find_versions, read_definitions


def test_versions_are_sorted_as_numbers() -> None:
    versions = find_versions()
    assert "1.33" in versions
    assert list(versions) == sorted(versions, key=lambda version: tuple(map(int, version.split("."))))


def test_definitions_are_strict() -> None:
    assert read_definitions("1.33")["io.k8s.api.apps.v1.StatefulSet"]["additionalProperties"] is False


def test_an_unknown_version_names_the_known_ones() -> None:
    with pytest.raises(ToolError, match=r"'9\.9'") as caught:
        read_definitions("9.9")
    assert "1.33" in caught.value.hint
