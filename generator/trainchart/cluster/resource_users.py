"""Says who holds what a training waits for: the resources of a quota, or those of the nodes. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from trainchart.cluster.snapshot import (
    Object,
    Objects,
    has_ended,
    items_of,
    label,
    listed,
    name_of,
    namespace_of,
    owner_of,
    section,
)
from trainchart.quantities import read_amount
from trainchart.reports.hints import HELD_BY
from trainchart.reports.quotas import COUNT_OF_PODS, list_exceeded
from trainchart.reports.report import Report
from trainchart.reports.text import describe_time
from trainchart_runtime.contract import INSTANCE_LABEL, REPLICAS_ANNOTATION
from trainchart_runtime.pod_causes import UNSCHEDULABLE
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names

_INSUFFICIENT = re.compile(r"Insufficient ([a-z0-9][\w./-]*\w)")
_SAME_TIME_SECONDS = 60.0
"""Pods of one installation are created within this time."""
_SHOWN = 4
"""Owners that are named for one resource, those with most first."""
_GIBI = 2**30


def lacks_nodes(report: Report) -> bool:
    """Return whether pods of the training find no node with enough left of a resource."""
    return bool(_find_lacking(report))


def find_node_users(report: Report, pods: Objects) -> Iterator[str]:
    """Yield per resource that the nodes lack, which of `pods` hold it, or that no node has ever so much."""
    on_nodes = tuple(pod for pod in listed(pods) if section(pod, "spec").get("nodeName"))
    for resource in _find_lacking(report):
        if any(_exceeds_nodes(problem.message, resource) for problem in report.problems):
            yield (
                f"no node has as much {resource} as a pod asks for, even without other pods, so freeing some does not "
                f"help: compare with Allocatable in kubectl describe nodes. If {resource} is 0 or missing there, its "
                "device plugin or driver has failed"
            )
        elif users := _describe_users(report, resource, on_nodes):
            yield f"{resource} {HELD_BY} {users}"


def find_quota_users(report: Report, pods: Objects) -> Iterator[str]:
    """Yield per resource that a quota does not give, which pods of the namespace use it."""
    refusals = list_exceeded(report.problems)
    for quota, resource in dict.fromkeys((each.quota, each.resource) for each in refusals):
        if users := _describe_users(report, resource, pods):
            yield f"{resource} of the quota {quota} is used by {users}"


def find_hopeless_quotas(report: Report, owners: Iterable[Object]) -> Iterator[str]:
    """Yield per resource of a quota that the pods of the release alone need more than it ever gives.

    `owners` are the StatefulSets and Jobs of the release.
    """
    refusals = list_exceeded(report.problems)
    for each in dict.fromkeys((each.quota, each.resource, each.hard) for each in refusals):
        quota, resource, limit = each
        hard, needed = read_amount(limit), sum(_count_all(owner, resource) for owner in owners)
        if hard is not None and needed > hard:
            yield (
                f"this release alone needs {_show(resource, Decimal(needed))} of {_show(resource, hard)} {resource} in "
                f"the quota {quota}: waiting, or stopping others, cannot help. Have the quota raised, or request less: "
                "fewer replicas, or smaller resources"
            )


def _count_all(owner: Object, resource: str) -> Decimal:
    """Return how much of a resource all pods of a StatefulSet or a Job ask for that it is to have."""
    spec = section(owner, "spec")
    annotated = section(owner, "metadata", "annotations").get(REPLICAS_ANNOTATION)
    number = read_amount(annotated if annotated is not None else spec.get("parallelism", 1))
    is_over = any(
        each.get("type") in ("Complete", "Failed") and each.get("status") == "True"
        for each in items_of(section(owner, "status"), "conditions")
    )
    return Decimal(0) if is_over or number is None else number * _count(section(spec, "template"), resource)


def _find_lacking(report: Report) -> list[str]:
    messages = [problem.message for problem in report.problems if problem.cause == UNSCHEDULABLE.name]
    return list(dict.fromkeys(name for message in messages for name in _INSUFFICIENT.findall(message)))


def _exceeds_nodes(message: str, resource: str) -> bool:
    """Return whether the scheduler says that removing pods would help on no node, and that all lack this resource."""
    lacking = re.search(rf"0/(\d+) nodes are available: .*?(\d+) Insufficient {re.escape(resource)}\b", message)
    hopeless = re.search(r"(\d+) Preemption is not helpful for scheduling", message)
    return bool(lacking and hopeless and lacking[1] == lacking[2] == hopeless[1])


def _describe_users(report: Report, resource: str, pods: Objects) -> str:
    """Return who holds a resource, with the amounts, those with most first; "" where no pod that is seen does."""
    held: dict[str, Decimal] = defaultdict(Decimal)
    times: dict[str, list[float]] = defaultdict(list)
    for pod in listed(pods):
        amount = _count(pod, resource)
        if amount and not has_ended(pod):
            user = _name_user(report, pod)
            held[user] += amount
            times[user].append(parse_time(section(pod, "metadata").get("creationTimestamp")))
    users = sorted(held, key=lambda user: (-held[user], user))
    parts = [f"{user} ({_show(resource, held[user])}, {_word_since(times[user])})" for user in users[:_SHOWN]]
    more = [f"{len(users) - _SHOWN} others"] if len(users) > _SHOWN else []
    return list_names([*parts, *more])


def _word_since(times: Sequence[float]) -> str:
    """Return since when something is held, and when the last of it was taken if that was much later."""
    first, last = min(times), max(times)
    more = f", the last of it since {describe_time(last)}" if last - first > _SAME_TIME_SECONDS else ""
    return f"since {describe_time(first)}{more}"


def _count(pod: Object, resource: str) -> Decimal:
    """Return how much of a resource a pod's containers ask for. Quotas write requests. or limits. before its name."""
    kind = "limits" if resource.startswith("limits.") else "requests"
    name = resource.removeprefix("requests.").removeprefix("limits.")
    if name in ("pods", COUNT_OF_PODS):
        return Decimal(1)
    total = Decimal(0)
    for container in items_of(section(pod, "spec"), "containers"):
        resources = section(container, "resources")
        # The API server takes a limit for the request where there is none.
        given = [section(resources, each).get(name) for each in (kind, "limits")]
        total += next((amount for amount in map(read_amount, given) if amount is not None), Decimal(0))
    return total


def _name_user(report: Report, pod: Object) -> str:
    release, namespace = label(pod, INSTANCE_LABEL), namespace_of(pod)
    is_here = namespace == report.key.namespace
    if is_here and release == report.key.release:
        return "this release"
    name = f"release {release}" if release else owner_of(pod) or f"pod {name_of(pod)}"
    return name if is_here else f"{name} in namespace {namespace}"


def _show(resource: str, amount: Decimal) -> str:
    if "memory" in resource or "storage" in resource:
        return f"{amount / _GIBI:.1f}Gi"
    return f"{amount.normalize():f}"
