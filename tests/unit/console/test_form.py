"""The form of a chart: which values have a field, what it says, and what is typed there as values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trainchart.console.form import FIELDS_SHOWN, Field, list_fields, make_form, place_problem, read_values
from trainchart.console.installing import NOWHERE, YAML, Typed
from trainchart.json_documents import parse_json
from trainchart.kubernetes_yaml import parse_mapping

CHART = Path(__file__).parent.parent.parent.parent / "charts" / "mnist"
VALUES = parse_mapping((CHART / "values.yaml").read_text())
SCHEMA = parse_json((CHART / "values.schema.json").read_text())
FORM = make_form(VALUES, SCHEMA)


def find(key: str) -> Field:
    return next(field for field in list_fields(FORM) if field.key == key)


def test_a_generated_chart_has_the_fields_that_users_change() -> None:
    assert [section.title for section in FORM] == [
        "Hyperparameters", "Role chief", "Role worker", "Role ps", "Role evaluator", "Run", "Image",
    ]  # fmt: skip
    batch = find("hyperparameters.batchSize")
    assert (batch.label, batch.default, batch.rule) == ("Batch size", "64", "a whole number, at least 1")
    assert batch.help == "Examples per step of one worker."
    assert find("roles.worker.replicas").rule == "a whole number, 1 to 1000"
    assert find("hyperparameters.learningRate").rule == "more than 0"
    # There is always one chief.
    assert "roles.chief.replicas" not in [field.key for field in list_fields(FORM)]


def test_only_what_differs_is_passed_on_with_its_type() -> None:
    fields = {
        "hyperparameters.batchSize": "128",
        "hyperparameters.learningRate": "5e-2",
        "hyperparameters.maxSteps": "",
        "roles.worker.cpu": "500m",
        "roles.ps.cpu": "2",
        "image.tag": "1.10",
        "unknown.key": "7",
    }
    yaml = "run: {maxRestarts: 3, resume: latest}\nenv: {A: 1}\nnodeSelector: {}\n"
    read = read_values(FORM, VALUES, Typed(fields=fields, yaml=yaml))
    assert read.problems == {}
    assert read.changed == {
        "hyperparameters": {"batchSize": 128},
        "roles": {"worker": {"cpu": "500m"}, "ps": {"cpu": 2}},
        "image": {"tag": "1.10"},
        "run": {"resume": "latest"},
        "env": {"A": 1},
    }


def test_the_yaml_text_counts_over_the_fields() -> None:
    typed = Typed(fields={"hyperparameters.seed": "3"}, yaml="hyperparameters: {seed: 4}")
    assert read_values(FORM, VALUES, typed).changed == {"hyperparameters": {"seed": 4}}
    same = Typed(fields={"hyperparameters.seed": "3"}, yaml="hyperparameters: {seed: 1}")
    assert read_values(FORM, VALUES, same).changed == {}


@pytest.mark.parametrize("text", ["9" * 5000, "1e999", "x", "0x10", "1,5", "٣"])
def test_what_is_no_number_stays_a_text_for_helm_to_refuse(text: str) -> None:
    read = read_values(FORM, VALUES, Typed(fields={"hyperparameters.batchSize": text}))
    assert read.changed == {"hyperparameters": {"batchSize": text}}


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("a: [", "line 2"),
        ("a: 1\na: 2", "line 2: the key a appears twice"),
        ("- 1", "expected keys"),
        ("a: 1\n---\nb: 2", "expected keys"),
        ("a: &x [*x]", "contains itself"),
        (f"a: {'[' * 5000}", "nesting"),
        ("a: [" + "1," * 60_000 + "]", "more than 20000"),
    ],
)
def test_yaml_that_helm_would_not_take_is_refused(yaml: str, said: str) -> None:
    read = read_values(FORM, VALUES, Typed(fields={"hyperparameters.seed": "3"}, yaml=yaml))
    assert list(read.problems) == [YAML]
    assert said in read.problems[YAML][0]
    assert read.changed == {"hyperparameters": {"seed": 3}}


def test_a_problem_stands_where_it_is_corrected() -> None:
    message = "hyperparameters.seed: 0 is less"
    assert place_problem(message, FORM, Typed()) == ("hyperparameters.seed", "0 is less")
    assert place_problem(message, FORM, Typed(yaml="hyperparameters: {seed: 0}")) == (YAML, message)
    assert place_problem("it does not render: x", FORM, Typed()) == (NOWHERE, "it does not render: x")
    assert place_problem("unknown key x", FORM, Typed(yaml="x: 1"))[0] == YAML


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": []},
        {"properties": {"hyperparameters": {"$ref": "#"}}},
        {"properties": {"hyperparameters": {"properties": {"a": {"$ref": "#/properties/hyperparameters"}}}}},
        {"properties": {"hyperparameters": {"properties": {"a": {"type": [1, {}], "enum": [[], {}], "minimum": "x"}}}}},
        {"properties": {"hyperparameters": {"properties": {"a": {"enum": list(range(10_000)), "maximum": True}}}}},
        {"properties": {"hyperparameters": {"properties": {"a": True}}}, "$ref": "#"},
        {"properties": {"hyperparameters": {"properties": {"a": {"type": "integer", "minimum": 10**400}}}}},
        {"properties": {"hyperparameters": {"properties": {"a": {"description": "x" * 100_000}}}}},
    ],
)
def test_an_odd_schema_still_makes_a_form(schema: Any) -> None:
    (section,) = make_form({"hyperparameters": {"a": 1, "b.c": 2, "__proto__": {}, "": 1, "x" * 99: 1}}, schema)
    (field,) = section.fields
    assert (field.key, field.default, field.choices) == ("hyperparameters.a", "1", ())
    assert len(field.help) <= 400


def test_a_form_has_a_bounded_number_of_fields() -> None:
    values = {"hyperparameters": {f"a{number}": number for number in range(10_000)}}
    assert len(list_fields(make_form(values, {}))) == FIELDS_SHOWN


def test_choices_keep_their_type() -> None:
    schema = {"properties": {"a": {"enum": [1, "two", True, None]}, "b": {"type": "boolean"}}}
    form = make_form({"a": 1, "b": False}, schema)
    assert [field.choices for field in list_fields(form)] == [("1", "two", "true", ""), ("true", "false")]
    read = read_values(form, {"a": 1, "b": False}, Typed(fields={"a": "true", "b": "true"}))
    assert read.changed == {"a": True, "b": True}
