"""Whether the ResourceQuotas of a namespace have room for a whole release at once. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainchart.check.objects import is_hook, mapping_at, mappings_at
from trainchart.cluster.snapshot import Object, items_of, name_of, section
from trainchart.doctor.needs import PodGroup, add_limits, read_thousandths
from trainchart.doctor.refusals import describe_amount
from trainchart.doctor.result import FAILED, OK, Result
from trainchart.doctor.storage import Need, find_class
from trainchart.helm.rendering import Manifest
from trainchart_runtime.run.judge import list_names

CHECK = "quota"
_COUNTED = {
    "pods": "pods",
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "services": "Service",
    "persistentvolumeclaims": "PersistentVolumeClaim",
}
"""What a quota may count under a plain name."""
_PLURALS = {
    "count/configmaps": "ConfigMap",
    "count/secrets": "Secret",
    "count/services": "Service",
    "count/persistentvolumeclaims": "PersistentVolumeClaim",
    "count/statefulsets.apps": "StatefulSet",
    "count/deployments.apps": "Deployment",
    "count/jobs.batch": "Job",
}
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_OF_CLASS = ".storageclass.storage.k8s.io/"


def check_quotas(
    quotas: Sequence[Object],
    groups: Sequence[PodGroup],
    needs: Sequence[Need],
    classes: Sequence[Object],
    manifests: Sequence[Manifest],
    held: Sequence[PodGroup] = (),
) -> Iterator[Result]:
    """Yield every quota that the release exceeds, or that none does.

    `groups` are complete, with all defaults; `needs` and `manifests` are those that are not there yet; `held` are pods
    that the release has already, whose share is its own.
    """
    others = count_objects(manifests) + _count_storage([_leave_out(need, held) for need in needs], classes)
    is_tight = False
    for quota in quotas:
        covered = [group for group in groups if _covers(quota, group.spec)]
        own = _count_pods([group for group in held if _covers(quota, group.spec)])
        wanted = _count_pods(covered) - own + (Counter() if _is_scoped(quota) else others)
        hard, used = section(quota, "status", "hard"), section(quota, "status", "used")
        for resource, limit in (hard or section(quota, "spec", "hard")).items():
            need = wanted[resource]
            left = read_thousandths(limit) - read_thousandths(used.get(resource, 0))
            if need > left:
                is_tight = True
                yield _describe_excess(name_of(quota), str(resource), need, read_thousandths(limit), left)
    if quotas and not is_tight:
        names = list_names([name_of(quota) for quota in quotas])
        yield Result(CHECK, OK, f"{names}: there is room for the whole release")
    elif not quotas:
        yield Result(CHECK, OK, "the namespace has no ResourceQuota")


def _describe_excess(quota: str, resource: str, need: int, limit: int, left: int) -> Result:
    wanted, most = describe_amount(resource, need), describe_amount(resource, limit)
    free = describe_amount(resource, max(0, left))
    remedy = (
        "the release alone needs more than the quota allows: request less (replicas, resources), or have it raised"
        if need > limit
        else "stop other releases of the namespace (trainchart list), request less, or have the quota raised; "
        "terminating pods count until they are deleted"
    )
    return Result(
        CHECK, FAILED, f"quota {quota}: the release needs {wanted} of {resource}, {free} of {most} are left", remedy
    )


def count_objects(manifests: Sequence[Manifest]) -> Counter[str]:
    """Return what quotas count of the objects of a release, in thousandths: one of each, hooks aside."""
    kinds = Counter(each.kind for each in manifests if not is_hook(each))
    # Helm keeps each revision in a Secret.
    kinds["Secret"] += 1
    found = {name: kinds[kind] * 1000 for name, kind in {**_COUNTED, **_PLURALS}.items() if kinds[kind]}
    return Counter(found)


def _count_storage(needs: Sequence[Need], classes: Sequence[Object]) -> Counter[str]:
    wanted: Counter[str] = Counter()
    for need in needs:
        if need.made is None:
            continue
        count = need.pods if need.own_of_pods else 1
        size = count * read_thousandths(section(need.made, "spec", "resources", "requests").get("storage"))
        made_by = find_class(need, classes)
        names = ["", *([f"{name_of(made_by)}{_OF_CLASS}"] if made_by else [])]
        for prefix in names:
            wanted[f"{prefix}requests.storage"] += size
            if prefix or need.own_of_pods:
                wanted[f"{prefix}persistentvolumeclaims"] += 1000 * count
        if need.own_of_pods:
            wanted["count/persistentvolumeclaims"] += 1000 * count
    return wanted


def _leave_out(need: Need, held: Sequence[PodGroup]) -> Need:
    """Return a need without the pods that have such a claim of their own already."""
    volumes = (volume for group in held for volume in mappings_at(group.spec, "volumes") if volume.get("ephemeral"))
    has = sum(volume.get("name") == need.own_of_pods for volume in volumes)
    return replace(need, pods=max(0, need.pods - has)) if has else need


def _count_pods(groups: Sequence[PodGroup]) -> Counter[str]:
    wanted: Counter[str] = Counter()
    for group in groups:
        for resource, amount in group.requests.items():
            names = [resource] if resource in ("pods", *_PLAIN) else []
            names += [f"requests.{resource}"] if resource != "pods" else ["count/pods"]
            for name in names:
                wanted[name] += amount * group.count
        for resource, amount in add_limits(group.spec).items():
            wanted[f"limits.{resource}"] += amount * group.count
    return wanted


def _is_scoped(quota: Object) -> bool:
    spec = section(quota, "spec")
    return bool(spec.get("scopes") or items_of(section(spec, "scopeSelector"), "matchExpressions"))


def _covers(quota: Object, pod: Mapping[str, Any]) -> bool:
    """Say whether a quota with scopes counts a pod."""
    spec = section(quota, "spec")
    scopes = spec.get("scopes")
    plain = [{"scopeName": str(scope), "operator": "Exists"} for scope in (scopes if isinstance(scopes, list) else ())]
    terms = [*plain, *items_of(section(spec, "scopeSelector"), "matchExpressions")]
    return all(_meets(term, pod) for term in terms)


def _meets(term: Object, pod: Mapping[str, Any]) -> bool:
    scope, operator = term.get("scopeName"), term.get("operator")
    if scope == "PriorityClass":
        name, values = pod.get("priorityClassName"), term.get("values") or []
        if operator in ("In", "NotIn"):
            return (name in values) is (operator == "In")
        return bool(name) is (operator == "Exists")
    ends = pod.get("activeDeadlineSeconds") is not None
    holds = {
        "Terminating": ends,
        "NotTerminating": not ends,
        "BestEffort": not _has_amounts(pod),
        "NotBestEffort": _has_amounts(pod),
        "CrossNamespacePodAffinity": False,
    }
    return holds.get(str(scope), True)


def _has_amounts(pod: Mapping[str, Any]) -> bool:
    containers = (*mappings_at(pod, "containers"), *mappings_at(pod, "initContainers"))
    return any(mapping_at(each, "resources", key) for each in containers for key in ("requests", "limits"))
