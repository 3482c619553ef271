"""The rules of packs as ValidatingAdmissionPolicies: the API server refuses what breaks them, from any client. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from trainchart.packs.kinds import POD_KINDS, RESOURCES, ApiResource
from trainchart.packs.pack import Pack
from trainchart.packs.rules import VARIABLES, PackRule

_ACTIONS = {"error": ["Deny"], "warning": ["Warn", "Audit"]}
_CONDITIONS = {
    # What was there before stays as it is, and can be deleted.
    "is-new-or-changed": (
        "request.operation == 'CREATE' || (!has(object.metadata.deletionTimestamp) && (!has(object.spec)"
        " || object.spec != oldObject.spec || object.metadata.?labels != oldObject.metadata.?labels))"
    ),
    # Such as the ConfigMap with the cluster's certificates, and the budgets of controllers. Their pods are looked at.
    "is-not-of-the-cluster": (
        "object.kind == 'Pod' || !(request.userInfo.username.startsWith('system:kube-')"
        " || request.userInfo.username.startsWith('system:node:')"
        " || 'system:serviceaccounts:kube-system' in request.userInfo.?groups.orValue([]))"
    ),
}
_ANNOTATIONS = " || object.metadata.?annotations != oldObject.metadata.?annotations"
"""Only for rules about them: controllers write annotations on objects that were there before."""


def make_admission_policies(packs: Iterable[Pack], label: tuple[str, str], today: date) -> list[dict[str, Any]]:
    """Return a policy for each rule of packs over objects, and its binding.

    They hold in namespaces with the `label`, but for those in which a waiver that holds on `today` waives
    the rule: API servers know no dates.
    """
    return [
        document
        for pack in packs
        for rule in pack.policy.rules
        if rule.rule.over == "objects"
        for document in _make_policy(pack, rule, label, today)
    ]


def _make_policy(pack: Pack, rule: PackRule, label: tuple[str, str], today: date) -> Iterator[dict[str, Any]]:
    name = f"trainchart-{pack.name}-{rule.name}"
    about = {"name": name, "annotations": {"trainchart/pack": f"{pack.name}@{pack.version}"}}
    spared = sorted({name for waiver in rule.waivers if waiver.holds_on(today) for name in waiver.text.namespaces})
    conditions = dict(_CONDITIONS)
    if "annotations" in rule.rule.expression:
        conditions["is-new-or-changed"] = conditions["is-new-or-changed"].replace("?labels)", f"?labels{_ANNOTATIONS})")
    if spared:
        conditions["is-not-waived"] = f"!(request.namespace in {json.dumps(spared)})"
    variables = VARIABLES if set(rule.kinds) <= set(POD_KINDS) else {}
    link = f"; see {rule.rule.link}" if rule.rule.link else ""
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": about,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": list(_match(RESOURCES[kind] for kind in rule.kinds))},
            "matchConditions": [{"name": key, "expression": text} for key, text in conditions.items()],
            "variables": [{"name": key, "expression": text} for key, text in variables.items()],
            "validations": [
                {
                    "expression": rule.rule.expression,
                    "message": f"{rule.rule.message} (the rule {rule.name} of {rule.origin.layer}{link})",
                    "reason": "Forbidden",
                }
            ],
        },
    }
    yield {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": about,
        "spec": {
            "policyName": name,
            "validationActions": _ACTIONS[rule.rule.severity],
            "matchResources": {"namespaceSelector": {"matchLabels": {label[0]: label[1]}}},
        },
    }


def _match(resources: Iterable[ApiResource]) -> Iterator[dict[str, Any]]:
    """Yield one rule for each group of the API."""
    groups: dict[tuple[str, str], list[str]] = {}
    for resource in resources:
        # A container can be added to a pod that runs, and its resources changed.
        names = ["pods", "pods/ephemeralcontainers", "pods/resize"] if resource.name == "pods" else [resource.name]
        groups.setdefault((resource.group, resource.version), []).extend(names)
    for (group, version), names in sorted(groups.items()):
        yield {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": ["CREATE", "UPDATE"],
            "resources": names,
        }
