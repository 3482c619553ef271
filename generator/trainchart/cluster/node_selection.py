"""Says which nodes a pod may run on by its node selector, its required node affinity and its tolerations. Pure."""

from __future__ import annotations

from trainchart.check.objects import selects
from trainchart.cluster.snapshot import Object, items_of, name_of, section

_CLOSING = ("NoSchedule", "NoExecute")
_NUMERIC = ("Gt", "Lt")
_CORDONED: Object = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
"""Kubernetes gives a cordoned node this taint, a moment later."""


def is_selected(pod_spec: Object, node: Object) -> bool:
    """Say whether a node has the labels that a pod asks for."""
    own = section(pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    selector = {"matchLabels": section(pod_spec, "nodeSelector")}
    return selects(selector, section(node, "metadata", "labels")) and meets_terms(own, node)


def meets_terms(selector: Object, node: Object) -> bool:
    """Say whether a node meets one of the terms of a node selector; one without terms asks for nothing."""
    terms = items_of(selector, "nodeSelectorTerms")
    labels = section(node, "metadata", "labels")
    fields = {"metadata.name": name_of(node)}
    return not terms or any(
        _meets(items_of(term, "matchExpressions"), labels) and _meets(items_of(term, "matchFields"), fields)
        for term in terms
    )


def find_closing_taint(pod_spec: Object, node: Object) -> Object | None:
    """Return a taint of a node that keeps a pod away, the one of a cordoned node included; None where it is open."""
    spec = section(node, "spec")
    tolerations = items_of(pod_spec, "tolerations")
    taints = [*items_of(spec, "taints"), *([_CORDONED] if spec.get("unschedulable") else [])]
    closing = (each for each in taints if each.get("effect") in _CLOSING)
    return next((taint for taint in closing if not any(_tolerates(each, taint) for each in tolerations)), None)


def _meets(expressions: list[Object], labels: Object) -> bool:
    plain = [each for each in expressions if each.get("operator") not in _NUMERIC]
    return selects({"matchExpressions": plain}, labels) and all(
        _compares(each, labels) for each in expressions if each.get("operator") in _NUMERIC
    )


def _compares(expression: Object, labels: Object) -> bool:
    """Say whether a label is a whole number above (Gt) or below (Lt) that of an expression."""
    try:
        have, bound = int(labels[str(expression.get("key"))]), int((expression.get("values") or [""])[0])
    except (KeyError, ValueError, TypeError, IndexError):
        return False
    return have > bound if expression["operator"] == "Gt" else have < bound


def _tolerates(toleration: Object, taint: Object) -> bool:
    """Say whether a toleration is one of a taint."""
    key, effect = toleration.get("key") or "", toleration.get("effect") or ""
    is_any = toleration.get("operator") == "Exists"
    same = is_any or (toleration.get("value") or "") == (taint.get("value") or "")
    return (key == taint.get("key") or (is_any and not key)) and effect in ("", taint.get("effect")) and same
