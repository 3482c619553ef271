"""Which numbers and words of a values file are told, because Helm reads them as something else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.helm.misread_values import find_misread_values

TEXT = {"type": ["string", "integer"], "pattern": "^[a-z0-9._-]+$"}
SCHEMA = {
    "properties": {
        "image": {"$ref": "#/$defs/Image"},
        "env": {"additionalProperties": {"anyOf": [{"$ref": "#/$defs/Text"}, {"type": "object"}]}},
        "rate": {"type": ["number", "string"], "pattern": "^[0-9.e-]+$"},
        "memory": {"type": ["string", "integer"], "pattern": "^[0-9.]+(Mi|Gi)?$"},
        "enabled": {"type": "boolean"},
        "state": {"type": ["string", "boolean"], "enum": ["off", "auto", True]},
        "volumes": {"items": {"properties": {"defaultMode": {"type": "integer"}, "path": TEXT}}},
    },
    "$defs": {"Image": {"properties": {"tag": TEXT}}, "Text": {"type": ["string", "number", "boolean"]}},
}


def find(text: str, **schemas: object) -> list[str]:
    found = find_misread_values(text, {"digits": SCHEMA, **schemas}, "digits")  # type: ignore[arg-type]
    return [problem.message for _, problem in found]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image: {tag: 0755}", "image.tag: 0755 is read as the number 493"),
        ("image: {tag: 0x1f}", "image.tag: 0x1f is read as the number 31"),
        ("image: {tag: 1_0}", "image.tag: 1_0 is read as the number 10"),
        ("image: {tag: 1e3}", "image.tag: 1e3 becomes the text 1000"),
        ("image: {tag: 1.10}", "image.tag: 1.10 becomes the text 1.1"),
        ("env: {A: on}", "env.A: on becomes the text true"),
        ("env: {A: No}", "env.A: No becomes the text false"),
        ("rate: 1_0.5", "rate: 1_0.5 is read as the number 10.5"),
        ("rate: 1e-400", "rate: 1e-400 is read as the number 0"),
        ("unknown: {deep: [1, 010]}", "unknown.deep.1: 010 is read as the number 8"),
        (
            "unknown: 9007199254740993",
            "unknown: 9007199254740993 exceeds the integers that Helm represents exactly, ±(2^53 - 1)",
        ),
        ("volumes: [{path: 0755}]", "volumes.0.path: 0755 is read as the number 493"),
    ],
)
def test_what_is_read_as_something_else_is_told(text: str, message: str) -> None:
    assert find(text) == [message]


@pytest.mark.parametrize(
    "text",
    [
        "image: {tag: '0755'}",
        'image: {tag: "1e3"}',
        "image: {tag: 12e4567}",  # beyond every float, so a text for Helm
        "image: {tag: 7}",
        "env: {A: 1.5, B: true, C: null, D: {valueFrom: x}}",
        "rate: 1e-3",
        "memory: 1.50",
        "enabled: on",
        "state: off",
        "volumes: [{defaultMode: 0644}]",
        "unknown: {a: 1e3, b: yes, c: .inf, d: -1.50}",
        "",
        "- not: a mapping",
        "{",
    ],
)
def test_what_means_what_is_written_is_not_told(text: str) -> None:
    assert find(text) == []


def test_values_of_a_subchart_have_its_schema() -> None:
    schema = {"properties": {"tag": TEXT}}
    assert find("sub: {tag: 1.10}", sub=schema) == ["sub.tag: 1.10 becomes the text 1.1"]
    assert find("sub: {tag: 1.10}") == []


@given(st.text(max_size=40))
def test_no_text_breaks_the_search(text: str) -> None:
    find(f"image: {{tag: {text}}}")
    find(text)
