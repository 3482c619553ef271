"""Progress files as programs write them, and as they should not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainchart_runtime.contract import hyperparameter_variable
from trainchart_runtime.progress import Progress, parse_progress


def test_a_full_report():
    text = '{"step": 20, "examples_per_second": 512.5, "metrics": {"loss": 0.5, "accuracy": 1}}'
    assert parse_progress(text) == Progress(20, 512.5, {"loss": 0.5, "accuracy": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Progress()),
        ('{"step": 2', Progress()),
        ("[]", Progress()),
        ('{"step": true, "examples_per_second": "fast", "metrics": [1]}', Progress()),
        ('{"step": 7.0}', Progress(step=7)),
        ('{"step": NaN, "metrics": {"loss": NaN, "best": 2}}', Progress(metrics={"best": 2}, nan_metrics=("loss",))),
        ('{"metrics": {"loss": Infinity, "a": "NaN", "b": null}}', Progress()),
        ('{"step": 1e999}', Progress()),
    ],
)
def test_what_is_unusable_is_left_out(text, expected):
    assert parse_progress(text) == expected


@given(st.text())
def test_no_text_raises(text):
    parse_progress(text)


@pytest.mark.parametrize(
    ("name", "expected"), [("learningRate", "TRAINCHART_HP_LEARNING_RATE"), ("max_steps", "TRAINCHART_HP_MAX_STEPS")]
)
def test_hyperparameter_variable(name, expected):
    assert hyperparameter_variable(name) == expected
