"""From what a file holds to the request that is meant, and from the answer to outputs by name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.serving.request import (
    Prediction,
    draw_prediction,
    is_shortened,
    make_request,
    parse_input,
    read_answer,
)
from trainchart.serving.signature import Signature, Tensor

X = Tensor("x", "float32", (None, 2))
N = Tensor("n", "string", (None,))
Y = Tensor("y", "float32", (None, 3))
ONE = Signature("serving_default", {"x": X}, {"y": Y})
TWO = Signature("serving_default", {"x": X, "n": N}, {"y": Y, "n": N})
FIXED = Signature("spin", {"turns": Tensor("turns", "int32", ())}, {"sum": Tensor("sum", "float32", ())})
SIGNATURES = (ONE, TWO, FIXED, Signature("any", {"x": Tensor("x", "float32", None)}, {"y": Y}))


@pytest.mark.parametrize(
    ("value", "signature", "body", "is_single"),
    [
        ([1, 2], ONE, {"instances": [[1, 2]]}, True),
        ([[1, 2], [3, 4]], ONE, {"instances": [[1, 2], [3, 4]]}, False),
        ([[1, 2]], ONE, {"instances": [[1, 2]]}, False),
        ({"x": [1, 2]}, ONE, {"inputs": {"x": [[1, 2]]}}, True),
        ({"x": [[1, 2]]}, ONE, {"inputs": {"x": [[1, 2]]}}, False),
        ({"x": [1, 2], "n": "a"}, TWO, {"inputs": {"x": [[1, 2]], "n": ["a"]}}, True),
        ({"x": [1, 2], "n": {"b64": "AA=="}}, TWO, {"inputs": {"x": [[1, 2]], "n": [{"b64": "AA=="}]}}, True),
        ([{"x": [1, 2], "n": "a"}], TWO, {"instances": [{"x": [1, 2], "n": "a"}]}, False),
        (3, FIXED, {"inputs": {"turns": 3}}, False),
        ({"instances": [[1, 2]]}, ONE, {"instances": [[1, 2]]}, False),
        ({"inputs": [[1, 2]], "signature_name": "o"}, ONE, {"inputs": [[1, 2]], "signature_name": "o"}, False),
    ],
)
def test_a_request_is_what_a_file_means(value: Any, signature: Signature, body: Any, is_single: bool) -> None:
    made = make_request(value, signature, is_named=False)
    assert (json.loads(made.body), made.is_single) == (body, is_single)


def test_a_request_names_the_signature_that_was_asked_for() -> None:
    assert json.loads(make_request(3, FIXED, is_named=True).body)["signature_name"] == "spin"


@pytest.mark.parametrize(
    ("value", "signature", "words"),
    [
        ([1, 2], TWO, r'the model takes 2 inputs: give each by its name, as in \{"x": "…", "n": "…"\}'),
        ({"x": [1, 2]}, TWO, "the input n is missing"),
        ({"x": [1, 2], "z": 1}, ONE, "the model has no input z"),
        ({}, ONE, "the input x is missing"),
    ],
)
def test_what_a_model_does_not_take_is_refused(value: Any, signature: Signature, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_request(value, signature, is_named=False)


@pytest.mark.parametrize(
    ("document", "signature", "is_single", "outputs", "examples"),
    [
        ({"predictions": [[1, 2, 3]]}, ONE, True, {"y": [1, 2, 3]}, None),
        ({"predictions": [[1, 2, 3]]}, ONE, False, {"y": [[1, 2, 3]]}, 1),
        ({"outputs": [[1, 2, 3]]}, ONE, True, {"y": [1, 2, 3]}, None),
        ({"predictions": [{"y": [1], "n": "a"}]}, TWO, False, {"y": [[1]], "n": ["a"]}, 1),
        ({"outputs": {"y": [[1]], "n": ["a"]}}, TWO, True, {"y": [1], "n": "a"}, None),
        ({"outputs": 4.5}, FIXED, False, {"sum": 4.5}, None),
    ],
)
def test_an_answer_is_read_by_name(
    document: Any, signature: Signature, is_single: bool, outputs: Any, examples: int | None
) -> None:
    assert read_answer(document, signature, is_single=is_single) == Prediction(outputs, examples)


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"predictions": 3}, {"outputs": 3}, {"predictions": [], "outputs": []}, {"error": "no"}],
)
def test_what_is_no_answer_is_refused(document: Any) -> None:
    with pytest.raises(ValueError):
        read_answer(document, ONE, is_single=False)


def test_one_example_is_a_table_of_names_and_values() -> None:
    drawn = draw_prediction(Prediction({"y": [0.123456789, 2.0], "name": "a", "long": [[0.5] * 100]}, None))
    assert drawn[:3] == ["y[0]  0.123457", "y[1]  2", 'name  "a"']
    assert drawn[3].startswith("long  [[0.5, 0.5, ") and drawn[3].endswith("…") and len(drawn[3]) < 220
    assert is_shortened(drawn)


@pytest.mark.parametrize("value", ["a" * 1_000_000, int("9" * 4000), {"a": "b" * 1000}, [1.0, "a" * 1000]])
def test_a_long_value_is_cut_off(value: Any) -> None:
    for output in (value, [value]):
        drawn = draw_prediction(Prediction({"y": output}, None))
        assert is_shortened(drawn) and max(map(len, drawn)) < 220


def test_several_examples_are_numbered() -> None:
    drawn = draw_prediction(Prediction({"y": [[1.5, 2], [3, 4]], "n": ["a", "b"]}, 2))
    assert drawn == [
        "example  output  value",
        "0        y       [1.5, 2]",
        '0        n       "a"',
        "1        y       [3, 4]",
        '1        n       "b"',
    ]


def test_of_many_examples_the_first_are_drawn() -> None:
    drawn = draw_prediction(Prediction({"y": [1.5] * 100_000}, 100_000))
    assert len(drawn) == 502
    assert drawn[-2:] == ["499      y       1.5", "… and 99500 more: --format json shows all"]
    # Each has a line for each output.
    drawn = draw_prediction(Prediction({f"y{at}": [1] * 3 for at in range(400)}, 3))
    assert (len(drawn), drawn[-1]) == (402, "… and 2 more: --format json shows all")


def test_rows_without_the_outputs_do_not_add_up() -> None:
    many = Signature("many", ONE.inputs, {f"y{at}": TWO.outputs["y"] for at in range(6)})
    with pytest.raises(ValueError, match="more than 5000000 values"):
        read_answer({"predictions": [{}] * 1_000_000}, many, is_single=False)


def test_the_only_example_of_several_is_drawn_like_one() -> None:
    assert draw_prediction(Prediction({"y": [[1.5, 2]]}, 1)) == ["y[0]  1.5", "y[1]  2"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["x", "n", "y", "b64", "inputs", "instances"]), inner)
    ),
    max_leaves=12,
)


def send(name: str, content: bytes) -> None:
    """Do with a file what can be done without a server; nothing but ValueError may come of it."""
    try:
        value = parse_input(name, content, 1_000_000)
    except ValueError:
        return
    for signature in SIGNATURES:
        try:
            made = make_request(value, signature, is_named=True)
        except ValueError:
            continue
        assert isinstance(json.loads(made.body), dict)


@given(JSON)
def test_any_json_is_a_request_or_refused(value: Any) -> None:
    send("a.json", json.dumps(value).encode())


@given(st.binary(max_size=60))
@pytest.mark.parametrize("name", ["a.json", "a.npy", "a.npz"])
def test_any_bytes_are_refused_with_a_reason(name: str, content: bytes) -> None:
    send(name, content)


@given(JSON)
def test_any_answer_is_read_or_refused(document: Any) -> None:
    for body in (document, {"predictions": document}, {"outputs": document}):
        for signature in SIGNATURES:
            try:
                prediction = read_answer(body, signature, is_single=True)
            except ValueError:
                continue
            assert all("\n" not in line for line in draw_prediction(prediction))


@pytest.mark.parametrize("depth", [900, 5_000, 200_000])
def test_deep_json_is_a_request_or_refused(depth: int) -> None:
    send("a.json", b"[" * depth + b"]" * depth)
    deep: Any = 1.0
    for _ in range(depth):
        deep = [deep]
    draw_prediction(read_answer({"predictions": deep}, ONE, is_single=False))
