"""Helm's messages, as its versions really print them, become short ones."""

from __future__ import annotations

import pytest

from trainchart.helm.asked import Asked
from trainchart.helm.errors import clean_lint_message, render_error

FALLBACK = "the chart's values.yaml lists the keys that it accepts"
HEADER = "values don't meet the specifications of the schema(s) in the following chart(s):\n"


@pytest.mark.parametrize(
    ("raw", "problems"),
    [
        (
            f"Error: {HEADER}mnist:\n- at '': additional properties 'foo', 'two' not allowed\n- at '/a': got\n",
            ["a: got", f"unknown key foo\n  hint: {FALLBACK}", f"unknown key two\n  hint: {FALLBACK}"],
        ),
        (
            'level=WARN msg="odd"\nError: execution error at (mnist/charts/left/templates/a.yaml:1:6): no claim\n\n'
            "Use --debug flag to render out invalid YAML\n",
            ["charts/left/templates/a.yaml:1:6: no claim"],
        ),
        (
            "Error: YAML parse error on mnist/templates/z.yaml: error converting YAML to JSON: yaml: line 3: tab\n",
            ["templates/z.yaml: renders to invalid YAML: line 3: tab"],
        ),
    ],
)
def test_one_line_a_problem(raw: str, problems: list[str]) -> None:
    error = render_error(raw, "mnist", Asked(chart="mnist"))
    assert [str(problem) for problem in error.problems] == problems


def test_other_failures_keep_helms_last_words() -> None:
    error = render_error(
        "WARNING: group-readable\nError: chart requires kubeVersion: >=1.99 which is not v1.36\n", "mnist"
    )
    assert error.message == "chart mnist does not render: chart requires kubeVersion: >=1.99 which is not v1.36"
    assert error.problems == ()


@pytest.mark.parametrize(
    "raw",
    [
        "Error: cannot load values.yaml: error converting YAML to JSON: yaml: line 1: did not find expected ','",
        "cannot load values.yaml: cannot unmarshal yaml document: error converting YAML to JSON: yaml: line 1: "
        "did not find expected ','",
    ],
)
def test_a_values_file_that_cannot_be_read(raw: str) -> None:
    error = render_error(raw, "mnist")
    assert (
        error.message
        == "values.yaml of chart mnist does not contain keys with values: line 1: did not find expected ','"
    )
    assert "restore it" in error.hint
    assert "trainchart generate" in error.hint


def test_lint_messages_are_one_line() -> None:
    assert (
        clean_lint_message("- at '/a': got string, want integer\n") == "a: a string is given, expected a whole number"
    )
    assert clean_lint_message("first\n  second\n") == "first; second"
