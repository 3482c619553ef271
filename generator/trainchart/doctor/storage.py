"""Whether the claims of a release can be bound as it needs them: by class, driver and access mode. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from trainchart.check.objects import find_pods, is_hook, mapping_at, mappings_at
from trainchart.cluster.snapshot import Object, name_of, section
from trainchart.doctor.provisioners import NO_PROVISIONER, Provisioner, find_provisioner
from trainchart.doctor.result import FAILED, OK, UNKNOWN, WARNING, Result
from trainchart.helm.rendering import Rendering
from trainchart_runtime.run.judge import list_names

CHECK = "storage"
KEPT = ("helm.sh/resource-policy", "keep")
_HOSTNAME = "kubernetes.io/hostname"
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_MANY = "ReadWriteMany"


@dataclass(frozen=True)
class Need:
    """One claim that pods of a release mount."""

    claim: str
    pods: int
    writes: bool
    """Whether any pod may write."""
    made: Object | None
    """The claim as the chart makes it; None for one that must exist."""
    is_on_one_node: bool = False
    """Whether all its pods are bound to one node by name."""
    own_of_pods: str = ""
    """Name of the volume of which each pod gets a claim of its own; "" for a claim that they share."""

    @property
    def modes(self) -> list[str]:
        """The access modes that the chart asks for."""
        found = section(self.made or {}, "spec").get("accessModes")
        return [str(mode) for mode in found] if isinstance(found, list) else []

    @property
    def storage_class(self) -> str | None:
        """The class that the chart asks for; None for the default, "" for none."""
        found = section(self.made or {}, "spec").get("storageClassName")
        return None if found is None else str(found)


def find_needs(rendering: Rendering) -> tuple[Need, ...]:
    """Return the claims that the pods of a release mount, hooks aside, by name."""
    made = {each.name: each.document for each in rendering.manifests if each.kind == "PersistentVolumeClaim"}
    pods: dict[str, int] = {}
    nodes: dict[str, set[str]] = {}
    own: dict[str, Need] = {}
    writers: set[str] = set()
    for each in find_pods(rendering):
        if is_hook(each.manifest):
            continue
        for volume in mappings_at(each.spec, "volumes"):
            source = mapping_at(volume, "persistentVolumeClaim")
            claim = str(source.get("claimName") or "")
            template = mapping_at(volume, "ephemeral", "volumeClaimTemplate")
            if template and each.replicas:
                name = str(volume.get("name"))
                title = f"{name} of each pod"
                count = each.replicas + (own[title].pods if title in own else 0)
                own[title] = Need(title, count, writes=True, made=template, own_of_pods=name)
            if claim:
                pods[claim] = pods.get(claim, 0) + (each.replicas or 0)
                nodes.setdefault(claim, set()).add(str(mapping_at(each.spec, "nodeSelector").get(_HOSTNAME) or ""))
                if not source.get("readOnly") and _is_written(each.spec, str(volume.get("name"))):
                    writers.add(claim)
    shared = (
        Need(claim, count, claim in writers, made.get(claim), len(nodes[claim]) == 1 and "" not in nodes[claim])
        for claim, count in sorted(pods.items())
    )
    return (*shared, *own.values())


def check_claims(
    needs: Sequence[Need],
    claims: Sequence[Object],
    classes: Sequence[Object] | None,
    version: tuple[int, int],
    *,
    is_kept_used: bool,
) -> Iterator[Result]:
    """Yield what stands against each claim, or that nothing does.

    `classes` are None where they may not be listed; `version` is that of Kubernetes; `is_kept_used` says whether the
    release takes over a claim that is there, since it is installed or its values say so.
    """
    known = {name_of(claim): claim for claim in claims}
    for need in needs:
        if need.made is None:
            found = _check_existing(need, known.get(need.claim), classes)
        elif need.claim in known and is_kept_used:
            found = _check_existing(need, known[need.claim], classes)
        elif need.claim in known:
            found = _check_left(need)
        elif classes is None:
            what = f"you are not allowed to list StorageClasses, so that of the claim {need.claim} was not checked"
            found = Result(CHECK, UNKNOWN, what)
        else:
            found = _check_class(need, classes, version)
        yield replace(found, subject=need.claim)


def find_class(need: Need, classes: Iterable[Object]) -> Object | None:
    """Return the StorageClass that will make the volume of a claim; None where there is none."""
    wanted = need.storage_class
    if wanted is None:
        defaults = [each for each in classes if section(each, "metadata", "annotations").get(_DEFAULT) == "true"]
        # Of several, Kubernetes takes the newest.
        return max(defaults, key=lambda each: str(section(each, "metadata").get("creationTimestamp")), default=None)
    return next((each for each in classes if name_of(each) == wanted), None)


def _is_written(spec: Mapping[str, object], volume: str) -> bool:
    containers = (*mappings_at(spec, "containers"), *mappings_at(spec, "initContainers"))
    mounts = (mount for container in containers for mount in mappings_at(container, "volumeMounts"))
    return any(mount.get("name") == volume and not mount.get("readOnly") for mount in mounts)


def _check_existing(need: Need, claim: Object | None, classes: Sequence[Object] | None) -> Result:
    if claim is None:
        return Result(
            CHECK,
            FAILED,
            f"the claim {need.claim} does not exist, and the chart does not create it",
            f"{need.pods} pods would wait for it: create it, or set existingClaim to one of: kubectl get pvc",
        )
    problem = _describe_state(claim, classes)
    if problem:
        return Result(CHECK, FAILED, f"the claim {need.claim} {problem}", f"see: kubectl describe pvc {need.claim}")
    modes = _list_modes(claim)
    is_together = need.is_on_one_node and "ReadWriteOnce" in modes
    if need.pods > 1 and not set(modes) & {_MANY, "ReadOnlyMany"} and not is_together:
        return Result(
            CHECK,
            FAILED,
            f"{need.pods} pods mount the claim {need.claim}, which is {list_names(modes)}: it serves one node only",
            "use a claim that is ReadWriteMany, or have one pod mount it (roles of the volume)",
        )
    if need.writes and set(modes) <= {"ReadOnlyMany"}:
        return Result(
            CHECK,
            FAILED,
            f"the claim {need.claim} is ReadOnlyMany, but pods must write to it",
            "set readOnly for that volume, or use a writable claim",
        )
    if section(claim, "status").get("phase") == "Pending":
        what = f"the claim {need.claim} is not bound yet; a class may wait for the first pod that mounts it"
        return Result(CHECK, WARNING, what, f"see: kubectl describe pvc {need.claim}")
    size = section(claim, "status", "capacity").get("storage")
    return Result(CHECK, OK, f"the claim {need.claim} is bound: {list_names(modes)}, {size or 'size unknown'}")


def _check_left(need: Need) -> Result:
    return Result(
        CHECK,
        FAILED,
        f"an earlier release has left the claim {need.claim}, so an installation is refused",
        f"to continue from its checkpoints: --set run.resume=latest; to start over: kubectl delete pvc {need.claim}",
    )


def _check_class(need: Need, classes: Sequence[Object], version: tuple[int, int]) -> Result:
    wanted, found = need.storage_class, find_class(need, classes)
    names = list_names(sorted(name_of(each) for each in classes)) or "none"
    if wanted == "":
        return Result(
            CHECK,
            WARNING,
            f"the claim {need.claim} names no StorageClass, so it waits for a PersistentVolume that fits",
            "an administrator must create one; otherwise, set storageClass",
        )
    if found is None:
        what = f"there is no StorageClass {wanted}" if wanted else "the cluster has no default StorageClass"
        return Result(
            CHECK, FAILED, f"{what}, and the claim {need.claim} asks for it", f"set storageClass; there are: {names}"
        )
    driver = str(found.get("provisioner") or "")
    known = find_provisioner(driver)
    problem = _find_misfit(need, known, version)
    if problem:
        return Result(CHECK, FAILED, f"the claim {need.claim}: {problem[0]}", problem[1])
    if known and known.caution and need.writes:
        return Result(CHECK, WARNING, f"the claim {need.claim} comes from {known.name}: {known.caution}")
    if driver == NO_PROVISIONER:
        return Result(
            CHECK,
            WARNING,
            f"the class {name_of(found)} of the claim {need.claim} creates no volumes: it waits for one that fits",
            "an administrator must create one of that class",
        )
    by = known.name if known else driver
    return Result(CHECK, OK, f"the claim {need.claim} comes from {name_of(found)} ({by}), {list_names(need.modes)}")


def _find_misfit(need: Need, known: Provisioner | None, version: tuple[int, int]) -> tuple[str, str] | None:
    if known is None:
        return None
    if known.removed_in and version >= _read_version(known.removed_in):
        return f"Kubernetes {known.removed_in} has removed {known.name} volumes", known.instead
    lacking = [mode for mode in need.modes if mode not in known.access_modes]
    if lacking:
        can = list_names(sorted(known.access_modes))
        return f"{known.name} cannot be {list_names(lacking)} (it can be {can})", known.instead
    return None


def _describe_state(claim: Object, classes: Sequence[Object] | None) -> str:
    if section(claim, "metadata").get("deletionTimestamp"):
        return "is being deleted"
    phase, wanted = section(claim, "status").get("phase"), section(claim, "spec").get("storageClassName")
    if phase == "Pending" and wanted and classes is not None and wanted not in map(name_of, classes):
        return f"is not bound: there is no StorageClass {wanted}"
    return "has lost its volume" if phase == "Lost" else ""


def _list_modes(claim: Object) -> list[str]:
    found = section(claim, "status").get("accessModes") or section(claim, "spec").get("accessModes")
    return [str(mode) for mode in found] if isinstance(found, list) else []


def _read_version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
