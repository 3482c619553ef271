"""Finds what the last upgrades of a release changed, in Helm's own records of its revisions. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Any

from trainchart.cluster.helm_record import DEPLOYED, FAILED, HelmRecordError, HelmRelease, parse_release, revision_of
from trainchart.cluster.outside_changes import HELM
from trainchart.cluster.snapshot import Object, Objects, Unreadable, items_of, label, listed, section
from trainchart.compare.defaults import find_changed_defaults
from trainchart.json_documents import encode_value
from trainchart.reports.report import Report
from trainchart.reports.text import describe_time
from trainchart.reports.upgrade import Upgrade
from trainchart.secret_files import find_secret_content
from trainchart.secret_masks import MASK
from trainchart.secret_names import hide_logins, is_secret_name
from trainchart_runtime.log_text import hide_credentials, shorten
from trainchart_runtime.pod_problems import parse_time

_APPLIED = (DEPLOYED, "superseded", FAILED)
"""Status of the revisions whose objects Helm has sent, in part at least."""
_READ = 6
"""Revisions: each holds a whole chart."""
_SHOWN = 3
_KEPT = 100
"""Changes of an upgrade: more of them explain nothing."""
_SOON_SECONDS = 3600.0
"""An upgrade that came this long before the run began may still explain it: reruns are upgrades, too."""
_INSTALLING_SECONDS = 60.0
"""An installation creates all objects within it."""
_CONTROLS = ("run.id", "run.desiredState", "run.resume")
"""What trainchart rerun, stop, suspend and resume set."""
_PRIVATE = ("env", "envFrom", "args", "command", "extraManifests", "initContainers", "extraContainers")
"""Values whose texts may hold secrets under any name."""
_WIDTH = 80
_LONGEST_PATH = 200
_ROLLBACK = "Rollback to "


def find_upgrades(records: Objects, began: float, until: float = math.inf) -> tuple[Upgrade, ...]:
    """Return the last upgrades of a run, or soon before it, that changed values or the chart; oldest first.

    `began` and `until` are Unix seconds: what came after a failure does not explain it.
    """
    made = [each for each in listed(records) if label(each, "status") in _APPLIED]
    made = sorted(made, key=revision_of)[-_READ:]
    found = []
    for old, new in pairwise(made):
        at = parse_time(section(new, "metadata").get("creationTimestamp"))
        if at < began - _SOON_SECONDS:
            continue
        try:
            before, after = parse_release(old), parse_release(new)
            changes, dropped = (
                tuple(islice(listing(before, after), _KEPT)) for listing in (_list_changes, _list_dropped)
            )
        except (HelmRecordError, RecursionError):
            continue
        is_back = after.description.startswith(_ROLLBACK)
        kind = (after.description, ()) if is_back else ("", dropped)
        found += [Upgrade(after.revision, before.revision, at, changes, *kind)] if changes else []
    # Later ones that changed nothing, as reruns, count as little as those that came after a failure.
    return tuple(replace(each, newest=found[-1].revision) for each in found if each.at <= until)[-_SHOWN:]


def describe_unread_upgrade(
    report: Report, sets: Sequence[Object], unread: Unreadable, began: float, until: float
) -> Iterator[str]:
    """Yield when helm last changed the StatefulSets of a release, as they tell also where its records are not read."""
    installed = min((parse_time(section(each, "metadata").get("creationTimestamp")) for each in sets), default=0.0)
    edits = [entry for each in sets for entry in items_of(section(each, "metadata"), "managedFields")]
    times = [parse_time(entry.get("time")) for entry in edits if entry.get("manager") == HELM]
    last = max((at for at in times if at <= until), default=0.0)
    if last > installed + _INSTALLING_SECONDS and last >= began - _SOON_SECONDS:
        release, namespace = report.key.release, report.key.namespace
        words = (
            "You have no permission to read what it changed: ask someone who may read the Secrets of the namespace to "
            f"run trainchart why {report.address}"
            if unread.reason == "forbidden"
            else f"What it changed is unknown, because Helm's records of the release are {unread.reason}. See: helm "
            f"history {release} -n {namespace}, and helm get values {release} -n {namespace} --revision NUMBER"
        )
        yield f"helm upgrade changed the StatefulSets at {describe_time(last)}. {words}"


def _list_changes(before: HelmRelease, after: HelmRelease) -> Iterator[str]:
    if before.chart_version != after.chart_version:
        yield f"the chart, from version {before.chart_version} to {after.chart_version}"
    for change in find_changed_defaults(before.values, after.values):
        if change.path.endswith(_CONTROLS):
            continue
        words = [_show(change.path, value) for value in (change.before, change.after)]
        path = shorten(change.path, _LONGEST_PATH)
        yield f"{path} from {words[0]} to {words[1]}" if all(words) else path


def _list_dropped(before: HelmRelease, after: HelmRelease) -> Iterator[str]:
    for change in find_changed_defaults(before.given, after.given):
        if change.after is None and not change.path.endswith(_CONTROLS):
            yield shorten(change.path, _LONGEST_PATH)


def _show(path: str, value: Any) -> str:
    """Return a value as people may see it; "" where it may hold a secret, or is too long."""
    if value is None:
        return "nothing"
    keys = re.split(r"[./]", path)
    if any(key in _PRIVATE or is_secret_name(key) for key in keys):
        return ""
    if isinstance(value, (bool, int, float)):
        return encode_value(value)
    if not isinstance(value, str) or find_secret_content("values.yaml", value.encode("utf-8", "replace")) is not None:
        return ""
    text = encode_value(hide_credentials(hide_logins(value, MASK)))
    return text if len(text) <= _WIDTH else ""
