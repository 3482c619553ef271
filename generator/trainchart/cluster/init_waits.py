"""Says which init containers keep pods from starting, and what they wait for, by their last line or command. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainchart.cluster.snapshot import Object, Snapshot, items_of, listed, name_of, section
from trainchart.reports.report import Report
from trainchart.reports.text import describe_seconds, describe_time
from trainchart.secret_masks import MASK, mask_command
from trainchart.secret_names import hide_command_logins, hide_logins
from trainchart_runtime.log_text import hide_credentials, shorten
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import RUNNING

_LONG_SECONDS = 60.0
"""A start that has done nothing wrong takes less: an init container that copies a file, a secret that is fetched."""
_SHOWN = 160
"""Characters of a line or command."""
_READ = 4096
"""Characters of a command that are looked at."""
_ADDED = (
    ". The chart does not have this container: a webhook or policy of the cluster adds it, as service meshes do. If it "
    "cannot be repaired, exclude the pods from it, for example with podLabels: "
    "{sidecar.istio.io/inject: 'false'} for Istio"
)
_ADDRESS = re.compile(r"(?:(?<=//)|(?<![\w.\-@/:$%{]))([a-z][a-z0-9-]*):(\d{2,5})(?![\w.@:])")


class InitWait(NamedTuple):
    """An init container that must end, or a sidecar that must have started, before its pod goes on."""

    pod: str
    container: str
    since: float
    command: str
    """In one line; empty where the image says it."""
    is_sidecar: bool = False


def find_init_waits(report: Report, seen: Snapshot) -> list[InitWait]:
    """Return the containers that have kept pods from starting for long."""
    waits = (wait for pod in listed(seen.pods) for wait in _find_first(pod))
    return [wait for wait in waits if report.now - wait.since >= _LONG_SECONDS]


def describe_init_waits(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield what keeps pods from starting, once for all whose containers do the same."""
    groups: dict[tuple[str, str], list[InitWait]] = {}
    for wait in find_init_waits(report, seen):
        groups.setdefault((wait.container, wait.command), []).append(wait)
    for group in groups.values():
        first, names = min(group, key=lambda wait: wait.since), [wait.pod for wait in group]
        start = "does not start: its" if len(group) == 1 else "do not start: their"
        kind, more = ("sidecar", " and has not started yet") if first.is_sidecar else ("init container", "")
        line = next((seen.init_lines[name] for name in names if name in seen.init_lines), None)
        said = f" Its last line: {shorten(line, _SHOWN)}." if line else ""
        said = f" Its command: {shorten(first.command, _SHOWN)}." if first.command and not line else said
        said += " It has printed nothing." if line == "" else ""
        said += _find_absent(report, seen, first) + _find_earlier_end(report, group)
        logs = "" if line == "" else f"kubectl logs {first.pod} -c {first.container} -n {report.key.namespace}, or "
        age = describe_seconds(report.now - first.since)
        yield (
            f"{list_names(names)} {start} {kind} {first.container} has run for {age}{more}.{said} To see what it waits "
            f"for: {logs}its command in kubectl "
            f"describe pod{_ADDED if _is_added(first, seen) else ''}"
        )


def _find_earlier_end(report: Report, group: Sequence[InitWait]) -> str:
    """Return that an earlier pod of the same name has ended while it started, so that its work may be half done."""
    if any(each.phase == RUNNING for each in report.history):
        return ""
    begins = {wait.pod: wait.since for wait in group}
    ended = [each for each in report.incidents if each.pod in begins and 0 < each.at <= begins[each.pod]]
    if not ended:
        return ""
    return (
        f" The pod {ended[-1].pod} before this one ended at {describe_time(ended[-1].at)} ({ended[-1].cause}), during "
        "its start: look for what its containers may have left behind, such as a lock or a half-written file."
    )


def _is_added(wait: InitWait, seen: Snapshot) -> bool:
    """Say whether no pod template of the training has the container."""
    specs = [section(each, "spec", "template", "spec") for each in (*listed(seen.sets), *listed(seen.jobs))]
    names = {str(each.get("name")) for spec in specs for each in items_of(spec, "initContainers")}
    return any(spec.get("containers") for spec in specs) and wait.container not in names


def _find_first(pod: Object) -> Iterator[InitWait]:
    specs = {str(each.get("name")): each for each in items_of(section(pod, "spec"), "initContainers")}
    for status in items_of(section(pod, "status"), "initContainerStatuses"):
        name, since = str(status.get("name")), section(status, "state", "running").get("startedAt")
        is_sidecar = specs.get(name, {}).get("restartPolicy") == "Always"
        is_awaited = not is_sidecar or status.get("started") is False
        if since and is_awaited and "deletionTimestamp" not in section(pod, "metadata"):
            yield InitWait(name_of(pod), name, parse_time(since), _read_command(specs.get(name, {})), is_sidecar)


def _read_command(container: Object) -> str:
    """Return the command and arguments of a container in one line, without passwords."""
    parts = [container.get(key) for key in ("command", "args")]
    words = [str(word) for part in parts if isinstance(part, list) for word in part]
    line = " ".join(" ".join(mask_command(words)).split())[:_READ]
    return hide_credentials(hide_command_logins(hide_logins(line, MASK), MASK))


def _find_absent(report: Report, seen: Snapshot, wait: InitWait) -> str:
    """Return which Services a command names that its namespace does not have; "" where that is not known."""
    present = {name_of(each) for each in listed(seen.services)}
    place = report.key.namespace
    inside = re.findall(rf"(?<![\w-])([a-z][a-z0-9-]*)\.{re.escape(place)}\.svc\b", wait.command)
    pods = [pod for pod in listed(seen.pods) if name_of(pod) == wait.pod]
    aliases = [each.get("hostnames") or () for pod in pods for each in items_of(section(pod, "spec"), "hostAliases")]
    known = {"localhost", *present, *(name for names in aliases for name in names)}
    named = dict.fromkeys((*inside, *(name for name, _ in _ADDRESS.findall(wait.command))))
    missing = [name for name in named if name not in known] if present else []
    return f" It names {list_names(missing)}, and {place} has no such Service." if missing else ""
