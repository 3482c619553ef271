"""Claims that wait for a volume that their provisioner does not make, and gives no event about. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from trainchart.cluster.snapshot import Object, name_of, section
from trainchart.doctor.probe import Probe
from trainchart.doctor.provisioners import NO_PROVISIONER

_UNBOUND = "unbound immediate PersistentVolumeClaims"


def describe_waiting_claim(
    probe: Probe, message: str, claims: Sequence[Object], classes: Sequence[Object]
) -> tuple[str, str] | None:
    """Return which claim a pod of the probe waits for, and what to do, by the scheduler's message; else None.

    Where a class waits for the first pod, the message is that of an earlier attempt, before the claim was there.
    """
    by_name = {name_of(each): each for each in classes}
    names = {each.claim: each.need.claim for each in probe.volumes}
    for claim in claims:
        name = name_of(claim)
        made_by = by_name.get(str(section(claim, "spec").get("storageClassName")))
        if name not in names or made_by is None or section(claim, "status").get("phase") != "Pending":
            continue
        is_immediate = made_by.get("volumeBindingMode") != "WaitForFirstConsumer"
        if f'"{name}" not found' in message or (is_immediate and _UNBOUND in message):
            return _describe(names[name], name_of(made_by), str(made_by.get("provisioner")))
    return None


def _describe(claim: str, storage_class: str, provisioner: str) -> tuple[str, str]:
    waits = f"claim {claim} of class {storage_class} stays Pending:"
    look = f"kubectl describe storageclass {storage_class}"
    if provisioner == NO_PROVISIONER:
        return f"{waits} no PersistentVolume fits", f"{look}: an administrator must create a volume of that class"
    return (
        f"{waits} provisioner {provisioner} has not made a volume",
        f"{look}: the provisioner {provisioner} must be installed and running; or set storageClass to another class",
    )
