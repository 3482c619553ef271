"""Gates: what users may write, which metric counts, and when a gate is met."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart.promotion.gates import Gate, check_gate, name_metrics, parse_gate

GATES = st.builds(
    Gate,
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_./:-]{0,20}", fullmatch=True).filter(lambda name: "evaluator/" not in name),
    st.sampled_from([">=", "<=", ">", "<"]),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0),
    st.booleans(),
)


@given(GATES)
def test_a_gate_reads_as_it_is_written(gate: Gate) -> None:
    assert parse_gate(str(gate)) == gate


@given(st.text(max_size=60) | st.from_regex(r"[a-z]{1,9}[<>]=?(serving)?[-+]?[0-9.eE]{0,30}", fullmatch=True))
def test_any_text_is_a_gate_or_refused(text: str) -> None:
    try:
        gate = parse_gate(text)
    except ValueError as error:
        assert "is not a gate; write" in str(error) or "too large" in str(error)
    else:
        assert math.isfinite(gate.number)
        assert parse_gate(str(gate)) == gate


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("accuracy>=0.9", Gate("accuracy", ">=", 0.9)),
        (" val_loss < -1e-3 ", Gate("val_loss", "<", -0.001)),
        ("evaluator/accuracy > .5", Gate("accuracy", ">", 0.5)),
        ("accuracy>=serving-0.01", Gate("accuracy", ">=", -0.01, is_relative=True)),
        ("loss<=serving + 0.1", Gate("loss", "<=", 0.1, is_relative=True)),
        ("accuracy>=serving", Gate("accuracy", ">=", 0.0, is_relative=True)),
    ],
)
def test_what_a_gate_means(text: str, gate: Gate) -> None:
    assert parse_gate(text) == gate


@pytest.mark.parametrize(
    "text",
    [
        "",
        "accuracy",
        "accuracy=0.9",
        "accuracy>=nan",
        "a>=1e999",
        "a>=b",
        "a>=serving*2",
        "0.9<=a",
        "evaluator/>=1",
        "a>=1" * 99,
    ],
)
def test_what_is_not_a_gate(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a gate; write 'accuracy>=0\.9'|too large"):
        parse_gate(text)


def test_evaluation_of_the_step_counts_most() -> None:
    reported = {"loss": 0.5, "accuracy": 0.7, "evaluator/accuracy": 0.8, "evaluator/auc": 0.6}
    assert name_metrics(reported, {"accuracy": 0.9}) == {"loss": 0.5, "accuracy": 0.9, "auc": 0.6}


@pytest.mark.parametrize(
    ("text", "metrics", "serving", "problem", "hint"),
    [
        ("accuracy>=0.9", {"accuracy": 0.9}, None, "", ""),
        ("accuracy>0.9", {"accuracy": 0.9}, None, "accuracy is 0.9, and must be > 0.9", ""),
        ("accuracy>=0.9", {"accuracy": math.nan}, None, "accuracy is nan, and must be >= 0.9", ""),
        ("loss<=0.5", {"loss": -math.inf}, None, "loss is -inf, and must be <= 0.5", ""),
        ("accuracy>=serving", {"accuracy": math.inf}, {"accuracy": 0.9}, "accuracy is inf, and must be >= 0.9", ""),
        ("accuracy>=serving-0.01", {"accuracy": 0.9}, {"accuracy": 0.905}, "", ""),
        ("accuracy>=serving", {"accuracy": 0.9}, {"accuracy": 0.95}, "must be >= 0.95 (serving)", ""),
        ("accuracy>=0.9", {}, None, "the run has no metrics", "add an evaluator role to the model"),
        ("accuracy>=0.9", {"loss": 1.0, "auc": 1.0}, None, "no metric accuracy", "it has: auc, loss"),
        ("accuracy>=serving", {"accuracy": 0.9}, None, "was not promoted", "'accuracy>=0.9'"),
        (
            "accuracy>=serving",
            {"accuracy": 0.9},
            {"loss": 1.0},
            "the model that is serving now has no metric accuracy",
            "number",
        ),
    ],
)
def test_when_a_gate_is_met(
    text: str, metrics: dict[str, float], serving: dict[str, float] | None, problem: str, hint: str
) -> None:
    result = check_gate(parse_gate(text), metrics, serving)
    assert result.has_passed == (not problem)
    assert problem in result.problem
    assert hint in result.hint
