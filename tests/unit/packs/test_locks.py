"""Locks: which policies make sense, and that no layer above gets past one."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainchart.actions.support.models import build_values_schema, resolve_spec
from trainchart.errors import PlanError, SpecError
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.packs.pack import Pack, parse_pack
from trainchart.plan.chart_plan import ChartPlan
from trainchart.render.narrow import narrow_schema
from trainchart.spec.document import parse_document

SPEC: dict[str, Any] = {
    "apiVersion": "trainchart/v1",
    "kind": "Model",
    "name": "mnist",
    "description": "Handwritten digits.",
    "image": {"repository": "registry.example.com/ml/mnist", "tag": "1.4.0"},
    "framework": {"tensorflow": "2.21.0", "flavour": "gpu"},
    "code": {"path": "examples/mnist", "command": ["python", "-m", "mnist.train"]},
    "strategy": "parameter-server",
    "volumes": {"checkpoints": {"size": "20Gi", "mountPath": "/checkpoints"}},
}
IMAGE = "registry.acme.example/run-controller:1.0.0"


def pack_of(policy: str = "", defaults: str = "", name: str = "acme") -> Pack:
    head = f"apiVersion: trainchart/v1\nkind: Pack\nname: {name}\nversion: 1.0.0\n"
    head_of_policy = "apiVersion: trainchart/v1\nkind: Policy\nlocked:\n"
    files = {"pack.yaml": head, "policy.yaml": policy and head_of_policy + policy, "defaults.yaml": defaults}
    return parse_pack({path: text.encode() for path, text in files.items()}, f"packs/{name}")


def plan_of(*packs: Pack, **own: Any) -> ChartPlan:
    return resolve_spec(parse_document(dump_mapping({**SPEC, **own}), file="m.yaml", layer="model spec"), packs)


def schema_of(pack: Pack) -> dict[str, Any]:
    plan = plan_of(pack)
    return narrow_schema(build_values_schema(plan), plan, pack.policy.locks)


@pytest.mark.parametrize(
    ("policy", "message", "hint"),
    [
        ("  run.controler.image: {value: x}\n", "unknown key run.controler", "did you mean controller?"),
        ("  roles.wrker.gpus: {maximum: 1}\n", "unknown role wrker", "known here: *, chief, worker, ps, evaluator"),
        ("  roles.worker: {value: {}}\n", "roles.worker is a section", ""),
        ("  run: {value: {}}\n", "run is a section", ""),
        ("  name: {value: x}\n", "name belongs to one model", "remove it from the policy"),
        ("  code.command: {value: [python]}\n", "code belongs to one model", "remove it from the policy"),
        ("  roles.*.nodeSelector: {value: {}}\n", "roles.*.nodeSelector can also be set by nodeSelector", "every pod"),
        ("  roles.ps.args: {value: []}\n", "roles.ps.args can also be set by args", "lock args"),
        ("  run.controller.tolerations: {value: []}\n", "run.controller.tolerations can also be set by", ""),
        ("  podSecurityContext: {value: {}}\n", "podSecurityContext is merged with values of other", ""),
        (
            "  podSecurityContext.seccompProfile.type: {value: RuntimeDefault}\n",
            "podSecurityContext.seccompProfile.type cannot be locked by itself",
            "lock podSecurityContext.seccompProfile itself",
        ),
        ("  resources.limits: {value: {}}\n", "resources.limits cannot be locked by itself", "lock resources itself"),
        ("  hyperparameters.rate.default: {maximum: 1}\n", "hyperparameters belongs to one model", ""),
        ("  roles.*.gpus.x: {value: 1}\n", "roles.*.gpus.x cannot be locked by itself", ""),
        ("  roles.*.cpu: {maximum: 4}\n", "roles.*.cpu is not an integer, so it has no range", ""),
        ("  roles.*.gpus: {}\n", "roles.*.gpus: expected value, or enum, or minimum and maximum", ""),
        ("  roles.*.gpus: {value: 1, maximum: 2}\n", "roles.*.gpus: expected value, or enum", ""),
        ("  roles.*.gpus: {minimum: 3, maximum: 2}\n", "roles.*.gpus: minimum 3 is above maximum 2", ""),
        (
            "  schedulerName: {value: }\n",
            "schedulerName: a value is missing",
            'to lock an empty value, write "", [] or {}',
        ),
        (
            "  nodeSelector.pool: {value: gpu}\n",
            "nodeSelector.pool cannot be locked by itself",
            "lock nodeSelector itself",
        ),
    ],
)
def test_a_lock_without_sense_is_refused_with_its_line(policy: str, message: str, hint: str) -> None:
    with pytest.raises(SpecError, match="the policy is not valid") as refusal:
        pack_of(policy)
    (problem,) = refusal.value.problems
    assert problem.message.startswith(message)
    assert hint in problem.hint
    assert problem.where == "packs/acme/policy.yaml:4:3"


def test_a_lock_within_another_is_refused() -> None:
    with pytest.raises(SpecError) as refusal:
        pack_of("  commonLabels: {value: {a: b}}\n  commonLabels.team: {value: ml}\n")
    (problem,) = refusal.value.problems
    assert problem.message == "commonLabels.team is part of commonLabels, which is also locked"
    assert problem.where == "packs/acme/policy.yaml:5:3"


def test_unknown_words_of_a_lock_are_refused() -> None:
    with pytest.raises(SpecError, match="the policy is not valid") as refusal:
        pack_of("  roles.*.gpus: {maximum: 4.5}\n  roles.ps.gpus: {minimum: four}\n")
    assert {problem.hint for problem in refusal.value.problems} == {"expected a whole number"}
    with pytest.raises(SpecError, match="the policy is not valid") as refusal:
        pack_of("  roles.*.gpus: {max: 2}\n  tensorboard.enabled: {enum: []}\n")
    assert [problem.where for problem in refusal.value.problems] == [
        "packs/acme/policy.yaml:4:18",
        "packs/acme/policy.yaml:5:25",
    ]


def test_a_locked_value_is_the_default_of_all_models() -> None:
    pack = pack_of(f'  run.controller.image: {{value: "{IMAGE}"}}\n  roles.*.stopGraceSeconds: {{value: 90}}\n')
    plan = plan_of(pack)
    assert plan.values.run.controller.image == IMAGE
    assert {role.stop_grace_seconds for role in plan.values.roles.values()} == {90}
    origin = plan.origins["run", "controller", "image"]
    assert (str(origin), origin.layer) == ("packs/acme/policy.yaml:4:3", "pack acme 1.0.0")


def test_a_spec_that_breaks_a_lock_is_refused_with_both_places() -> None:
    pack = pack_of("  roles.*.gpus: {maximum: 2, message: ask ml-platform for more}\n")
    with pytest.raises(PlanError, match="the spec of mnist breaks rules of packs") as refusal:
        plan_of(pack, roles={"worker": {"gpus": 4}})
    (problem,) = refusal.value.problems
    assert problem.message == "roles.worker.gpus: 4 is not allowed, only at most 2"
    assert problem.where.startswith("m.yaml:")
    assert problem.hint == ("pack acme 1.0.0 locks roles.*.gpus (packs/acme/policy.yaml:4:3): ask ml-platform for more")


def test_a_lock_of_the_weakest_pack_binds_stronger_packs() -> None:
    lock = pack_of("  gpu.resourceName: {enum: [nvidia.com/gpu, amd.com/gpu]}\n")
    assert plan_of(lock, pack_of(defaults="gpu: {resourceName: amd.com/gpu}\n", name="team")).values.gpu
    with pytest.raises(PlanError) as refusal:
        plan_of(lock, pack_of(defaults="gpu: {resourceName: x.com/gpu}\n", name="team"))
    assert refusal.value.problems[0].where == "packs/team/defaults.yaml:1:7"


@pytest.mark.parametrize("place", ["roles", "run", "tensorboard"])
def test_a_locked_pod_setting_binds_every_pod(place: str) -> None:
    pack = pack_of("  priorityClassName: {value: batch}\n")
    own: dict[str, Any] = {"priorityClassName": "high"}
    sections = {"roles": {"worker": own}, "run": {"controller": own}, "tensorboard": own}
    with pytest.raises(PlanError) as refusal:
        plan_of(pack, **{place: sections[place]})
    assert "'high' is not allowed, only batch" in refusal.value.problems[0].message
    assert not plan_of(pack).values.roles["worker"].priority_class_name


def broken_paths(values: dict[str, Any], *packs: Pack) -> list[str]:
    """Return what the schema of a chart with the locks of `packs` refuses, beside the chart's own values."""
    plan = plan_of(*packs)
    own = json.loads(json.dumps(plan.values.model_dump(by_alias=True, exclude_unset=True)))
    locks = tuple(lock for pack in packs for lock in pack.policy.locks)
    schema = narrow_schema(build_values_schema(plan), plan, locks)
    assert not list(jsonschema.Draft202012Validator(schema).iter_errors(own))
    return [error.json_path for error in jsonschema.Draft202012Validator(schema).iter_errors(_merged(own, values))]


