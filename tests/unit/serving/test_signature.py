"""What signatures of a model are, in words, and the example of zeros that is made from one."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.serving.signature import (
    Signature,
    Tensor,
    count_values,
    describe_signature,
    expect_inputs,
    make_zeros,
    parse_metadata,
)

IMAGE = Tensor("image", "float32", (None, 2, 3))
ROW = Tensor("row", "int64", (None,))
SCORES = Tensor("scores", "float32", (None, 10))


def make_document(name: str = "serving_default", **inputs: Any) -> dict[str, Any]:
    body = {"inputs": inputs, "outputs": {}, "method_name": ""}
    return {"metadata": {"signature_def": {"signature_def": {name: body}}}}


def make_info(dtype: str, *sizes: int, is_unknown: bool = False) -> dict[str, Any]:
    dims = [{"size": str(size), "name": ""} for size in sizes]
    return {"dtype": dtype, "tensor_shape": {"dim": dims, "unknown_rank": is_unknown}}


def test_metadata_say_types_and_shapes() -> None:
    document = make_document(
        b=make_info("DT_STRING", -1), a=make_info("DT_FLOAT", -1, 28), c=make_info("DT_COMPLEX64", is_unknown=True)
    )
    (signature,) = parse_metadata(document).values()
    assert list(signature.inputs.values()) == [
        Tensor("a", "float32", (None, 28)),
        Tensor("b", "string", (None,)),
        Tensor("c", "DT_COMPLEX64", None),
    ]


@pytest.mark.parametrize(
    "document",
    [
        *(None, [], {}, {"metadata": 3}, {"metadata": {"signature_def": {"signature_def": []}}}),
        make_document("__saved_model_init_op"),
        make_document(x=3),
        make_document(x={"dtype": "DT_FLOAT", "tensor_shape": {"dim": 4}}),
        make_document(x={"dtype": "DT_FLOAT", "tensor_shape": {"dim": [{"size": "many"}]}}),
        make_document(x=make_info("DT_FLOAT", *range(65))),
    ],
)
def test_what_is_no_metadata_is_refused(document: Any) -> None:
    with pytest.raises(ValueError):
        parse_metadata(document)


def test_a_signature_is_described_in_words() -> None:
    signature = Signature("serving_default", {"image": IMAGE, "row": ROW}, {"scores": SCORES})
    assert describe_signature(signature) == [
        "takes any number of examples, each with:",
        "  image   2 × 3 float32 numbers",
        "  row     one int64 number",
        "returns for each:",
        "  scores  10 float32 numbers",
    ]
    assert expect_inputs(signature) == "serving_default takes image float32 [?,2,3], row int64 [?]"


def test_a_signature_without_examples_is_described() -> None:
    inputs = {"turns": Tensor("turns", "int32", ()), "any": Tensor("any", "string", None)}
    outputs = {"sum": Tensor("sum", "bool", (None, 4))}
    assert describe_signature(Signature("spin", inputs, outputs)) == [
        "takes in a request:",
        "  turns  one int32 number",
        "  any    strings, in any shape",
        "returns:",
        "  sum    4 booleans",
    ]


@pytest.mark.parametrize(
    ("inputs", "outputs", "zeros"),
    [
        ([IMAGE], [SCORES], {"instances": [[[0.0] * 3] * 2]}),
        ([IMAGE, ROW], [SCORES], {"instances": [{"image": [[0.0] * 3] * 2, "row": 0}]}),
        ([Tensor("t", "string", (None, None))], [SCORES], {"instances": [[""]]}),
        ([Tensor("n", "int32", ())], [SCORES], {"inputs": 0}),
        ([Tensor("f", "bool", (2,))], [SCORES], {"inputs": [False, False]}),
        ([ROW], [Tensor("sum", "int64", ())], {"inputs": [0]}),
        ([Tensor("z", "DT_COMPLEX64", (None,))], [SCORES], None),
    ],
)
def test_an_example_of_zeros_fits(inputs: list[Tensor], outputs: list[Tensor], zeros: Any) -> None:
    signature = Signature(
        "serving_default", {each.name: each for each in inputs}, {each.name: each for each in outputs}
    )
    assert make_zeros(signature) == zeros


def test_an_example_without_values_is_counted_by_its_lists() -> None:
    signature = Signature("a", {"x": Tensor("x", "int32", (None, 0, 10**12))}, {"x": ROW})
    assert count_values(signature) == 10**12


@pytest.mark.parametrize("size", ["9" * 5000, "many", "", "1.5", "１"])
def test_a_size_that_is_no_number_is_refused(size: str) -> None:
    tensor = {"dtype": "DT_INT32", "tensor_shape": {"dim": [{"size": size}]}}
    signatures = {"a": {"inputs": {"x": tensor}, "outputs": {}}}
    with pytest.raises(ValueError, match="size of a dimension"):
        parse_metadata({"metadata": {"signature_def": {"signature_def": signatures}}})


def test_an_example_names_a_signature_that_is_not_the_default() -> None:
    assert make_zeros(Signature("other", {"row": ROW}, {"row": ROW})) == {"signature_name": "other", "instances": [0]}
