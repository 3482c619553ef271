"""What the API server says to the objects and pods of a release when it is asked to admit them on trial. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainchart.check.objects import mappings_at
from trainchart.cluster.snapshot import Object
from trainchart.doctor.needs import PodGroup
from trainchart.doctor.result import FAILED, OK, UNKNOWN, WARNING, Result
from trainchart_runtime.run.judge import list_names

OBJECTS, PODS, SIDECARS = "objects", "pods", "sidecars"
_NO_RIGHT = "cannot create resource"
_QUOTA = "exceeded quota:"
_SECURITY = "violates PodSecurity"
_POLICY = "ValidatingAdmissionPolicy"
_LIMITS = ("usage per", "limit to request ratio")
_CLAIM = "PersistentVolumeClaim "
"""Begins the names of claims, which another check tells of."""
_MOST = 10


@dataclass(frozen=True)
class Trial:
    """One object that the API server was asked to admit."""

    name: str
    """Kind and name, or the pods that it stands for."""
    completed: Object | None
    """What the API server made of it; None where it was refused."""
    refusal: str = ""
    is_there: bool = False
    """Whether an object of this name is there already."""


def check_objects(trials: Sequence[Trial]) -> Iterator[Result]:
    """Yield what keeps objects of the release from being created, or that nothing does."""
    every = [each for each in trials if each.refusal and not each.is_there and _QUOTA not in each.refusal]
    forbidden = [each.name for each in every if _NO_RIGHT in each.refusal]
    if forbidden:
        yield Result(
            OBJECTS,
            FAILED,
            f"you are not allowed to create {len(forbidden)} objects: {list_names(forbidden)}",
            _advise(_NO_RIGHT),
        )
    refused = [each for each in every if _NO_RIGHT not in each.refusal]
    for each in refused[:_MOST]:
        yield Result(OBJECTS, FAILED, f"{each.name}: {each.refusal}", _advise(each.refusal))
    if len(refused) > _MOST:
        yield Result(OBJECTS, FAILED, f"{len(refused) - _MOST} more objects are refused")
    there = [each.name for each in trials if each.is_there and not each.name.startswith(_CLAIM)]
    if there:
        yield Result(
            OBJECTS,
            WARNING,
            f"{len(there)} of {len(trials)} objects are there already: {list_names(there[:3])}",
            "a release of this name is installed, or left them; name another one with --release, or see: helm list",
        )
    elif not every:
        yield Result(OBJECTS, OK, f"the API server admits all {len(trials)} objects")


def check_pods(trials: Sequence[Trial]) -> Iterator[Result]:
    """Yield why the API server refuses pods of the release, or that it does not; quotas are told elsewhere."""
    refused: dict[str, list[str]] = {}
    for each in trials:
        if each.refusal and _QUOTA not in each.refusal:
            refused.setdefault(_NO_RIGHT if _NO_RIGHT in each.refusal else each.refusal, []).append(each.name)
    # The controllers of Kubernetes make the pods, not the caller.
    forbidden = refused.pop(_NO_RIGHT, [])
    if forbidden:
        yield Result(
            PODS, UNKNOWN, f"you are not allowed to create pods, so those of {list_names(forbidden)} were not tried"
        )
    for refusal, names in refused.items():
        yield Result(PODS, FAILED, f"pods of {list_names(names)}: {refusal}", _advise(refusal))
    if not refused and not forbidden:
        yield Result(PODS, OK, f"the API server admits the pods of {list_names([each.name for each in trials])}")


def check_sidecars(groups: Sequence[PodGroup], trials: Sequence[Trial]) -> Iterator[Result]:
    """Yield which containers are put into pods that the chart does not know of."""
    found = False
    for group, trial in zip(groups, trials, strict=True):
        added = sorted(_list_containers((trial.completed or {}).get("spec")) - _list_containers(group.spec))
        if added:
            found = True
            yield Result(
                SIDECARS,
                WARNING,
                f"something puts {list_names(added)} into the pods of {group.name}",
                "a proxy breaks the connections between training pods, and a container that never ends keeps pods "
                "from ending: exclude them with the label or annotation of that injector (podLabels, podAnnotations)",
            )
    if not found and any(trial.completed for trial in trials):
        yield Result(SIDECARS, OK, "nothing injects containers into the pods")


def complete_groups(groups: Sequence[PodGroup], trials: Sequence[Trial]) -> tuple[PodGroup, ...]:
    """Return the groups with what the API server adds to pods, such as the defaults of a LimitRange."""
    return tuple(
        PodGroup(group.name, group.count, trial.completed or group.pod, group.is_training)
        for group, trial in zip(groups, trials, strict=True)
    )


def _list_containers(spec: object) -> set[str]:
    return {str(each.get("name")) for key in ("containers", "initContainers") for each in mappings_at(spec, key)}


def _advise(refusal: str) -> str:
    if _NO_RIGHT in refusal:
        return "ask an administrator for this permission; trainchart's family tenant has a role for installing"
    if _SECURITY in refusal:
        return "the namespace's Pod Security level forbids it: drop the setting that is named, or use another namespace"
    if _POLICY in refusal:
        return "a policy of the cluster forbids it: ask the owner of the policy, or change what it names"
    if any(words in refusal for words in _LIMITS):
        return "a LimitRange of the namespace forbids it (kubectl describe limitrange): change what is asked for"
    if _QUOTA in refusal:
        return "have the quota raised, or remove what is no longer needed"
    return ""