def test_locks_of_two_packs_hold_both_in_the_schema() -> None:
    platform = pack_of("  roles.*.gpus: {maximum: 4}\n  gpu.resourceName: {enum: [nvidia.com/gpu, amd.com/gpu]}\n")
    team = pack_of(
        "  roles.worker.gpus: {maximum: 64}\n  gpu.resourceName: {enum: [x.com/gpu, nvidia.com/gpu]}\n", name="team"
    )
    for packs in ((platform, team), (team, platform)):
        assert broken_paths({"roles": {"worker": {"gpus": 5}}}, *packs) == ["$.roles.worker.gpus"]
        assert broken_paths({"gpu": {"resourceName": "x.com/gpu"}}, *packs) == ["$.gpu.resourceName"]
        assert broken_paths({"gpu": {"resourceName": "amd.com/gpu"}}, *packs) == ["$.gpu.resourceName"]


def test_a_lock_does_not_widen_what_the_chart_takes() -> None:
    pack = pack_of("  roles.*.replicas: {maximum: 8}\n")
    assert broken_paths({"roles": {"chief": {"replicas": 3}}}, pack) == ["$.roles.chief.replicas"]
    assert broken_paths({"roles": {"worker": {"replicas": 9}}}, pack) == ["$.roles.worker.replicas"]
    assert not broken_paths({"roles": {"worker": {"replicas": 8}}}, pack)


