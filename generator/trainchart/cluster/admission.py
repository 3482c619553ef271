"""Says that the admission policy or webhook that refuses pods came, or was changed, during the run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainchart.cluster.snapshot import Object, Objects, items_of, listed, name_of, section
from trainchart.reports.report import Report
from trainchart.reports.text import describe_time
from trainchart_runtime.pod_causes import ADMISSION_REFUSED
from trainchart_runtime.pod_problems import parse_time

_REFUSER = re.compile(r"ValidatingAdmissionPolicy '([^']+)'|admission webhook \"([^\"]+)\"")


def find_refusers(report: Report) -> set[str]:
    """Return the names of the policies and webhooks that refuse pods of a run, as the refusals have them."""
    messages = (each.message for each in report.problems if each.cause == ADMISSION_REFUSED.name)
    return {policy or webhook for message in messages for policy, webhook in _REFUSER.findall(message)}


def describe_new_refusers(report: Report, policies: Objects, began: float) -> Iterator[str]:
    """Yield which of the policies and webhook configurations that refuse pods came, or were changed, after `began`."""
    refusers = find_refusers(report)
    for each in listed(policies):
        names = {name_of(each), *(str(webhook.get("name")) for webhook in items_of(each, "webhooks"))}
        created, changed = parse_time(section(each, "metadata").get("creationTimestamp")), _find_change(each)
        if names & refusers and max(created, changed) > began:
            how, at = ("created", created) if created > began else ("changed", changed)
            yield (
                f"{name_of(each)}, which refuses the pods, was {how} at {describe_time(at)}, after the run began: "
                "existing pods continue, and every new one is refused"
            )


def _find_change(each: Object) -> float:
    """Return when what an object asks for was last changed, its status aside."""
    entries = items_of(section(each, "metadata"), "managedFields")
    return max((parse_time(entry.get("time")) for entry in entries if not entry.get("subresource")), default=0.0)
