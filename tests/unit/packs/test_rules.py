"""Rules and waivers of packs: which make sense, what breaks them, and when a waiver spares whom."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from tests.unit.packs.test_locks import SPEC
from trainchart.actions.support import models
from trainchart.actions.support.models import resolve_spec
from trainchart.errors import PlanError, SpecError
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.packs.pack import Pack, parse_pack
from trainchart.packs.rules import PackRule, judge_object
from trainchart.plan.chart_plan import ChartPlan
from trainchart.spec.document import parse_document

POD: dict[str, Any] = {
    "containers": [{"name": "a", "image": "r.example/a@sha256:" + "0" * 64, "resources": {"limits": {"memory": "1Gi"}}}]
}


def pack_of(**policy: Any) -> Pack:
    head = "apiVersion: trainchart/v1\nkind: Pack\nname: acme\nversion: 1.0.0\n"
    text = dump_mapping({"apiVersion": "trainchart/v1", "kind": "Policy", **policy})
    return parse_pack({"pack.yaml": head.encode(), "policy.yaml": text.encode()}, "packs/acme")


def rule_of(**requirements: Any) -> PackRule:
    (rule,) = pack_of(requires=requirements).policy.rules
    return rule


def stateful_set(pod: Mapping[str, Any] = POD, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s", **metadata},
        "spec": {"template": {"spec": pod}},
    }


def plan_of(pack: Pack, **own: Any) -> ChartPlan:
    return resolve_spec(parse_document(dump_mapping({**SPEC, **own}), file="m.yaml", layer="model spec"), (pack,))


def with_container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{**POD["containers"][0], **fields}]}


def claim(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {"storageClassName": name}}


@pytest.mark.parametrize(
    ("requirements", "good", "bad"),
    [
        ({"labels": ["team"]}, stateful_set(labels={"team": "a"}), stateful_set()),
        ({"registries": ["r.example"]}, stateful_set(), stateful_set(with_container(image="r.example.evil/a"))),
        ({"digests": True}, stateful_set(), stateful_set(with_container(image="r.example/a:1"))),
        ({"limits": ["memory"]}, stateful_set(), stateful_set(with_container(resources={}))),
        (
            {"devices": ["nvidia.com/gpu"]},
            stateful_set(with_container(resources={"limits": {"nvidia.com/gpu": 1}})),
            stateful_set(with_container(resources={"limits": {"amd.com/gpu": 1}})),
        ),
        ({"storageClasses": ["cephfs"]}, claim("cephfs"), claim("local")),
        ({"forbidden": ["hostNetwork"]}, stateful_set(), stateful_set({**POD, "hostNetwork": True})),
    ],
)
def test_common_rules_tell_good_from_bad(
    requirements: dict[str, Any], good: dict[str, Any], bad: dict[str, Any]
) -> None:
    rule = rule_of(**requirements)
    assert judge_object(rule, good) == ""
    assert judge_object(rule, bad) == rule.rule.message


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "Pod", "spec": POD},
        {"kind": "Job", "spec": {"template": {"spec": POD}}},
        {"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": POD}}}}},
        {"kind": "Pod", "spec": {"containers": [], "initContainers": POD["containers"]}},
        {"kind": "Pod", "spec": {"containers": [], "ephemeralContainers": POD["containers"]}},
    ],
)
def test_rules_see_every_container_of_every_kind(document: dict[str, Any]) -> None:
    assert judge_object(rule_of(registries=["other.example"]), document)
    assert not judge_object(rule_of(registries=["r.example/"]), document)


@pytest.mark.parametrize("spec", [None, {}, {"template": None}, {"template": {"spec": []}}, {"jobTemplate": 3}])
def test_an_object_without_a_pod_breaks_rules_about_pods(spec: Any) -> None:
    assert "cannot be evaluated" in judge_object(rule_of(digests=True), {"kind": "StatefulSet", "spec": spec})


RULE = {"expression": "true", "message": "no"}


@pytest.mark.parametrize(
    ("policy", "message", "hint"),
    [
        (
            {"rules": {"a": {**RULE, "expression": "object.x = 1"}}},
            "rules.a.expression: syntax error",
            "object and var",
        ),
        ({"rules": {"a": {**RULE, "expression": "spec.x == 1"}}}, "undeclared reference to 'spec.x'", "object and var"),
        (
            {"rules": {"a": {**RULE, "over": "spec", "expression": "object.x == 1"}}},
            "to 'object.x'",
            "release and spec",
        ),
        ({"rules": {"a": {**RULE, "kinds": ["Statefulset"]}}}, "unknown kind Statefulset", "did you mean StatefulSet?"),
        ({"rules": {"A b": RULE}}, "'A b' is not a valid rule name", "lower-case"),
        ({"rules": {"a": {**RULE, "link": "wiki"}}}, "rules.a.link: 'wiki' is not a URL", "https://"),
        (
            {"rules": {"a": {**RULE, "over": "spec", "severity": "warning"}}},
            "kinds and severity apply only to rules over objects",
            "remove",
        ),
        (
            {"rules": {"a": {**RULE, "kinds": ["Service"], "expression": "variables.pod.x"}}},
            "only pods and workloads have variables",
            "use object",
        ),
        ({"rules": {"a": {"expression": "true"}}}, "rules.a.message is missing", ""),
        (
            {"requires": {"digests": True}, "rules": {"digests": RULE}},
            "digests is also the name of a rule of requires",
            "another",
        ),
        ({"requires": {"digest": True}}, "unknown key requires.digest", "did you mean digests?"),
        ({"requires": {"forbidden": ["a.b"]}}, "requires.forbidden.0", ""),
    ],
)
def test_rules_that_make_no_sense_are_refused(policy: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(SpecError) as refused:
        pack_of(**policy)
    (problem,) = refused.value.problems
    assert message in problem.message
    assert hint in problem.hint
    assert problem.where.startswith("packs/acme/policy.yaml:")


def waiver(until: str = "2027-01-31", **fields: Any) -> dict[str, Any]:
    common = {"rule": "few", "models": ["mni*"], "owner": "ml@acme.example", "reason": "until the mirror is there"}
    return {**common, "until": until, **fields}


FEW = {"few": {"over": "spec", "expression": "spec.roles.worker.replicas <= 1", "message": "one worker at most"}}


def test_a_rule_over_the_spec_names_its_line_and_the_rule() -> None:
    pack = pack_of(rules={"few": {**FEW["few"], "link": "https://wiki.acme.example/few"}})
    with pytest.raises(PlanError, match="the spec of mnist breaks rules of packs") as refused:
        plan_of(pack, roles={"worker": {"replicas": 3}})
    (problem,) = refused.value.problems
    assert problem.message == "one worker at most"
    assert problem.where.startswith("m.yaml:")
    assert problem.hint.startswith("the rule few of pack acme 1.0.0 (packs/acme/policy.yaml:")
    assert problem.hint.endswith("; see https://wiki.acme.example/few")
    plan_of(pack, roles={"worker": {"replicas": 1}})


def test_gpus_of_a_release_are_those_of_all_its_pods() -> None:
    pack = pack_of(requires={"gpusPerRelease": 4})
    plan_of(pack, roles={"worker": {"replicas": 2, "gpus": 2}, "ps": {"replicas": 1}})
    with pytest.raises(PlanError) as refused:
        plan_of(pack, roles={"worker": {"replicas": 3, "gpus": 2}})
    assert refused.value.problems[0].message == "a release can have at most 4 GPUs"


def test_a_waiver_spares_its_models_until_its_last_day(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {"roles": {"worker": {"replicas": 3}}}
    pack = pack_of(rules=FEW, waivers=[waiver(), waiver(until="2026-02-01")])
    for day in ("2026-11-01", "2027-01-31"):
        monkeypatch.setattr(models, "utc_today", functools.partial(date.fromisoformat, day))
        plan_of(pack, **many)
        with pytest.raises(PlanError):
            plan_of(pack, name="other", **many)
    monkeypatch.setattr(models, "utc_today", lambda: date.fromisoformat("2027-02-01"))
    with pytest.raises(PlanError) as refused:
        plan_of(pack, **many)
    assert "; the waiver of ml@acme.example ended on 2027-01-31 (packs/" in refused.value.problems[0].hint


def test_a_lock_can_be_waived_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pack = pack_of(locked={"roles.*.gpus": {"maximum": 1}}, waivers=[waiver(rule="roles.*.gpus")])
    monkeypatch.setattr(models, "utc_today", lambda: date.fromisoformat("2027-01-31"))
    plan_of(pack, roles={"worker": {"gpus": 2}})
    monkeypatch.setattr(models, "utc_today", lambda: date.fromisoformat("2027-02-01"))
    with pytest.raises(PlanError) as refused:
        plan_of(pack, roles={"worker": {"gpus": 2}})
    assert "the waiver of ml@acme.example ended on 2027-01-31" in refused.value.problems[0].hint


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rule": "fwe"}, "waivers: unknown rule fwe"),
        ({"until": "31.1.2027"}, "'31.1.2027' is not a date such as 2027-01-31"),
        ({"until": "2027-02-30"}, "'2027-02-30' is not a date"),
        ({"until": "20270131"}, "'20270131' is not a date"),
        ({"reason": ""}, "waivers.0.reason"),
        ({"models": []}, "waivers.0.models"),
    ],
)
def test_waivers_that_make_no_sense_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError) as refused:
        pack_of(rules=FEW, waivers=[waiver(**fields)])
    assert message in refused.value.problems[0].message


def test_a_pack_cannot_waive_what_another_demands() -> None:
    with pytest.raises(SpecError, match="not valid") as refused:
        pack_of(waivers=[waiver()])
    assert refused.value.problems[0].hint == "the policy has no rules or locks"
