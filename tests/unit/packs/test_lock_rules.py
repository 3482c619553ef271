"""Locks that are rules as well: what they say of objects."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.packs.policy import Policy, parse_policy
from trainchart.packs.rules import judge_object

LABELS = {"app.kubernetes.io/component": "controller"}


def parse(locks: str) -> Policy:
    text = f"apiVersion: trainchart/v1\nkind: Policy\nlocked:\n  {locks}\n"
    return parse_policy(text, "policy.yaml", "pack acme 1")


def claim(storage_class: str) -> dict[str, Any]:
    return {"kind": "PersistentVolumeClaim", "spec": {"storageClassName": storage_class}}


def pod(limits: dict[str, Any] | None = None, image: str = "a:1", **labels: str) -> dict[str, Any]:
    container = {"name": "a", "image": image, **({"resources": {"limits": limits}} if limits is not None else {})}
    return {"kind": "Pod", "metadata": {"name": "a", "labels": labels}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("lock", "allowed", "refused", "message"),
    [
        (
            "volumes.*.storageClass: {enum: [a, b], message: ask us}",
            claim("b"),
            claim("c"),
            "volumes.*.storageClass is locked: only a or b; ask us",
        ),
        ("volumes.*.storageClass: {value: a}", claim("a"), claim(""), "volumes.*.storageClass is locked: only a"),
        (
            "roles.*.gpus: {maximum: 2}",
            pod({"nvidia.com/gpu": "2", "cpu": "4"}),
            pod({"nvidia.com/gpu": 3}),
            "roles.*.gpus is locked: at most 2",
        ),
        ("roles.*.gpus: {enum: [0, 4]}", pod(), pod({"amd.com/gpu": "5"}), "roles.*.gpus is locked: only 0 or 4"),
        (
            "run.controller.image: {value: 'c:1'}",
            pod(image="c:1", **LABELS),
            pod(image="c:2", **LABELS),
            "run.controller.image is locked: only c:1",
        ),
    ],
)
def test_a_lock_judges_objects(lock: str, allowed: dict[str, Any], refused: dict[str, Any], message: str) -> None:
    (rule,) = parse(lock).rules
    assert allowed["kind"] in rule.kinds
    assert judge_object(rule, allowed) == ""
    assert judge_object(rule, refused) == message


def test_an_image_is_locked_for_its_component_alone() -> None:
    (rule,) = parse("tensorboard.image: {value: 't:1'}").rules
    assert judge_object(rule, pod(image="c:2", **LABELS)) == ""


@pytest.mark.parametrize(
    "lock", ["roles.*.gpus: {minimum: 1}", "nodeSelector: {value: {a: b}}", "version: {value: '1.0.0'}"]
)
def test_what_no_object_shows_is_no_rule(lock: str) -> None:
    assert parse(lock).rules == ()


def test_a_waiver_of_a_lock_waives_its_rule() -> None:
    waiver = "{rule: 'roles.*.gpus', models: [a], owner: o, reason: r, until: 2099-01-01, namespaces: [n]}"
    (rule,) = parse(f"roles.*.gpus: {{maximum: 2}}\nwaivers: [{waiver}]").rules
    assert [found.text.namespaces for found in rule.waivers] == [["n"]]
