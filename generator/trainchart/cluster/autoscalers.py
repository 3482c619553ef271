"""Finds the autoscalers that change the pods of a release, which the run controller alone should do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainchart.cluster.objects import RoleSet
from trainchart.cluster.snapshot import Object, Snapshot, listed, name_of, owner_of, section
from trainchart.reports.report import STATEFUL_SET, Report

_HARMLESS = ("Off", "Initial")
"""Modes in which a VerticalPodAutoscaler lets pods live."""


def describe_autoscalers(report: Report, seen: Snapshot, sets: Sequence[RoleSet]) -> Iterator[str]:
    """Yield which autoscalers have a StatefulSet of the release as their target, and how to end that."""
    by_name = {each.name: each for each in sets}
    for each in listed(seen.autoscalers):
        is_vertical = "targetRef" in section(each, "spec")
        key = "targetRef" if is_vertical else "scaleTargetRef"
        target = section(each, "spec", key)
        found = by_name.get(str(target.get("name") or "")) if target.get("kind") == STATEFUL_SET else None
        does = _describe_evictions(each, found) if found and is_vertical else _describe_scaling(each, found)
        if does and found:
            kind = "VerticalPodAutoscaler" if is_vertical else "HorizontalPodAutoscaler"
            yield f"{_introduce(kind, each)} {does}. {_describe_cure(kind, each, report, key)}"


def _describe_scaling(each: Object, found: RoleSet | None) -> str:
    """Return what a HorizontalPodAutoscaler does to a set; "" where it keeps the number that the release wants."""
    spec, status = section(each, "spec"), section(each, "status")
    least, most, desired = spec.get("minReplicas", 1), spec.get("maxReplicas"), status.get("desiredReplicas")
    if found is None or least == most == found.wanted:
        return ""
    number = str(desired) if desired and desired != found.wanted else f"between {least} and {most}"
    return (
        f"scales {found.name}: to {number} pods, but this release wants {found.wanted}; the run controller resets the "
        "number each time, so pods are deleted and recreated"
    )


def _describe_evictions(each: Object, found: RoleSet) -> str:
    """Return what a VerticalPodAutoscaler does to the pods of a set; "" where it lets them live."""
    mode = section(each, "spec", "updatePolicy").get("updateMode") or "Recreate"
    return "" if mode in _HARMLESS else f"evicts pods of {found.name} to give them other resources (updateMode {mode})"


def _introduce(kind: str, each: Object) -> str:
    owner = owner_of(each)
    return f"the {kind} {name_of(each)}" + (f", which the {owner} created," if owner else "")


def _describe_cure(kind: str, each: Object, report: Report, key: str) -> str:
    owner, _, name = (owner_of(each) or f"{kind} {name_of(each)}").partition(" ")
    short = {"HorizontalPodAutoscaler": "hpa", "VerticalPodAutoscaler": "vpa"}.get(owner, owner.lower())
    command = f"kubectl delete {short} {name} -n {report.key.namespace}"
    return f"Delete it ({command}), or remove the StatefulSet from its {key}"
