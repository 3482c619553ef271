"""Spec and defaults to a plan: completeness, provenance, and every type problem at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainchart.errors import PlanError, SpecError
from trainchart.plan.chart_plan import ChartPlan, dump_plan

Resolve = Callable[..., ChartPlan]


def test_a_plan_leaves_nothing_to_default(resolved: Resolve) -> None:
    plan = resolved()
    assert plan.roles == ("chief", "worker", "ps")
    worker = plan.values.roles["worker"]
    assert (worker.replicas, worker.cpu, worker.memory_limit) == (2, 4, "")
    assert worker.stop_grace_seconds == 15
    assert plan.values.run.start_deadline == "30m"
    assert dump_plan(plan)["values"]["command"] == ["python", "-m", "mnist.train"]


def test_ten_lines_are_enough(resolved: Resolve) -> None:
    plan = resolved(
        "apiVersion: trainchart/v1\nkind: Model\nname: tiny\ndescription: Tiny.\n"
        "image: {repository: example.com/tiny, tag: '1'}\ncode: {path: ., command: [python, train.py]}\n"
        "strategy: single\n"
    )
    assert plan.roles == ("worker",)


@pytest.mark.parametrize("shorthand", ["worker:\n", "worker: {}\n"])
def test_a_role_may_be_asked_for_by_name_only(resolved: Resolve, spec: str, shorthand: str) -> None:
    start, end = spec.index("  worker:"), spec.index("  ps:")
    plan = resolved(f"{spec[:start]}  {shorthand}{spec[end:]}")
    assert plan.values.roles["worker"].replicas == 2


@pytest.mark.parametrize("section", ["run", "volumes", "tensorboard", "image.pullSecrets"])
def test_a_section_with_nothing_behind_it_has_its_defaults(resolved: Resolve, spec: str, section: str) -> None:
    if section in ("run", "tensorboard"):
        assert resolved(f"{spec}{section}:\n").values == resolved(spec).values
    elif section == "volumes":
        assert resolved(spec[: spec.index("volumes:")] + "volumes:\n").values.volumes == {}
    else:
        with pytest.raises(SpecError):
            resolved(spec.replace('tag: "1.4.0"', 'tag: "1.4.0", pullSecrets: null'))


@pytest.mark.parametrize(
    ("section", "enabled"), [("tensorboard: true", True), ("tensorboard: {enabled: true}", True), ("", False)]
)
def test_a_section_can_be_switched_by_a_boolean(resolved: Resolve, spec: str, section: str, enabled: bool) -> None:
    plan = resolved(f"{spec}{section}\n")
    assert plan.values.tensorboard.enabled is enabled
    assert plan.values.tensorboard.port == 6006


def test_every_value_knows_the_layer_and_line_that_set_it(resolved: Resolve, spec: str) -> None:
    pack = "roles:\n  '*':\n    shmSize: 1Gi\n  ps:\n    memory: 9Gi\nenv: {HTTP_PROXY: proxy}\n"
    plan = resolved(spec, pack)
    assert str(plan.origins["roles", "worker", "replicas"]) == "m.yaml:10:12"
    assert str(plan.origins["roles", "worker", "shmSize"]) == "pack-0.yaml:3:5"
    assert plan.origins["roles", "worker", "shmSize"].layer == "pack 0"
    assert plan.origins["roles", "ps", "memory"].layer == "model spec"
    assert plan.origins["roles", "worker", "gpus"].layer == "built-in"
    assert (plan.values.roles["worker"].shm_size, plan.values.env) == ("1Gi", {"HTTP_PROXY": "proxy"})


@pytest.mark.parametrize(("policy", "close"), [("default", ""), ("clusterfirst", "did you mean ClusterFirst? ")])
def test_choices_that_are_refused_are_not_suggested(resolved: Resolve, spec: str, policy: str, close: str) -> None:
    with pytest.raises(SpecError) as refusal:
        resolved(f"{spec}dnsPolicy: {policy}\n")
    [problem] = refusal.value.problems
    assert problem.hint == f"{close}known here: ClusterFirst, ClusterFirstWithHostNet, None"


def test_all_problems_come_at_once_with_lines_and_suggestions(resolved: Resolve, spec: str) -> None:
    broken = spec.replace("memory: 8Gi", "memry: 8Gi").replace("strategy: param", "strategy: Param")
    broken = broken.replace("cpu: 1", "cpu: [1]") + "hyperparameters: {rate: {default: 1}}\nrnu: {}\n"
    with pytest.raises(SpecError) as refusal:
        resolved(broken)
    found = {problem.message: problem for problem in refusal.value.problems}
    assert found["strategy: 'Parameter-server' is not known"].hint.startswith(
        "did you mean parameter-server? known here: "
    )
    assert found["unknown key roles.worker.memry"].where == "m.yaml:10:33"
    assert found["unknown key roles.worker.memry"].hint == "did you mean memory?"
    assert found["unknown key rnu"].hint == "did you mean run?"
    assert found["roles.chief.cpu: [1] is not accepted"].where == "m.yaml:9:11"
    assert found["hyperparameters.rate.type is missing"].where == "m.yaml:14:19"
    assert len(found) == 5


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("name: mnist", "name: Mnist", "name: 'Mnist' is not accepted"),
        ("name: mnist", "name: " + "m" * 41, "is not accepted"),
        ("kind: Model", "kind: Chart", "kind: 'Chart' is not known"),
        ("trainchart/v1", "trainchart/v2", "apiVersion: 'trainchart/v2' is not known"),
        ("replicas: 2", "replicas: two", "roles.worker.replicas: 'two' is not accepted"),
        ("replicas: 2", "replicas: -1", "roles.worker.replicas: -1 is not accepted"),
        ("replicas: 2", "replicas: 1.5", "roles.worker.replicas: 1.5 is not accepted"),
        ("kind: Model\n", "kind: Model\nversion: one\n", "version 'one' is not a SemVer version"),
        ("command: [python, -m, mnist.train]", "command: []", "code.command: [] is not accepted"),
        ("roles:\n", "roles: 5\nold:\n", "roles: 5 is not accepted"),
        ("description: Handwritten digits.\n", "", "description is missing"),
        ("description: Handwritten digits.", 'description: "a\\0b"', "holds a NUL, which no program can read"),
        ("description: Handwritten digits.", 'description: "a\\ab"', "holds control characters"),
        ("mountPath: /checkpoints", "mountPath: checkpoints", "volumes.checkpoints.mountPath: 'checkpoints'"),
        ("size: 20Gi", "uri: bucket/path", "volumes.checkpoints.uri: 'bucket/path' is not accepted"),
        ("registry.example.com/ml/mnist", "a/b:1", "image.repository: 'a/b:1' is not accepted"),
        ('tag: "1.4.0"', "tag: 1.10", "image.tag: 1.10 would become the text 1.1"),
        ("cpu: 4,", "cpu: 1e400,", "roles.worker.cpu: 1e400 is not a finite number"),
        ("cpu: 4,", "cpu: 1e-400,", "roles.worker.cpu: 1e-400 is read as the number 0"),
    ],
)
def test_wrong_types_are_refused(resolved: Resolve, spec: str, old: str, new: str, says: str) -> None:
    with pytest.raises(SpecError) as refusal:
        resolved(spec.replace(old, new))
    assert any(says in problem.message for problem in refusal.value.problems), refusal.value.problems
    assert all(problem.where.startswith("m.yaml:") for problem in refusal.value.problems)


@pytest.mark.parametrize(
    "definition",
    [
        "{type: number, default: fast}",
        "{type: integer, default: 1.5}",
        "{type: integer, default: true}",
        "{type: string, default: 5}",
        "{type: boolean, default: 1}",
        "{type: number, default: 0, exclusiveMinimum: 0}",
        "{type: integer, default: 5, maximum: 4}",
        "{type: string, default: a, minimum: 1}",
        "{type: string, default: a, enum: [b, c]}",
        "{type: number, default: 1, enum: [a]}",
        "{type: list, default: 1}",
        "{type: integer, default: 9007199254740993}",
        "{type: number, default: .inf}",
        "{type: number, default: .nan}",
        "{type: integer, default: " + "9" * 400 + ", minimum: 0}",
    ],
)
def test_hyperparameters_that_contradict_themselves_are_refused(resolved: Resolve, spec: str, definition: str) -> None:
    with pytest.raises(SpecError) as refusal:
        resolved(f"{spec}hyperparameters:\n  rate: {definition}\n")
    assert {problem.where.split(":")[1] for problem in refusal.value.problems} == {"15"}


_SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False), st.text("ab:-{}[]'\"# \n", max_size=6)
)
_TREES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3)
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(["roles", "volumes", "image", "run", "env", "strategy", "hyperparameters", "code", "x", "gpu"]),
        st.one_of(
            _TREES,
            st.dictionaries(st.sampled_from(["chief", "worker", "ps", "evaluator", "checkpoints", "id"]), _TREES),
        ),
    )
)
def test_no_spec_at_all_gives_a_traceback(resolved: Resolve, tree: dict[str, object]) -> None:
    import json

    text = json.dumps({"apiVersion": "trainchart/v1", "kind": "Model", "name": "m", "strategy": "single", **tree})
    try:
        resolved(text)
    except (SpecError, PlanError) as error:
        assert error.problems


@pytest.mark.parametrize(
    ("old", "new", "says", "hint"),
    [
        ('tag: "1.4.0"', f"tag: {spelling}", f"image.tag: {spelling}", f'"{spelling}"')
        for spelling in ("0712345", "0x1f", "0o17", "0b11", "1_0", "+5", "12e4567", ".inf", ".NaN", "1.10", "1e3")
    ]
    + [
        ("roles:", f"env: {{A: {spelling}}}\nroles:", f"env.A: {spelling}", f'"{spelling}"')
        for spelling in ("True", "1.10", "1.0", "1e3", "007", "9007199254740993")
    ]
    + [
        ("roles:", "podLabels: {a: 9007199254740993}\nroles:", "podLabels.a: 9007199254740993", "quote it"),
        ("roles:", "env: {A: ~}\nroles:", "env.A: ~ would become null", '"~"'),
        ("roles:", "nodeSelector: {a: True}\nroles:", "nodeSelector.a: True", "quote it"),
        ("cpu: 4,", "env: {A: 010}, cpu: 4,", "roles.worker.env.A: 010", "quote it"),
        ("replicas: 2", "replicas: 010", "roles.worker.replicas: 010 is read as the number 10", "write 10"),
        ("description: Handwritten digits.", "description: 1.10", "description: 1.10 is not a string", '"1.10"'),
    ],
)
def test_text_that_yaml_reads_as_another_is_refused(
    resolved: Resolve, spec: str, old: str, new: str, says: str, hint: str
) -> None:
    with pytest.raises(SpecError) as refusal:
        resolved(spec.replace(old, new))
    (problem,) = refusal.value.problems
    assert says in problem.message
    assert hint in problem.hint
    assert problem.where.startswith("m.yaml:")


def test_values_that_keep_their_spelling_are_accepted(resolved: Resolve, spec: str) -> None:
    env = 'A: 5, B: 1.5, C: true, D: yes, E: 2026-11-21, F: "0712345", G: 1:30'
    plan = resolved(spec.replace("cpu: 4,", "cpu: 1.50,") + f"env: {{{env}}}\n")
    assert plan.values.env == {
        "A": 5, "B": 1.5, "C": True, "D": "yes", "E": "2026-11-21", "F": "0712345", "G": "1:30",
    }  # fmt: skip
