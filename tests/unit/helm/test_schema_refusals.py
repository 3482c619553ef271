"""What a chart's schema refuses, in the words of Helm, becomes what, what is expected, and what was meant."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.errors import Problem
from trainchart.helm.asked import Asked
from trainchart.helm.rendering import ValueOverrides
from trainchart.helm.schema_refusals import TOLD_LIMIT, find_refusals

HEADER = "values don't meet the specifications of the schema(s) in the following chart(s):\nmnist:\n"
COUNT = {"type": "integer", "minimum": 1, "description": "Number of pods.\nMore."}
RATE = {"type": ["number", "string"], "description": "Step size."}
SCHEMA = {
    "properties": {
        "image": {"$ref": "#/$defs/Image"},
        "roles": {"properties": {"worker": {"properties": {"replicas": COUNT, "gpus": COUNT, "memory": {}}}}},
        "hyperparameters": {"properties": {"maxSteps": COUNT, "epochs": COUNT}},
        "env": {"additionalProperties": {"anyOf": [{"type": "string"}, {"properties": {"valueFrom": {}}}]}},
        "tolerations": {"items": {"properties": {"effect": {}, "rate": RATE}}},
    },
    "$defs": {"Image": {"properties": {"tag": {"description": "Tag, never latest."}, "pullPolicy": {}}}},
}
QUANTITY = r"^[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+|m|k|Ki|[MGTPE]i?)?$"


def tell(line: str, *sets: str, files: tuple[str, ...] = ()) -> tuple[Problem, ...]:
    overrides = ValueOverrides(files=tuple(("v.yaml", text) for text in files), sets=sets)
    return find_refusals(HEADER + line, Asked({"mnist": SCHEMA}, "mnist", overrides))


@pytest.mark.parametrize(
    ("line", "given", "message", "hint"),
    [
        (
            "- at '': additional properties 'maxStep' not allowed",
            "maxStep=50",
            "unknown key maxStep",
            "did you mean hyperparameters.maxSteps?",
        ),
        (
            "- at '': additional properties 'hyperparameter' not allowed",
            "hyperparameter.epochs=1",
            "unknown key hyperparameter",
            "did you mean hyperparameters?",
        ),
        (
            "- at '/roles/worker': additional properties 'colour' not allowed",
            "roles.worker.colour=1",
            "unknown key roles.worker.colour",
            "known here: gpus, memory, replicas",
        ),
        (
            "- at '/hyperparameters': additional properties 'replicas' not allowed",
            "hyperparameters.replicas=3",
            "unknown key hyperparameters.replicas",
            "mnist declares epochs, maxSteps only: add replicas below `hyperparameters` in its model spec "
            "(models/mnist.yaml); this also holds for those that the training library knows",
        ),
        (
            "- at '': additional properties 'mode' not allowed",
            "mode=3",
            "unknown key mode",
            "known here: env, hyperparameters, image, roles, tolerations",
        ),
        (
            "- at '': additional properties 'tag' not allowed",
            "tag=x",
            "unknown key tag",
            "known here: env, hyperparameters, image, roles, tolerations",
        ),
        (
            "- at '': additional properties 'strategy' not allowed",
            "strategy=mirrored",
            "unknown key strategy",
            "a chart has one strategy: try another with trainchart run MODEL --strategy, or change the model spec",
        ),
        (
            "- at '': additional properties 'code' not allowed",
            "code.command={a}",
            "unknown key code",
            "code is a key of the model spec, not a value: change models/mnist.yaml, or set command, for one release",
        ),
        (
            "- at '/dnsPolicy': value must be one of '', 'ClusterFirst', 'Default'",
            "dnsPolicy=default",
            "dnsPolicy: 'default' is not known",
            "known here: ClusterFirst",
        ),
        (
            "- at '': additional properties 'apiVersion' not allowed",
            "apiVersion=x",
            "unknown key apiVersion",
            "apiVersion is a key of the model spec, not a value: change models/mnist.yaml",
        ),
        (
            "- at '/hyperparameters/epochs': got object, want integer",
            "hyperparameters.epochs.default=3",
            "hyperparameters.epochs: a mapping is given, expected a whole number",
            "give hyperparameters.epochs the value itself: its type, default and bounds are in the model spec",
        ),
        (
            "- at '/tolerations/0': additional properties 'efect' not allowed",
            "tolerations[0].efect=x",
            "unknown key tolerations.0.efect",
            "did you mean effect?",
        ),
        (
            "- at '/hyperparameters/maxSteps': got string, want integer",
            "hyperparameters.maxSteps=1e3",
            "hyperparameters.maxSteps: '1e3' is a string, expected a whole number",
            "write 1000",
        ),
        (
            "- at '/hyperparameters/maxSteps': got string, want integer",
            "hyperparameters.maxSteps=99999999999999999999",
            "hyperparameters.maxSteps: '99999999999999999999' is a string, expected a whole number",
            "",
        ),
        (
            "- at '/hyperparameters/maxSteps': got string, want integer",
            "hyperparameters.maxSteps=50",
            "hyperparameters.maxSteps: '50' is a string, expected a whole number",
            "give it as a number: --set, or without quotes",
        ),
        (
            "- at '/hyperparameters/maxSteps': got string, want integer",
            "hyperparameters.maxSteps=1.5",
            "hyperparameters.maxSteps: 1.5 is a number, expected a whole number",
            "",
        ),
        (
            "- at '/hyperparameters/maxSteps': got null, want integer",
            "hyperparameters.maxSteps=null",
            "hyperparameters.maxSteps: it has no value, expected a whole number",
            "",
        ),
        (
            "- at '/run/on': got string, want boolean",
            "run.on=yes",
            "run.on: 'yes' is a string, expected true or false",
            "write true",
        ),
        (
            "- at '/command': got string, want array",
            "command=x",
            "command: 'x' is a string, expected a list",
            "write {x}",
        ),
        (
            "- at '/tolerations/0/operator': got number, want null or string",
            "tolerations[0].operator=5",
            "tolerations.0.operator: 5 is a number, expected a string",
            "give it as text: --set-string",
        ),
        (
            "- worker.replicas: Invalid type. Expected: integer, given: string",
            "worker.replicas=x",
            "worker.replicas: 'x' is a string, expected a whole number",
            "",
        ),
        (
            "- at '/tolerations/0/rate': 'abc' does not match pattern '^[0-9.]+$'",
            "tolerations[0].rate=abc",
            "tolerations.0.rate: 'abc' is a string, expected a number",
            "",
        ),
        (
            f"- at '/roles/worker/memory': 'lots' does not match pattern '{QUANTITY}'",
            "roles.worker.memory=lots",
            "roles.worker.memory: 'lots' is not accepted",
            "for example 512Mi or 4Gi",
        ),
        (
            "- at '/a/0/b~1c': 'x' does not match pattern '^a\\\\.b$'",
            "a=1",
            "a.0.b/c: 'x' is not accepted",
            "expected a string that matches ^a\\.b$",
        ),
        (
            "- at '/image/pullPolicy': value must be one of 'IfNotPresent', 'Always', 'Never'",
            "image.pullPolicy=allways",
            "image.pullPolicy: 'allways' is not known",
            "did you mean Always? known here: IfNotPresent, Always, Never",
        ),
        (
            "- at '/roles/worker/replicas': minimum: got 0, want 1",
            "roles.worker.replicas=0",
            "roles.worker.replicas: 0 is less than the minimum 1",
            "",
        ),
        (
            "- at '/roles/worker/replicas': maximum: got 2,000, want 1,000",
            "roles.worker.replicas=2000",
            "roles.worker.replicas: 2000 is greater than the maximum 1,000",
            "",
        ),
        (
            "- at '/roles/worker': missing property 'replicas'",
            "roles.worker.replicas=null",
            "roles.worker.replicas: null leaves it out",
            "set it, for example by --set roles.worker.replicas=VALUE: Number of pods.",
        ),
        (
            "- at '': missing properties 'affinity', 'args', 'command', 'env', 'envFrom', 'image'",
            "",
            "affinity, args, command and 3 more are missing",
            "the chart's values.yaml seems to be damaged: restore it, or for a generated chart, run trainchart "
            "generate",
        ),
        (
            "- at '/image/tag': 'not' failed",
            "image.tag=latest",
            "image.tag: 'latest' is not accepted",
            "Tag, never latest.",
        ),
        (
            "- at '/image': invalid propertyName 'A-B'\n  - at '': 'A-B' does not match pattern '^[A-Z]*$'",
            "env.A-B=5",
            "env.A-B: 'A-B' is not a name that is accepted here",
            "names match ^[A-Z]*$",
        ),
        (
            "- at '/env/A': 'anyOf' failed\n  - at '/env/A': got object, want string\n"
            "  - at '/env/A': additional properties 'valueFrm' not allowed",
            "env.A.valueFrm=1",
            "unknown key env.A.valueFrm",
            "did you mean valueFrom?",
        ),
        (
            "- at '/env/A': 'anyOf' failed\n  - at '/env/A': got object, want string\n"
            "  - at '/env/A/valueFrom': additional properties 'x' not allowed",
            "env.A.valueFrom.x=1",
            "unknown key env.A.valueFrom.x",
            "the chart's values.yaml lists the keys that it accepts",
        ),
        ("- at '/roles': something new", "roles=1", "roles: something new", ""),
        (
            "- at '': additional properties 'hp' not allowed",
            "hp.maxSteps=5",
            "unknown key hp",
            "did you mean hyperparameters.maxSteps?",
        ),
        (
            "- at '/image': got string, want object",
            "image=foo:1",
            "image: 'foo:1' is a string, expected a mapping",
            "set its keys, such as image.pullPolicy; known here: pullPolicy, tag",
        ),
        (
            f"- at '/roles/worker/memory': '5GB' does not match pattern '^$|{QUANTITY}'",
            "roles.worker.memory=5GB",
            "roles.worker.memory: '5GB' is not accepted",
            "for example 512Mi or 4Gi; did you mean 5Gi?",
        ),
        (
            "- at '/image/digest': 'sha256:abc' does not match pattern '^(sha256:[a-f0-9]{64})?$'",
            "image.digest=sha256:abc",
            "image.digest: 'sha256:abc' is not accepted",
            "expected sha256: and 64 hexadecimal digits",
        ),
        (
            "- at '/image': missing property 'tag'",
            "",
            "image.tag is missing",
            "set it, for example by --set image.tag=VALUE: Tag, never latest.",
        ),
        (
            "- at '/env/A': got array, want string",
            "env.A={a,b}",
            "env.A: {a,b} is a list, expected a string",
            "",
        ),
    ],
)
def test_a_refusal_is_told(line: str, given: str, message: str, hint: str) -> None:
    assert tell(line, given) == (Problem(message, hint=hint),)


def test_of_many_keys_the_hyperparameters_are_named() -> None:
    schema = {"properties": {**SCHEMA["properties"], **{f"key{number}": {} for number in range(30)}}}
    asked = Asked({"mnist": schema}, "mnist", ValueOverrides(sets=("fast=1",)))
    [problem] = find_refusals(f"{HEADER}- at '': additional properties 'fast' not allowed", asked)
    assert problem.hint.startswith(
        "hyperparameters (maxSteps, epochs) are set as hyperparameters.maxSteps; the chart's values.ya"
    )


def test_several_faults_of_one_value_are_all_told() -> None:
    lines = (
        "- at '/roles': validation failed\n  - at '/roles/worker': validation failed\n"
        "    - at '/roles/worker/gpus': minimum: got -1, want 0\n"
        "    - at '/roles/worker': additional properties 'gpuz' not allowed\n"
        "  - at '/roles': additional properties 'workr' not allowed\n- at '': additional properties 'env2' not allowed"
    )
    assert [problem.message for problem in tell(lines)] == [
        "roles.worker.gpus: -1 is less than the minimum 0",
        "unknown key env2",
        "unknown key roles.worker.gpuz",
        "unknown key roles.workr",
    ]


def test_a_value_of_a_file_is_shown_and_options_win() -> None:
    line = "- at '/image/tag': got number, want string"
    problem = Problem("image.tag: 1.5 is a number, expected a string", hint='quote it: "1.5"')
    assert tell(line, files=("image: {tag: 1.5}",)) == (problem,)
    [shown] = tell(line, "image.tag=7", files=("image: {tag: 1.5}",))
    assert shown.message == "image.tag: 7 is a number, expected a string"


@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ("image: {tag: 0x1f}", "got number, want string", "31 is a number, expected a string", 'quote it: "0x1f"'),
        ("image: {tag: off}", "got boolean, want string", "False, expected a string", 'quote it: "off"'),
        (
            "image: {tag: 9007199254740993}",
            "maximum: got 9.007199254740992×10¹⁵, want 9.007199254740991×10¹⁵",
            "9007199254740993 is greater than the maximum 9.007199254740991×10¹⁵",
            'quote it: "9007199254740993"',
        ),
    ],
)
def test_a_hint_has_the_spelling_of_the_file(text: str, line: str, message: str, hint: str) -> None:
    schema = {"properties": {"image": {"properties": {"tag": {"type": ["string", "integer"]}}}}}
    asked = Asked({"mnist": schema}, "mnist", ValueOverrides(files=(("v.yaml", text),)))
    assert find_refusals(f"{HEADER}- at '/image/tag': {line}", asked) == (Problem(f"image.tag: {message}", hint=hint),)


def test_a_truth_value_where_one_of_some_words_is_meant() -> None:
    schema = {"properties": {"state": {"type": "string", "enum": ["offline", "on"]}}}
    asked = Asked({"mnist": schema}, "mnist", ValueOverrides(files=(("v.yaml", "state: off"),)))
    (problem,) = find_refusals(f"{HEADER}- at '/state': got boolean, want string", asked)
    assert problem == Problem("state: off is not known", hint="known here: offline, on")


def test_values_of_a_subchart_have_its_key() -> None:
    [problem] = tell("left:\n- at '': additional properties 'gpuz' not allowed", "left.gpuz=1")
    assert problem.message == "unknown key left.gpuz"


def test_without_the_schema_the_place_and_the_reason_stay() -> None:
    found = find_refusals(f"{HEADER}- (root): Additional property foo is not allowed\n", Asked())
    assert [problem.message for problem in found] == ["unknown key mnist.foo"]


def test_chart_without_hyperparameters_says_where_they_belong() -> None:
    schema = {"properties": {"hyperparameters": {"additionalProperties": False}, "run": {"properties": {"steps": {}}}}}
    line = "- at '/hyperparameters': additional properties 'steps' not allowed"
    (problem,) = find_refusals(HEADER + line, Asked({"mnist": schema}, "mnist"))
    assert problem.hint.startswith("mnist declares no hyperparameters: add steps below `hyperparameters`")
    assert "models/mnist.yaml" in problem.hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "keepCheckpoints",
            "mnist declares batchSize, maxSteps only: add keepCheckpoints below `hyperparameters` in its model spec "
            "(models/mnist.yaml); this also holds for those that the training library knows",
        ),
        ("maxStep", "did you mean maxSteps?"),
    ],
)
def test_an_undeclared_hyperparameter_says_where_it_belongs(name: str, hint: str) -> None:
    declared = {"maxSteps": {"type": "integer"}, "batchSize": {"type": "integer"}}
    schema = {"properties": {"hyperparameters": {"properties": declared, "additionalProperties": False}}}
    line = f"- at '/hyperparameters': additional properties '{name}' not allowed"
    (problem,) = find_refusals(HEADER + line, Asked({"mnist": schema}, "mnist"))
    assert problem.hint == hint


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": [1]},
        {"properties": {"roles": 5}},
        {"properties": {"roles": {"type": 5, "anyOf": 5}}},
        {"anyOf": [{"properties": 5}]},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    ],
    ids=str,
)
def test_what_is_no_schema_still_gives_the_reason(schema: dict[str, Any]) -> None:
    for line in (
        "- at '/roles/worker': additional properties 'colour' not allowed",
        "- at '/roles': 'x' does not match pattern '^[0-9]$'",
        "- at '/roles': missing property 'worker'",
    ):
        (problem,) = find_refusals(HEADER + line, Asked({"mnist": schema}, "mnist"))
        assert "roles" in problem.message


def test_many_refused_values_are_not_all_told() -> None:
    names = [f"k{number}" for number in range(4_000)]
    lines = [f"- at '/env': additional properties {', '.join(map(repr, names))} not allowed"]
    lines += [f"- at '/env/{name}': got number, want string" for name in names]
    text = "env:\n" + "".join(f"  {name}: 0x1\n" for name in names)
    asked = Asked({"mnist": {"properties": {"env": {}}}}, "mnist", ValueOverrides(files=(("v.yaml", text),)))
    found = find_refusals(HEADER + "\n".join(lines), asked)
    assert len(found) == TOLD_LIMIT + 1
    assert found[-1].message == "more values are refused: only 100 are listed"
