"""What users may set, before and after: every turn of every keyword, and what is not a change."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.compare.schema import Turn, compare_schemas


def closed(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (closed(a={"type": "string"}), closed(a={"type": "string", "description": "x", "default": "y"}), []),
        (closed(a={}), closed(a={}, b={}), [("b", Turn.added)]),
        (closed(a={}, b={}), closed(a={}), [("b", Turn.removed)]),
        ({"properties": {"a": {}}}, {"properties": {}}, []),
        ({"properties": {}}, {"properties": {"a": {"description": "x"}}}, []),
        ({"properties": {}}, {"properties": {"a": {"type": "string"}}}, [("a", Turn.narrowed)]),
        ({"properties": {"a": {"type": "string"}}}, {}, [("a", Turn.widened)]),
        (closed(a={}), closed(a=False), [("a", Turn.removed)]),
        (closed(a=closed(b={})), closed(a=closed(c={})), [("a.b", Turn.removed), ("a.c", Turn.added)]),
        (closed(a={"type": "number"}), closed(a={"type": "integer"}), [("a", Turn.narrowed)]),
        (closed(a={"type": "integer"}), closed(a={"type": "number"}), [("a", Turn.widened)]),
        (closed(a={"type": "string"}), closed(a={"type": ["string", "null"]}), [("a", Turn.widened)]),
        (closed(a={"type": "string"}), closed(a={}), [("a", Turn.widened)]),
        (closed(a={}), closed(a={"type": "string"}), [("a", Turn.narrowed)]),
        (closed(a={"enum": ["x", "y"]}), closed(a={"enum": ["y", "x"]}), []),
        (closed(a={"enum": ["x", "y"]}), closed(a={"enum": ["x"]}), [("a", Turn.narrowed)]),
        (closed(a={"enum": ["x"]}), closed(a={"enum": ["x", "y"]}), [("a", Turn.widened)]),
        (closed(a={"enum": [0, 1]}), closed(a={"enum": [False, True]}), [("a", Turn.narrowed)]),
        (closed(a={"enum": ["1"]}), closed(a={"enum": [1]}), [("a", Turn.narrowed)]),
        (closed(a={"enum": [1]}), closed(a={"enum": [True, 1]}), [("a", Turn.widened)]),
        (closed(a={"const": 1}), closed(a={"const": True}), [("a", Turn.narrowed)]),
        (closed(a={"minimum": 1}), closed(a={"minimum": 2}), [("a", Turn.narrowed)]),
        (closed(a={"minimum": 1}), closed(a={"minimum": 0}), [("a", Turn.widened)]),
        (closed(a={"maximum": 1}), closed(a={"maximum": 0.5}), [("a", Turn.narrowed)]),
        (closed(a={}), closed(a={"maxLength": 5}), [("a", Turn.narrowed)]),
        (closed(a={"maxLength": 5}), closed(a={}), [("a", Turn.widened)]),
        (closed(a={"pattern": "x"}), closed(a={"pattern": "y"}), [("a", Turn.narrowed)]),
        (closed(a={"pattern": "x"}), closed(a={}), [("a", Turn.widened)]),
        (closed(a={"items": {"type": "string"}}), closed(a={"items": {"type": "null"}}), [("a.*", Turn.narrowed)]),
        (closed(a={}), closed(a={"additionalProperties": False}), [("a.*", Turn.narrowed)]),
        (closed(a={"additionalProperties": False}), closed(a={}), [("a.*", Turn.widened)]),
        (closed(a={"anyOf": [{"type": "null"}]}), closed(a={"anyOf": [{"type": "null"}, {}]}), [("a", Turn.narrowed)]),
        (closed(a={"anyOf": [{"minimum": 2}]}), closed(a={"anyOf": [{"minimum": 1}]}), [("a", Turn.widened)]),
        (closed(a={}), closed(a={}) | {"required": ["a"]}, []),
        (closed(b={}), closed(b={}) | {"required": ["b"]}, [("", Turn.narrowed)]),
        (closed(b={}) | {"required": ["b"]}, closed(b={}), []),
    ],
)
def test_one_difference(old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, Turn]]) -> None:
    changes = compare_schemas(old, new, {"a": 1})
    assert [(change.path, change.turn) for change in changes] == expected


def test_definitions_are_followed_and_may_hold_themselves() -> None:
    def schema(limit: int) -> dict[str, Any]:
        node = closed(next={"$ref": "#/$defs/Node"}, size={"minimum": limit})
        return closed(one={"$ref": "#/$defs/Node"}, two={"$ref": "#/$defs/Node"}) | {"$defs": {"Node": node}}

    assert compare_schemas(schema(1), schema(1), {}) == ()
    changes = compare_schemas(schema(1), schema(2), {})
    assert [(change.path, change.turn, change.detail) for change in changes] == [
        ("one.size", Turn.narrowed, "minimum 1 → 2")
    ]


@pytest.mark.parametrize("place", ["#/properties/one", "#/$defs/it's"])
def test_the_same_reference_to_what_differs_is_followed(place: str) -> None:
    def schema(limit: int) -> dict[str, Any]:
        limited = {"minimum": limit}
        return closed(one=limited, two=closed(below={"$ref": place})) | {"$defs": {"it's": limited}}

    changes = compare_schemas(schema(1), schema(2), {})
    assert [change.path for change in changes] == ["one", "two.below"]


def test_a_chart_without_a_schema_took_anything() -> None:
    """As one that was not made by trainchart; all values together have no path to name them by."""
    found = compare_schemas({}, closed(a={"type": "string"}), {})
    assert {change.subject for change in found if not change.path} == {"values.yaml as a whole"}
    assert {change.subject for change in found if change.path == "a"} == {"the value a"}


@pytest.mark.parametrize(
    "old",
    [
        {"properties": [1]},
        {"properties": {"a": 5}},
        {"properties": {"a": None}},
        {"properties": {"a": {"properties": {"b": "text"}}}},
        {"required": [[1]]},
        {"required": 5},
        {"additionalProperties": 5},
        {"enum": 5},
        {"anyOf": [5]},
        {"$ref": 5},
        {"properties": {"a": {"$ref": "#", "minLength": 1}}},
    ],
    ids=str,
)
def test_what_is_no_schema_is_compared_as_narrower(old: dict[str, Any]) -> None:
    new = closed(a=closed(b={"enum": [1]})) | {"enum": [{}], "anyOf": [{}], "required": ["c"]}
    assert Turn.narrowed in {change.turn for change in compare_schemas(old, new, {})}
    assert compare_schemas(new, old, {})


def test_schemas_that_hold_themselves_without_end_are_reported() -> None:
    def schema(limit: int) -> dict[str, Any]:
        return {"properties": {"a": {"$ref": "#", "minLength": limit}}}

    (change,) = compare_schemas(schema(1), schema(2), {})
    assert (change.path, change.turn) == ("", Turn.narrowed)
    assert "too deep" in change.detail
