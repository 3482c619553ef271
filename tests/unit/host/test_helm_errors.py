"""Helm's messages, as its versions really print them, become short ones."""

from __future__ import annotations

import pytest

from trainchart.host.helm_errors import clean_lint_message, render_error

HEADER = "values don't meet the specifications of the schema(s) in the following chart(s):\n"


@pytest.mark.parametrize(
    ("raw", "problems"),
    [
        (
            f"Error: {HEADER}mnist:\n- at '': additional properties 'foo', 'two' not allowed\n- at '/a/0/b~1c': got\n",
            ["a.0.b/c: got", "values: unknown key 'foo'", "values: unknown key 'two'"],
        ),
        (
            f"Error: {HEADER}mnist:\n- at '/a': 'oneOf' failed, none matched\n  - at '/a': got string, want integer\n"
            "  - at '/a': 'x' does not match pattern '^[0-9]+$'\n",
            ["a: 'oneOf' failed, none matched; got string, want integer; 'x' does not match pattern '^[0-9]+$'"],
        ),
        (
            f"Error: {HEADER}mnist:\n- (root): Additional property foo is not allowed\n"
            "- worker.replicas: Invalid type. Expected: integer, given: string\n",
            ["values: unknown key 'foo'", "worker.replicas: Invalid type. Expected: integer, given: string"],
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
    assert [str(problem) for problem in render_error(raw, "mnist").problems] == problems


def test_other_failures_keep_helms_last_words() -> None:
    error = render_error(
        "WARNING: group-readable\nError: chart requires kubeVersion: >=1.99 which is not v1.36\n", "mnist"
    )
    assert error.message == "chart mnist does not render: chart requires kubeVersion: >=1.99 which is not v1.36"
    assert error.problems == ()


def test_lint_messages_are_one_line() -> None:
    assert clean_lint_message("- at '/a': got string, want integer\n") == "a: got string, want integer"
    assert clean_lint_message("first\n  second\n") == "first; second"
