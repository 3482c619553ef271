"""Says which pods of a release run different builds of its image under one tag. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.cluster.snapshot import Object, Snapshot, is_training_pod, items_of, listed, name_of, section
from trainchart.reports.report import Report
from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.run.judge import list_names

_DIGEST_SHOWN = 19
"""Characters of a digest: sha256: and twelve digits."""


def find_mixed_builds(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which pods run which build, where one tag of one repository has several.

    Machines of different processors may have such by right: while no node was looked at, only a run in trouble counts.
    """
    if not (report.problems or report.incidents or seen.nodes):
        return
    for (image, _), builds in _list_builds(seen).items():
        if len(builds) > 1 and len(_list_architectures(seen, builds)) < 2:
            rarest = sorted(builds.items(), key=lambda build: len(build[1]))
            parts = [_describe(digest, pods) for digest, pods in rarest]
            digests = " or ".join(digest for digest, _ in reversed(rarest))
            yield (
                f"the pods run different builds of {image}: {', '.join(parts)}. The tag was pushed again, and a node "
                "keeps what it has pulled. Different builds may be incompatible: fix this first. Set "
                f"image.digest in the values to the intended build ({digests}), or push it under a new tag, and "
                "upgrade; image.pullPolicy=Always alone does not keep a tag from moving during a run"
            )


def has_mixed_builds(seen: Snapshot) -> bool:
    """Say whether pods run different builds of one tag, whatever their nodes."""
    return any(len(builds) > 1 for builds in _list_builds(seen).values())


def _list_builds(seen: Snapshot) -> dict[tuple[str, str], dict[str, list[Object]]]:
    """Return for each image, and the repository that it came from, which pods have which digest."""
    found: dict[tuple[str, str], dict[str, list[Object]]] = {}
    for pod in listed(seen.pods):
        image, (repository, _, digest) = _name_image(pod), _read_build(pod).partition("@")
        # An image named by digest is one build; one that was loaded into a node by hand has no digest to compare.
        is_known = image and digest and "@" not in image
        if is_known and is_training_pod(pod) and not section(pod, "metadata").get("deletionTimestamp"):
            found.setdefault((image, repository), {}).setdefault(digest, []).append(pod)
    return found


def _name_image(pod: Object) -> str:
    """Return the image that a pod asks for."""
    names = [each for each in items_of(section(pod, "spec"), "containers") if each.get("name") == TRAINING_CONTAINER]
    return str(names[0].get("image") or "") if names else ""


def _read_build(pod: Object) -> str:
    """Return REPOSITORY@DIGEST of what a pod's training container runs; "" where it is not known."""
    for each in items_of(section(pod, "status"), "containerStatuses"):
        if each.get("name") == TRAINING_CONTAINER:
            build = str(each.get("imageID") or "").rpartition("://")[2]
            return build if "@sha256:" in build else ""
    return ""


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
