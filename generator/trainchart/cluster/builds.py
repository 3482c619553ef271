"""Says which pods of a release run different builds of its image under one tag. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.cluster.snapshot import Object, Snapshot, is_training_pod, listed, name_of, section
from trainchart.reports.report import Report
from trainchart_runtime.image_builds import read_build
from trainchart_runtime.run.judge import list_names

_INCOMPATIBLE = "Different builds may be incompatible: fix this first. "
_PUSHED_AGAIN = (
    f"The tag was pushed again, and a node keeps what it has pulled. {_INCOMPATIBLE}Set image.digest in the values to "
    "the intended build ({}), or push it under a new tag, and upgrade; image.pullPolicy=Always alone does not keep a "
    "tag from moving during a run"
)
_LOADED = (
    f"The nodes hold different images under one tag. {_INCOMPATIBLE}Load the same image on every node, or push the "
    "intended build under a new tag, and upgrade"
)
"""Of images that were loaded by hand: they have an ID, but no digest that a pod could ask for."""
_DIGEST_SHOWN = 19
"""Characters of a digest: sha256: and twelve digits."""


def find_mixed_builds(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which pods run which build, where one tag of one repository has several.

    Machines of different processors may have such by right: while no node was looked at, only a run in trouble counts.
    """
    if not (report.problems or report.incidents or seen.nodes):
        return
    for (image, source), builds in _list_builds(seen).items():
        if len(builds) > 1 and len(_list_architectures(seen, builds)) < 2:
            rarest = sorted(builds.items(), key=lambda build: len(build[1]))
            parts = [_describe(digest, pods) for digest, pods in rarest]
            digests = " or ".join(digest for digest, _ in reversed(rarest))
            yield (
                f"the pods run different builds of {image}: {', '.join(parts)}. "
                f"{_PUSHED_AGAIN.format(digests) if source else _LOADED}"
            )


def has_mixed_builds(seen: Snapshot) -> bool:
    """Say whether pods run different builds of one tag, whatever their nodes."""
    return any(len(builds) > 1 for builds in _list_builds(seen).values())


def _list_builds(seen: Snapshot) -> dict[tuple[str, str], dict[str, list[Object]]]:
    """Return for each image, and the repository that it came from, if any, which pods have which digest."""
    found: dict[tuple[str, str], dict[str, list[Object]]] = {}
    for pod in listed(seen.pods):
        build = read_build(pod) if is_training_pod(pod) else None
        if build is not None and not section(pod, "metadata").get("deletionTimestamp"):
            found.setdefault((build.image, build.source), {}).setdefault(f"sha256:{build.digest}", []).append(pod)
    return found


def _describe(digest: str, pods: list[Object]) -> str:
    nodes = list_names(sorted({str(section(pod, "spec").get("nodeName")) for pod in pods}))
    have = "has" if len(pods) == 1 else "have"
    return f"{list_names([name_of(pod) for pod in pods])} on {nodes} {have} {digest[:_DIGEST_SHOWN]}"


def _list_architectures(seen: Snapshot, builds: dict[str, list[Object]]) -> set[str]:
    """Return the processors of the nodes of these pods, as far as nodes are known: each may have its own image."""
    used = {section(pod, "spec").get("nodeName") for pods in builds.values() for pod in pods}
    return {
        str(section(node, "status", "nodeInfo").get("architecture"))
        for node in listed(seen.nodes)
        if name_of(node) in used
    }
