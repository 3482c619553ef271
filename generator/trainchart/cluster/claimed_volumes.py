"""Says why the PersistentVolume that a claim names is not given to it: released, of another claim, or gone. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.cluster.placement import find_homeless, list_volumes
from trainchart.cluster.snapshot import Object, Snapshot, Unreadable, listed, name_of, namespace_of, section
from trainchart.reports.report import Report
from trainchart_runtime.pod_problems import find_claims

_BOUND = "Bound"
_LOST = "Lost"
_RELEASED = "Released"
_FREE = """kubectl patch pv {} --type=json -p '[{{"op":"remove","path":"/spec/claimRef"}}]'"""


def find_taken_volumes(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield why claims of pods for which no node is found do not get the volumes that they name."""
    wanted = {claim for pod in find_homeless(report, seen) for claim in find_claims(pod)}
    volumes, read = {name_of(each): each for each in listed(seen.volumes)}, list_volumes(report, seen)
    for claim in listed(seen.claims):
        volume = str(section(claim, "spec").get("volumeName") or "")
        if name_of(claim) not in wanted or not volume or section(claim, "status").get("phase") == _BOUND:
            continue
        if volume in volumes:
            yield from _describe_other_owner(claim, volumes[volume])
        elif volume in read and not isinstance(seen.volumes, Unreadable):
            yield _describe_absence(claim, volume)


def _describe_other_owner(claim: Object, volume: Object) -> Iterator[str]:
    owner, own = section(volume, "spec", "claimRef"), section(claim, "metadata")
    known_as = (owner.get("namespace"), owner.get("name"))
    is_own = known_as == (namespace_of(claim), name_of(claim)) and owner.get("uid") in (None, "", own.get("uid"))
    if not owner or is_own:
        return
    begin = f"the claim {name_of(claim)} asks for the volume {name_of(volume)}"
    if section(volume, "status").get("phase") == _RELEASED:
        yield (
            f"{begin}, which is Released: it still belongs to the claim {'/'.join(map(str, known_as))}, which was "
            "deleted. Its data is still there, and an administrator can give it, with the data, to this claim: "
            f"{_FREE.format(name_of(volume))}"
        )
    else:
        yield (
            f"{begin}, which belongs to the claim {'/'.join(map(str, known_as))}: use that claim, or name another "
            "volume in a new one"
        )


def _describe_absence(claim: Object, volume: str) -> str:
    if section(claim, "status").get("phase") == _LOST:
        return (
            f"the volume {volume} of the claim {name_of(claim)} no longer exists: if its storage does, an "
            "administrator can create a volume of that name for it; otherwise the data is lost, and the claim must be "
            "deleted and created again, empty"
        )
    return (
        f"the claim {name_of(claim)} asks for the volume {volume}, which does not exist: correct volumeName in a new "
        "claim, or have an administrator create it"
    )
