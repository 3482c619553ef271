"""Values are compared with schemas as Helm compares them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import helm_python
import pytest

from trainchart.schema_validation import end_as_go, make_validator


@pytest.mark.parametrize(
    ("pattern", "ended"),
    [
        ("^a$", r"^a\Z"),
        (r"^\$a$", r"^\$a\Z"),
        (r"^[$a]$", r"^[$a]\Z"),
        (r"^[]$]$|b$", r"^[]$]\Z|b\Z"),
        (r"^[^]$\]$]$", r"^[^]$\]$]\Z"),
        (r"a\\$", r"a\\\Z"),
    ],
)
def test_dollars_that_end_a_text_are_told_from_others(pattern: str, ended: str) -> None:
    assert end_as_go(pattern) == ended
    re.compile(ended)


@pytest.mark.parametrize("value", ["abc", "abc\n", "abc\n\n", "\nabc", "ab", ""])
@pytest.mark.parametrize("keyword", ["pattern", "patternProperties"])
def test_patterns_end_as_they_do_for_helm(value: str, keyword: str, tmp_path: Path) -> None:
    properties = {"pattern": ("^abc$", value), "patternProperties": ({"^abc$": {"type": "null"}}, {value: 1})}
    rule, given = properties[keyword]
    schema = {"type": "object", "properties": {"a": {keyword: rule}}}
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: a\nversion: 1.0.0\n")
    (tmp_path / "values.schema.json").write_text(json.dumps(schema))
    is_refused = bool(list(make_validator(schema).iter_errors({"a": given})))
    with helm_python.Chart.load(tmp_path) as chart:
        if not is_refused:
            chart.render({"a": given})
            return
        with pytest.raises(helm_python.HelmError, match="a"):
            chart.render({"a": given})


def test_nothing_is_fetched() -> None:
    with pytest.raises(Exception, match="Unresolvable"):
        list(make_validator({"$ref": "http://127.0.0.1:1/schema.json"}).iter_errors({}))
