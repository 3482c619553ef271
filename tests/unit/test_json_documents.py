"""References inside of a JSON Schema, and what may stand beside them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.json_documents import encode_value, is_same, parse_json, resolve_reference

ROOT: dict[str, Any] = {
    "properties": {"env": {"$ref": "#/$defs/a~1b"}, "self": {"$ref": "#/properties/self"}},
    "$defs": {
        "a/b": {"type": "object"},
        "Role": {"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 0}, "cpu": {}}},
    },
}


@pytest.mark.parametrize(
    ("node", "resolved"),
    [
        ({"type": "string"}, {"type": "string"}),
        (True, True),
        ({"$ref": "#/$defs/a~1b"}, {"type": "object"}),
        ({"$ref": "#/properties/env", "description": "d"}, {"type": "object", "description": "d"}),
        ({"$ref": "#/properties/self"}, {}),
        ({"$ref": "#/$defs/missing"}, {}),
        ({"$ref": "https://example.com/schema.json"}, {"$ref": "https://example.com/schema.json"}),
        (
            {"$ref": "#/$defs/Role", "properties": {"replicas": {"minimum": 1}, "gpus": {}}},
            {
                "type": "object",
                "properties": {"replicas": {"type": "integer", "minimum": 1}, "cpu": {}, "gpus": {}},
            },
        ),
    ],
)
def test_a_reference_is_replaced_by_what_is_there(node: Any, resolved: Any) -> None:
    assert resolve_reference(node, ROOT) == resolved


def test_a_reference_into_definitions_that_are_not_wanted_stays() -> None:
    assert resolve_reference({"$ref": "#/properties/env"}, ROOT, until="#/$defs/a") == {"$ref": "#/$defs/a~1b"}


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", "-Infinity", b"\xef\xbb\xbf{}", "\ufeff{}", "{}".encode("utf-16"), b'"\xff"', "[" * 9999],
)
def test_what_other_readers_do_not_take_is_no_json(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_references_are_not_followed_on_and_on() -> None:
    # Each step takes as long as all before it: thousands would take minutes.
    root = {str(number): {"$ref": f"#/{number + 1}", f"key{number}": 1} for number in range(1000)}
    root["1000"] = {"type": "string"}
    assert resolve_reference({"$ref": "#/0"}, root) == {}
    assert resolve_reference({"$ref": "#/975"}, root)["type"] == "string"


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^it contains a number with too many digits$"):
        parse_json(b"[" + b"9" * 5000 + b"]")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "1", "a"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("ab"), below, max_size=2),
    max_leaves=6,
)


@given(VALUES, VALUES)
def test_values_are_the_same_where_their_texts_are(one: Any, other: Any) -> None:
    assert is_same(one, other) == (encode_value(one) == encode_value(other))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [(1, True, False), ([0], [False], False), ({"a": {"b": 1}}, {"a": {"b": True}}, False), (1, 1.0, True)],
)
def test_truth_values_are_no_numbers(one: Any, other: Any, expected: bool) -> None:
    assert is_same(one, other) == expected
