"""Says that the rights of a run controller are gone, which it cannot see itself. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainchart.cluster.remarks import describe_rollback
from trainchart.cluster.snapshot import Object, Objects, is_controllers, items_of, label, listed, name_of, section
from trainchart.reports.report import Report
from trainchart_runtime.contract import INSTANCE_LABEL


def find_account(jobs: Sequence[Object]) -> str:
    """Return the ServiceAccount of the run controller; "" where there is no controller."""
    specs = (section(job, "spec", "template", "spec") for job in jobs if is_controllers(job))
    names = (spec.get("serviceAccountName") for spec in specs)
    return next((str(name) for name in names if name), "")


def find_missing_rights(report: Report, account: str, objects: dict[str, Objects]) -> Iterator[str]:
    """Yield which object that gives the controller its rights is missing; nothing where that cannot be known.

    `objects` are what read_rights has found by the name `account`, by kind: a chart makes all or none. Objects that
    others made for it, as extraManifests may, have names of their own.
    """
    release = report.key.release
    cure = f"{describe_rollback(report)} restores it"
    every = [each for found in objects.values() for each in listed(found)]
    if report.is_over or not any(is_controllers(each) and label(each, INSTANCE_LABEL) == release for each in every):
        return
    for kind, found in objects.items():
        if isinstance(found, tuple) and not any(name_of(each) == account for each in found):
            yield f"the {kind} {account} is missing, so its run controller lacks rights that the run needs: {cure}"
    bindings = listed(objects["RoleBinding"])
    subjects = [each.get("name") for binding in bindings for each in items_of(binding, "subjects")]
    if bindings and account not in subjects:
        yield f"the RoleBinding {account} no longer names the ServiceAccount of its run controller: {cure}"
