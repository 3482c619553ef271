"""What the schema of a chart refuses because nothing further down could."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from trainchart.actions.schema import read_spec_schema
from trainchart.json_documents import resolve_reference

GOLDEN = Path(__file__).parents[2] / "golden" / "parameter-server" / "chart"
SCHEMA = json.loads((GOLDEN / "values.schema.json").read_text())


def refused(path: str, value: object) -> bool:
    schema = SCHEMA
    for key in path.split("."):
        schema = resolve_reference(schema["properties"][key], SCHEMA)
    schema = {**schema, "$defs": SCHEMA["$defs"]}
    return not jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("path", "good", "bad"),
    [
        ("serviceAccount.name", "trainer.v1", "Team/A"),
        ("volumes.data.existingClaim", "", "no such claim"),
        ("tensorboard.ingress.tlsSecret", "tls", "TLS"),
        ("hyperparameters.tag", "two\n\tlines", "a\x7fb"),
        ("hyperparameters.tag", 2**53 - 1, 2**53),
        ("env", {"A": "9007199254740993"}, {"A": 2**53}),
        ("env", {"A": -(2**53) + 1}, {"A": -(2**53)}),
        ("roles.worker.env", {"A": 1.5}, {"A": 1e300}),
        ("podLabels", {"a": 2**53 - 1}, {"a": 2**53}),
        ("podAnnotations", {"a": 2**53 - 1}, {"a": 2**53}),
        ("nodeSelector", {"a": 2**53 - 1}, {"a": 2**53}),
        ("image.tag", 2**53 - 1, 2**53),
        ("run.id", 20261121, 2**53),
        ("roles.worker.memory", 2**33, 2**53),
        ("commonLabels", {"team": 7}, {"team": -7}),
        ("roles.worker.memory", "2Ki", "2K"),
    ],
)
def test_names_texts_and_quantities(path: str, good: object, bad: object) -> None:
    assert not refused(path, good)
    assert refused(path, bad)


@pytest.mark.parametrize("key", ["default", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"])
def test_whole_numbers_of_specs_are_those_that_helm_carries(key: str) -> None:
    schema = read_spec_schema()
    of_one = {"$ref": "#/$defs/Hyperparameter", "$defs": schema["$defs"]}
    is_valid = jsonschema.Draft202012Validator(of_one).is_valid
    for sign in (1, -1):
        assert is_valid({"type": "integer", key: sign * (2**53 - 1)})
        assert not is_valid({"type": "integer", key: sign * 2**53})
    assert is_valid({"type": "number", key: 1e300})
    assert is_valid({"type": "integer"})
