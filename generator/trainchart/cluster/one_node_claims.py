"""Says which claims serve one node or one pod at a time, while pods elsewhere wait for them. Pure.

Drivers and Kubernetes name the volume, not the claim, each in its own words; who mounts what is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.cluster.snapshot import Object, Snapshot, has_ended, listed, name_of, section
from trainchart.reports.report import Report
from trainchart_runtime.pod_causes import CLAIM_IN_USE, VOLUME_ERROR
from trainchart_runtime.pod_problems import find_claims
from trainchart_runtime.run.judge import list_names

_WAITS = (CLAIM_IN_USE.name, VOLUME_ERROR.name)
_OF_ONE_POD = "ReadWriteOncePod"
_SHARED = {"ReadWriteMany", "ReadOnlyMany"}


def find_one_node_claims(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield each claim of one node or pod that pods of the training wait for, who mounts it, and what to do."""
    waiting = {each.subject for each in report.problems if each.cause in _WAITS}
    users: dict[str, list[Object]] = {}
    for pod in listed(seen.pods) if waiting else ():
        for claim in find_claims(pod) if not has_ended(pod) else ():
            users.setdefault(claim, []).append(pod)
    for each in listed(seen.claims):
        modes = _list_modes(each)
        pods = users.get(name_of(each), [])
        nodes = {str(section(pod, "spec").get("nodeName") or "") for pod in pods}
        is_of_one_pod = modes == [_OF_ONE_POD]
        is_apart = len(pods) > 1 if is_of_one_pod else len(nodes - {""}) > 1
        if modes and is_apart and not _SHARED & set(modes) and waiting & {name_of(pod) for pod in pods}:
            yield _describe(name_of(each), modes, pods, is_of_one_pod=is_of_one_pod)


def _describe(claim: str, modes: list[str], pods: list[Object], *, is_of_one_pod: bool) -> str:
    where = [f"{name_of(pod)} on {section(pod, 'spec').get('nodeName') or 'no node'}" for pod in pods]
    serves, other = ("pod", "let one pod mount it (roles)") if is_of_one_pod else ("node", "keep its pods on one node")
    return (
        f"the claim {claim} is {list_names(modes)}, which serves one {serves} at a time, but several pods mount it: "
        f"{list_names(where)}. Give the release a claim that is ReadWriteMany, of a class such as CephFS, or {other}"
    )


def _list_modes(claim: Object) -> list[str]:
    found = section(claim, "status").get("accessModes") or section(claim, "spec").get("accessModes")
    return [str(mode) for mode in found] if isinstance(found, list) else []
