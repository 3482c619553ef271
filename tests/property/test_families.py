"""Whatever a family and a spec say: values that fit their own schema, or an error that names the place."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainchart.errors import SpecError
from trainchart.families.family import parse_family
from trainchart.families.schemas import close_schema, require_values
from trainchart.families.values import build_nodes, merge_values
from trainchart.render.schema import ApiDefinitions, render_family_schema
from trainchart.render.values_yaml import render_values_yaml
from trainchart.spec.chart import VALUES_KEY
from trainchart.spec.document import parse_document

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,5}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Zl", "Zp")), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | TEXTS
DATA = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXTS, below, max_size=3), max_leaves=6
)
OF_TYPE: dict[str, st.SearchStrategy[Any]] = {
    "string": TEXTS,
    "integer": st.integers(-(2**40), 2**40),
    "number": st.floats(-1e6, 1e6),
    "boolean": st.booleans(),
    "array": st.lists(SCALARS, max_size=3),
    "object": st.dictionaries(TEXTS, SCALARS, max_size=3),
}
DESCRIPTIONS = TEXTS.filter(lambda text: text.strip() != "")
VALUES = st.one_of(
    *(
        st.fixed_dictionaries({"description": DESCRIPTIONS, "type": st.just(name)}, optional={"default": values})
        for name, values in OF_TYPE.items()
    )
)
SECTIONS = st.recursive(
    st.dictionaries(NAMES, VALUES, max_size=3),
    lambda below: st.dictionaries(
        NAMES, VALUES | st.fixed_dictionaries({"description": DESCRIPTIONS, "properties": below}), max_size=3
    ),
    max_leaves=5,
)
ODD = st.recursive(
    SCALARS,
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            NAMES | st.sampled_from(["properties", "description", "default", "type", "$ref", "pattern", "items"]),
            below,
            max_size=4,
        )
    ),
    max_leaves=10,
)


def make_files(values: Any) -> dict[str, bytes]:
    family = {"apiVersion": "trainchart/v1", "kind": "Family", "description": "Any.", "values": values}
    return {"family.yaml": json.dumps(family, ensure_ascii=False).encode()}


def draw_values(data: st.DataObject, schemas: dict[str, Any]) -> dict[str, Any]:
    """Draw values for some keys of schemas: those that need one, and now and then something else."""
    drawn: dict[str, Any] = {}
    for name, schema in schemas.items():
        if "properties" in schema:
            drawn[name] = draw_values(data, schema["properties"])
        elif "default" not in schema or data.draw(st.booleans()):
            is_odd = data.draw(st.integers(0, 19)) == 0
            drawn[name] = data.draw(DATA if is_odd else OF_TYPE[schema["type"]])
    return drawn


@given(schemas=SECTIONS, data=st.data())
def test_values_fit_their_schema_or_are_refused(schemas: dict[str, Any], data: st.DataObject) -> None:
    spec, layer = draw_values(data, schemas), draw_values(data, schemas)
    try:
        documents = [
            parse_document(json.dumps({VALUES_KEY: values}, ensure_ascii=False), file=file, layer=file)
            for values, file in ((layer, "defaults.yaml"), (spec, "spec.yaml"))
        ]
        family = parse_family(make_files(schemas), "any", "families/any", "pack p 1")
        values = merge_values(family.values, documents[:1], documents[1])
        schema = render_family_schema("any", close_schema(family.values.tree[VALUES_KEY]), ApiDefinitions({}))
        require_values(values, schema, family.title)
    except SpecError as error:
        assert all(problem.where.partition(":")[0] for problem in error.problems)
        return
    text = render_values_yaml("any", build_nodes(family.values.tree[VALUES_KEY], values.tree), is_training=False)
    written = yaml.safe_load(text) or {}
    assert written == values.tree
    jsonschema.Draft202012Validator(schema).validate(written)


@given(values=ODD)
def test_an_odd_family_is_taken_or_refused(values: Any) -> None:
    try:
        parse_family(make_files(values), "any", "families/any", "pack p 1")
    except SpecError as error:
        assert error.problems
