"""What a refused value should be: in words, never as a pattern, a term of pydantic, or an exception of Python's own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from trainchart.errors import PlanError, SpecError
from trainchart.plan.chart_plan import ChartPlan
from trainchart.plan.wording import expect
from trainchart.spec.model import ModelSpec

Resolve = Callable[..., ChartPlan]

FOREIGN = re.compile(r"Input|String should|List should|format code|pattern '|invalid literal|Error\b|object of type")


@pytest.mark.parametrize(
    ("definition", "says"),
    [
        ("type: integer, default: '200'", "default: '200' is a string, expected a whole number; write 200"),
        ("type: integer, default: '200', minimum: 1", "default: '200' is a string, expected a whole number; write 200"),
        ("type: number, default: '0.1'", "default: '0.1' is a string, expected a number; write 0.1"),
        ("type: boolean, default: 'true'", "default: 'true' is a string, expected true or false; write true"),
        ("type: integer, default: many", "default: 'many' is a string, expected a whole number"),
        ("type: integer, default: 200.0", "default: 200.0 is a number, expected a whole number; write 200"),
        ("type: integer, default: true", "default: true is a truth value, expected a whole number"),
        ("type: string, default: 5", 'default: 5 is a number, expected a string; write "5"'),
        ("type: integer, minimum: '1'", "minimum: '1' is not accepted\n  hint: expected a finite number; write 1"),
        (
            "type: number, default: [1]",
            "[1] is not accepted\n  hint: expected a finite number, a string, true or false",
        ),
    ],
)
def test_a_hyperparameter_is_told_what_it_should_be(resolved: Resolve, spec: str, definition: str, says: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolved(f"{spec}hyperparameters: {{steps: {{{definition}}}}}\n")
    (problem,) = caught.value.problems
    assert str(problem).endswith(says)
    assert not FOREIGN.search(str(problem))


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("1e-3", "write lr: {type: number, default: 1e-3}"),
        ("10", "write lr: {type: integer, default: 10}"),
        ("adam", "write lr: {type: string, default: adam}"),
        ("true", "write lr: {type: boolean, default: true}"),
        ("[1]", "expected a mapping of keys to values"),
    ],
)
def test_a_default_alone_is_told_how_to_be_written(resolved: Resolve, spec: str, written: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        resolved(f"{spec}hyperparameters: {{lr: {written}}}\n")
    assert caught.value.problems[0].hint == hint


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("mountPath: /checkpoints", "mountPath: checkpoints", "expected an absolute path without colons"),
        ("name: mnist", "name: Typo_1", "expected at most 40 lower-case letters, digits and dashes"),
        ("[python, -m, mnist.train]", "python -m mnist.train", "expected a list: [python, -m, mnist.train]"),
        ("[python, -m, mnist.train]", "[]", "expected a list that is not empty"),
        ("replicas: 2", "replicas: '2'", "expected a whole number; write 2"),
        ("replicas: 2", "replicas: -1", "expected 0 or more"),
        ("registry.example.com/ml/mnist", "R/Mnist", "expected registry and name in lower case"),
        ("memory: 8Gi", "memory: 8 GB", "roles.worker.memory: '8 GB' is not a positive quantity"),
        ("memory: 8Gi", "memory: 8 GB", "did you mean 8Gi?"),
        ("roles:", "version: 1.0\nroles:", "version: 1.0 is not a string"),
        ("roles:", "version: 1.0\nroles:", 'quote it: "1.0.0"'),
        ("roles:", "version: 12\nroles:", 'quote it: "12.0.0"'),
        ("size: 20Gi", "size: 20GB", "volumes.checkpoints.size: '20GB' is not a positive quantity"),
        ("size: 20Gi", "size: 5", "did you mean 5Gi?"),
        ("memory: 8Gi", "memory: 8Gi, tmpSize: 500", "did you mean 500Mi?"),
        ("memory: 8Gi", "memory: 8Gi, tmpSize: 512m", "did you mean 512Mi?"),
        (
            "roles:",
            "run: {startDeadline: 5 minutes}\nroles:",
            "run.startDeadline: '5 minutes' is not a duration such as 30m",
        ),
        (
            "roles:",
            "run: {evaluatorGrace: 5 minutes}\nroles:",
            "run.evaluatorGrace: '5 minutes' is not a duration such as 30m",
        ),
        (
            "roles:",
            "run: {activeDeadline: 5 minutes}\nroles:",
            "run.activeDeadline: '5 minutes' is not a duration such as 30m",
        ),
        (
            "roles:",
            "run: {lostNodeTimeout: 5 minutes}\nroles:",
            "run.lostNodeTimeout: '5 minutes' is not a duration such as 30m",
        ),
        (
            "roles:",
            "run: {noProgressTimeout: 5 minutes}\nroles:",
            "run.noProgressTimeout: '5 minutes' is not a duration such as 30m",
        ),
    ],
)
def test_a_value_is_told_what_it_should_be(resolved: Resolve, spec: str, old: str, new: str, says: str) -> None:
    with pytest.raises((SpecError, PlanError)) as caught:
        resolved(spec.replace(old, new, 1))
    (problem,) = caught.value.problems
    assert says in str(problem)
    assert not FOREIGN.search(str(problem))


def test_every_pattern_of_the_spec_has_words(resolved: Resolve) -> None:
    """A new pattern in the spec needs a line in wording.py, or users read the pattern."""

    def patterns(node: object, key: str = "") -> list[tuple[str, str]]:
        if isinstance(node, dict):
            below = [found for name, part in node.items() for found in patterns(part, str(name))]
            return below + ([(key, str(node["pattern"]))] if node.get("type") == "string" and "pattern" in node else [])
        return [found for part in node for found in patterns(part, key)] if isinstance(node, list) else []

    found = patterns(ModelSpec.model_json_schema(by_alias=True))
    assert len(found) > 8
    for key, pattern in found:
        name = f"framework.{key}" if key == "tensorflow" else key
        assert "pattern" not in expect("string_pattern_mismatch", name, "x", {"pattern": pattern}, ""), (key, pattern)
