"""Chart.yaml is read with Helm's types: an index or a registry's config with others is lost to Helm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml

from trainchart.archive.chart_metadata import read_metadata
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import parse_mapping

ODD = """\
appVersion: 1.10
description: 5
icon: 1e100
home: true
keywords: [1, 1e21, .inf, 0x10, 1e6, 123456.7, null, 0.00001, .nan, 2.50]
sources: [1]
tags: 1
kubeVersion: 1.2
condition: 5
annotations: {a: 1, b: true, c: null, 1.0: 2.50, d: -0.0}
maintainers: [{name: 1, foo: b}]
deprecated: true
unknown: 1
"""


def test_what_is_no_text_is_read_as_helm_reads_it(tmp_path: Path) -> None:
    text = f"apiVersion: v2\nname: demo\nversion: 1.0.0\n{ODD}"
    (tmp_path / "Chart.yaml").write_text(text)
    shown = yaml.load(helm_python.show(str(tmp_path), output_format="chart"), yaml.BaseLoader)
    found = read_metadata(parse_mapping(text))
    assert found.pop("deprecated") is True and shown.pop("deprecated") == "true"
    assert found == shown


def test_dependencies_keep_the_keys_that_helm_knows() -> None:
    odd = {"name": "x", "version": 1.0, "tags": [1], "enabled": True, "condition": None, "foo": 1, "import-values": [1]}
    assert read_metadata({"dependencies": [odd]})["dependencies"] == [
        {"name": "x", "version": "1", "tags": ["1"], "enabled": True, "import-values": [1]}
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"keywords": "a"},
        {"annotations": [1]},
        {"maintainers": [None]},
        {"maintainers": {"name": "a"}},
        {"description": {"a": 1}},
        {"deprecated": "true"},
        {"annotations": {"a": {"b": 1}}},
    ],
)
def test_what_helm_cannot_read_is_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match=f"^Chart.yaml: {next(iter(odd))}.* is .*, which Helm does not read"):
        read_metadata({"name": "demo", **odd})