def test_locked_arguments_bind_every_role() -> None:
    pack = pack_of("  args: {value: []}\n")
    assert broken_paths({"args": ["--x"]}, pack) == ["$.args"]
    assert broken_paths({"roles": {"worker": {"args": ["--x"]}}}, pack) == ["$.roles.worker.args"]
    with pytest.raises(PlanError):
        plan_of(pack, roles={"worker": {"args": ["--x"]}})


def test_a_text_that_looks_like_a_number_keeps_its_zeros() -> None:
    pack = pack_of('  run.id: {value: "0123"}\n')
    assert broken_paths({"run": {"id": 123}}, pack) == ["$.run.id"]


def test_a_locked_variable_cannot_be_emptied_for_a_role() -> None:
    pack = pack_of("  env.HTTP_PROXY: {value: http://proxy:1}\n")
    with pytest.raises(PlanError):
        plan_of(pack, roles={"worker": {"env": {"HTTP_PROXY": ""}}})


def test_a_lock_of_what_values_leave_out_breaks_nothing() -> None:
    pack = pack_of("  hostNetwork: {value: false}\n  priorityClassName: {value: ''}\n")
    assert broken_paths({"hostNetwork": True}, pack) == ["$.hostNetwork"]
    assert broken_paths({"roles": {"ps": {"priorityClassName": "high"}}}, pack) == ["$.roles.ps.priorityClassName"]


LOCKS: dict[str, tuple[str, dict[Any, bool]]] = {
    "roles.*.gpus": ("{maximum: 2}", {0: True, 2: True, 3: False}),
    "run.maxRestarts": ("{value: 5}", {5: True, 3: False}),
    "gpu.resourceName": ("{enum: [nvidia.com/gpu, amd.com/gpu]}", {"amd.com/gpu": True, "x.com/gpu": False}),
    "networkPolicy.enabled": ("{value: true}", {True: True, False: False}),
    "commonLabels.team": ("{value: ml}", {"ml": True, "x": False}),
    "podSecurityContext.runAsNonRoot": ("{value: true}", {True: True, False: False}),
}
"""Policy of each path, and values with whether the policy allows them."""
ATTEMPTS = st.fixed_dictionaries({}, optional={key: st.sampled_from(list(tried)) for key, (_, tried) in LOCKS.items()})


def _tree(attempts: dict[str, Any], wildcard: str) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in attempts.items():
        *path, last = key.replace("*", wildcard).split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return tree


def _is_allowed(attempts: dict[str, Any]) -> bool:
    return all(LOCKS[key][1][value] for key, value in attempts.items())


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(ATTEMPTS, ATTEMPTS, ATTEMPTS)
def test_a_locked_value_survives_every_attempt(
    by_pack: dict[str, Any], by_spec: dict[str, Any], by_values: dict[str, Any]
) -> None:
    lock = pack_of("".join(f'  "{key}": {words}\n' for key, (words, _) in LOCKS.items()))
    team = pack_of(defaults=dump_mapping(_tree(by_pack, "*")) if by_pack else "", name="team")
    try:
        plan = plan_of(lock, team, **_tree(by_spec, "worker"))
    except PlanError:
        assert not _is_allowed(by_pack) or not _is_allowed(by_spec)
        return
    assert _is_allowed({**by_pack, **by_spec})
    values = json.loads(json.dumps(plan.values.model_dump(by_alias=True, exclude_unset=True)))
    validator = jsonschema.Draft202012Validator(narrow_schema(build_values_schema(plan), plan, lock.policy.locks))
    broken = [error.json_path for error in validator.iter_errors(_merged(values, _tree(by_values, "worker")))]
    assert bool(broken) == (not _is_allowed(by_values)), broken


def _merged(below: Any, above: Any) -> Any:
    """Merge values as Helm does."""
    if not isinstance(above, dict):
        return above
    return {**below, **{key: _merged(below.get(key, {}), value) for key, value in above.items()}}
