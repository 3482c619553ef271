"""The spec that init writes: valid whatever a script's flags hold, and its scripts are what it says they are."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainchart.plan.layers import BUILTIN_LAYER
from trainchart.plan.resolve import resolve
from trainchart.plan.strategies import STRATEGIES
from trainchart.resources import read_builtin_defaults, read_script_template
from trainchart.scaffold.flag import make_flag
from trainchart.scaffold.model_name import is_model_name, suggest_model_name
from trainchart.scaffold.script import ScriptFacts, read_script
from trainchart.scaffold.spec_text import NewModel, render_spec
from trainchart.spec.document import parse_document
from trainchart.spec.model import ModelSpec

LONGEST_SCRIPT = 60


def resolve_text(text: str) -> ModelSpec:
    name, defaults = read_builtin_defaults()
    layer = parse_document(defaults, file=name, layer=BUILTIN_LAYER)
    return resolve(parse_document(text, file="new.yaml", layer="model spec"), [layer]).spec


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_script_and_a_valid_spec_serve_every_strategy(strategy: str) -> None:
    text = read_script_template()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= LONGEST_SCRIPT
    facts = read_script(text, "train.py")
    assert facts.notes == ()
    spec = resolve_text(render_spec(NewModel("new", strategy, "r/new", "training/new", ("python", "train.py"), facts)))
    assert spec.strategy == strategy
    assert list(spec.hyperparameters) == ["learningRate", "maxSteps", "batchSize"]
    assert all(parameter.description for parameter in spec.hyperparameters.values())
    assert list(spec.code.command) == ["python", "train.py"]


NOT_STORABLE = ("Cs", "Cc", "Cn", "Zl", "Zp")
VALUES = st.one_of(
    st.tuples(st.just("number"), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("integer"), st.integers(1 - 2**53, 2**53 - 1)),
    st.tuples(st.just("string"), st.text(st.characters(exclude_categories=NOT_STORABLE), max_size=40)),
    st.tuples(st.just("boolean"), st.booleans()),
)


@settings(max_examples=25)
@given(VALUES, st.text(max_size=60), st.sampled_from([".", "my code/a", "yes", "#x", "1e3"]))
def test_what_a_flag_holds_arrives_in_the_spec_unchanged(told: tuple[Any, Any], description: str, folder: str) -> None:
    kind, default = told
    flag = make_flag("--some_flag", kind, default, description, {})
    facts = ScriptFacts((flag,), {}, "single", ())
    spec = resolve_text(render_spec(NewModel("new", "single", "r/new", folder, ("python", "train.py"), facts)))
    parameter = spec.hyperparameters["someFlag"]
    assert (parameter.type, parameter.default) == (kind, default)
    assert parameter.description == flag.hyperparameter.description
    assert spec.code.path == folder


@pytest.mark.parametrize("default", ["a\nb", "a\tb", "\ufeffa", "a\u00adb", "\U000e0001", "😀\u200b"])
def test_letters_that_cannot_be_seen_arrive_unchanged(default: str) -> None:
    facts = ScriptFacts((make_flag("--sep", "string", default, "", {}),), {}, "single", ())
    text = render_spec(NewModel("new", "single", "r/new", ".", ("python", "train.py"), facts))
    assert all(letter.isprintable() for line in text.split("\n") for letter in line)
    assert resolve_text(text).hyperparameters["sep"].default == default


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("My Model", "my-model"),
        ("ResNet_50", "res-net-50"),
        ("3d-net", "model-3d-net"),
        ("models/mnist", "mnist"),
        ("x" * 41, "x" * 40),
        ("-", ""),
        ("42", ""),
        ("Größe", "grosse"),
        ("Über", "uber"),
        ("Łódź Æther", "lodz-aether"),
        ("cafe\u0301", "cafe"),
        ("модель", ""),
    ],
)
def test_a_wrong_name_gets_the_closest_right_one(typed: str, suggested: str) -> None:
    assert not is_model_name(typed)
    assert suggest_model_name(typed) == suggested
