"""Results about a cluster as a whole: its version, its GPUs, and whether all pods find nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainchart.doctor.needs import PodGroup
from trainchart.doctor.packing import MAYBE, YES, Fit
from trainchart.doctor.refusals import describe_request
from trainchart.doctor.result import FAILED, OK, WARNING, Result
from trainchart.doctor.room import Room
from trainchart.quantities import may_be_gpu
from trainchart_runtime.run.judge import list_names

VERSIONS = ((1, 33), (1, 37))
"""Oldest and newest version of Kubernetes that charts are tested with."""
_CORDONED = ": taint node.kubernetes.io/unschedulable:"
_LACKS = (": too little ", " in all")
"""Words of doctor.refusals."""


def judge_version(version: tuple[int, int]) -> Result:
    """Return whether charts are made for this version of Kubernetes."""
    oldest, newest = VERSIONS
    text, known = f"{version[0]}.{version[1]}", f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"
    if version < oldest:
        return Result("version", FAILED, f"Kubernetes {text} is older than the versions that charts support, {known}")
    if version > newest:
        return Result(
            "version", WARNING, f"Kubernetes {text} is newer than the versions that charts are tested with, {known}"
        )
    return Result("version", OK, f"Kubernetes {text}")


def check_gpus(groups: Sequence[PodGroup], room: Room) -> Iterator[Result]:
    """Yield which nodes have the GPUs that pods ask for."""
    resources = {name for group in groups for name in group.requests if may_be_gpu(name)}
    for resource in sorted(resources):
        holders = [node for node in room.nodes if node.total.get(resource)]
        if holders:
            yield Result("gpu", OK, f"{len(holders)} of {len(room.nodes)} nodes have {resource}")
        else:
            others = sorted(
                {name for node in room.nodes for name, amount in node.total.items() if may_be_gpu(name) and amount}
            )
            yield Result(
                "gpu",
                FAILED,
                f"no node has {resource}",
                f"set gpu.resourceName to what the nodes have ({list_names(others)})"
                if others
                else "install the device plug-in, or add nodes with GPUs",
            )


def word_fit(fit: Fit, groups: Sequence[PodGroup], room: Room) -> Result:
    """Return in words whether the pods find nodes, and which do not."""
    total = sum(group.count for group in groups)
    if fit.verdict == YES:
        return Result("fit", OK, f"all {total} pods find nodes at once ({len(room.nodes)} nodes)")
    asked = {group.name: describe_request(group) for group in groups}
    lacking = "; ".join(
        f"{count} of {name} (each asks for {asked[name]}) find no node: {why}" for name, count, why in fit.waiting
    )
    if fit.verdict == MAYBE:
        fits = "fit only" if fit.won else "may fit, but only"
        chance = f"in {fit.won or 'none'} of {fit.played} simulated orders"
        return Result(
            "fit",
            WARNING,
            f"the {total} pods {fits} if they are placed well ({chance}): {lacking}",
            "free some room, or request less",
        )
    return Result(
        "fit",
        FAILED,
        lacking,
        _advise(" ".join(f" {why}" for _, _, why in fit.waiting)),
    )


def _advise(reasons: str) -> str:
    """Return what to do about the reasons for which nodes take no pod, in the words of doctor.refusals."""
    hints = []
    if ": taint " in reasons.replace(_CORDONED, ""):
        hints.append("where the pods may use nodes with that taint, set tolerations")
    if _CORDONED in reasons:
        hints.append("nodes are closed by hand: kubectl uncordon NODE opens one again")
    if "(nodeSelector, nodeAffinity)" in reasons:
        hints.append("compare nodeSelector and affinity with the labels of the nodes: kubectl get nodes --show-labels")
    if not hints or any(words in reasons for words in _LACKS):
        hints.append(
            "request less, add nodes, or free some: trainchart list -A shows which runs hold GPUs, and kubectl "
            "describe nodes shows what else runs there"
        )
    return "; ".join(hints)
