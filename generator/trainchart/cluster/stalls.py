"""What keeps a training from going on although nothing of it has failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from trainchart.cluster.claimed_volumes import find_taken_volumes
from trainchart.cluster.init_waits import describe_init_waits
from trainchart.cluster.placement import find_placements
from trainchart.cluster.snapshot import (
    Object,
    Snapshot,
    has_ended,
    items_of,
    label,
    listed,
    name_of,
    owner_uid,
    section,
)
from trainchart.quantities import read_amount
from trainchart.reports.report import Report
from trainchart.reports.text import describe_seconds, describe_time
from trainchart_runtime.cluster import PS
from trainchart_runtime.pod_causes import NO_NODE_MATCHES
from trainchart_runtime.pod_changes import describe_changes, read_settings
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names
from trainchart_runtime.run.state import RUNNING

_TASK_NAME = re.compile(r"\b([a-z0-9][-a-z0-9]{0,62}-(?:chief|worker|ps|evaluator))-\d+(?=\.[a-z0-9])")
"""The pod in the address of a task, such as exp1-mnist-ps-0.exp1-mnist:2222, and its StatefulSet."""
_REVISION = "controller-revision-hash"
_DEFAULT_SCHEDULER = "default-scheduler"
_CPU_LIMIT = "limits.cpu"
"""What makes a program slow that has not failed; where memory lacks, it fails."""
_OF_KUBERNETES = ("kube-controller-manager", "kube-scheduler", "kubelet")
"""Managers of fields that make and run pods, and change nothing about them."""
_TOOLS = ("kubectl", "OpenAPI-Generator", "python-requests", "curl", "lens", "k9s")
"""What names of clients begin with that people and scripts use: they have no owner on the cluster."""
_NAMES_SHOWN = 8
_IGNORED_SECONDS = 30.0
"""A scheduler says after a moment that it finds no node."""


def find_stalls(report: Report, seen: Snapshot, homeless: Collection[str]) -> list[str]:
    """Return a remark for each stall: no node, an init container, a parameter server that has left, a foreign peer.

    `homeless` are the names of the training's pods that have no node.
    """
    return [
        *_find_selectors(report, seen),
        *_find_added_selectors(seen, homeless),
        *find_placements(report, seen),
        *find_taken_volumes(report, seen),
        *_find_changed_pods(report, seen),
        *_find_ignored_pods(report, seen),
        *_find_orphans(report, seen),
        *describe_init_waits(report, seen),
        *_find_absent_servers(report),
        *_find_foreign_peers(report, seen),
    ]


def _find_selectors(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which labels of nodes pods ask for where no node matches."""
    unmatched = {each.subject for each in report.problems if each.cause == NO_NODE_MATCHES.name}
    found: dict[str, list[str]] = {}
    for pod in listed(seen.pods):
        asked = ", ".join(f"{key}={value}" for key, value in sorted(section(pod, "spec", "nodeSelector").items()))
        if asked and name_of(pod) in unmatched:
            found.setdefault(asked, []).append(name_of(pod))
    for asked, names in found.items():
        yield f"{list_names(names)} may run only on nodes with {asked} (nodeSelector)"


def _find_added_selectors(seen: Snapshot, homeless: Collection[str]) -> Iterator[str]:
    """Yield which labels of nodes pods ask for that their StatefulSets do not, where no node is found for them."""
    selectors = (
        (name_of(each), section(each, "spec", "template", "spec", "nodeSelector")) for each in listed(seen.sets)
    )
    templates = dict(selectors)
    found: dict[str, list[str]] = {}
    for pod in listed(seen.pods):
        name = name_of(pod)
        asked, known = section(pod, "spec", "nodeSelector"), templates.get(name.rpartition("-")[0])
        added = {} if known is None else {key: value for key, value in asked.items() if known.get(key) != value}
        if added and name in homeless:
            found.setdefault(", ".join(f"{key}={value}" for key, value in sorted(added.items())), []).append(name)
    for labels, names in found.items():
        yield (
            f"{list_names(names)} must run on nodes with {labels}, which the chart does not ask for: a policy, a "
            "webhook or a default of the namespace added it"
        )


def _find_changed_pods(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield how pods that have died or have a problem differ from their StatefulSets, and pods that got less CPU."""
    templates = {name_of(each): section(each, "spec", "template", "spec") for each in listed(seen.sets)}
    revisions = {name_of(each): section(each, "status").get("updateRevision") for each in listed(seen.sets)}
    troubled = {each.subject for each in report.problems} | {each.pod for each in report.incidents}
    found: dict[tuple[str, bool, bool, str], list[str]] = {}
    for pod in listed(seen.pods):
        name = name_of(pod)
        set_name = name.rpartition("-")[0]
        revision = label(pod, _REVISION)
        if not revision or revision != revisions.get(set_name):
            continue
        made, planned = read_settings(section(pod, "spec")), read_settings(templates[set_name])
        is_slow = _is_cut(made.get(_CPU_LIMIT), planned.get(_CPU_LIMIT))
        if name in troubled or is_slow:
            # The API server counts the changes of a pod's spec after its creation.
            is_new = section(pod, "metadata").get("generation") == 1
            key = describe_changes(made, planned), is_new, is_slow, "" if is_new else _find_editor(pod)
            found.setdefault(key, []).append(name)
    for (words, is_new, is_slow, editor), names in found.items():
        who = " or a default of the namespace" if is_new else ", a default of the namespace, an autoscaler or a person"
        when = " when it was created" if is_new else ""
        changed = f"a policy, a webhook{who} changed it{when}"
        if editor:
            changed = f"{editor}, after the pod was created"
        if words:
            yield (
                f"{list_names(names)} {'has' if len(names) == 1 else 'have'} {words}, which the chart does not ask "
                f"for: {changed}{_explain_slowness(report, names, editor.partition(' ')[0]) if is_slow else ''}"
            )


def _find_editor(pod: Object) -> str:
    """Return what changed the containers of a pod that existed, and when; "" where that is not known."""
    entries = (each for each in items_of(section(pod, "metadata"), "managedFields"))
    own = [
        each
        for each in entries
        if each.get("manager") not in _OF_KUBERNETES and section(each, "fieldsV1", "f:spec", "f:containers")
    ]
    last = max(own, key=lambda each: parse_time(each.get("time")), default=None)
    return f"{last.get('manager')} changed this at {describe_time(parse_time(last.get('time')))}" if last else ""


def _explain_slowness(report: Report, names: Sequence[str], editor: str) -> str:
    namespace, pods = report.key.namespace, " ".join(names) if len(names) <= _NAMES_SHOWN else "NAME"
    find = (
        "Find out what did it (kubectl get mutatingadmissionpolicies,mutatingwebhookconfigurations; kubectl get "
        f"limitranges -n {namespace}), and have its owner"
    )
    is_tool = editor.startswith(_TOOLS)
    whose = f"Find out who used {editor}, and have them" if is_tool else f"Have the owner of {editor}"
    return (
        f". Less CPU slows programs down. {whose if editor else find} exempt these pods. Then delete them (kubectl "
        f"delete pod {pods} -n {namespace}): their StatefulSet recreates them"
    )


def _is_cut(made: str | None, planned: str | None) -> bool:
    """Say whether an amount is at most half of what was planned: more than that, and a run may well go on as meant."""
    amount, wanted = read_amount(made), read_amount(planned)
    return amount is not None and wanted is not None and 2 * amount <= wanted


def _find_ignored_pods(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which pods no scheduler has looked at: the API server made them, and nothing else has happened."""
    for pod in listed(seen.pods):
        spec, made = section(pod, "spec"), parse_time(section(pod, "metadata").get("creationTimestamp"))
        is_ignored = not spec.get("nodeName") and not section(pod, "status").get("conditions") and not has_ended(pod)
        if is_ignored and report.now - made >= _IGNORED_SECONDS:
            scheduler = spec.get("schedulerName") or _DEFAULT_SCHEDULER
            meant = "" if scheduler == _DEFAULT_SCHEDULER else ", or remove schedulerName if it was not intended"
            yield (
                f"{name_of(pod)} waits for the scheduler {scheduler}, which has not looked at it for "
                f"{describe_seconds(report.now - made)}: check whether it runs and serves this namespace{meant}"
            )


def _find_orphans(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which pods have the name of one of the training's, belong to no StatefulSet, and so are never replaced."""
    sets = {name_of(each): each for each in listed(seen.sets)}
    for pod in listed(seen.pods):
        name, number = name_of(pod).rpartition("-")[::2]
        if name not in sets or not number.isdecimal() or section(pod, "metadata").get("deletionTimestamp"):
            continue
        if owner_uid(pod) == str(section(sets[name], "metadata").get("uid") or ""):
            continue
        changed = [
            f"{key} is {label(pod, key) or 'missing'} instead of {value}"
            for key, value in section(sets[name], "spec", "selector", "matchLabels").items()
            if label(pod, key) != value
        ]
        why = f" because a label was changed: {', '.join(changed)}" if changed else ""
        yield (
            f"{name_of(pod)} does not belong to the StatefulSet {name}{why}; while it exists, no new pod can take its "
            f"place: restore the label (kubectl label pod {name_of(pod)} -n {report.key.namespace} --overwrite), or "
            "delete the pod"
        )


def _entries(pod: Object, part: str, key: str) -> list[Object]:
    found = section(pod, part).get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _find_absent_servers(report: Report) -> Iterator[str]:
    gone = [task for task in report.finished if task.rpartition("-")[0] == PS]
    if gone and report.phase == RUNNING:
        yield (
            f"{list_names(gone)} ended successfully while the training continues, and the others wait for it: "
            "the program of a parameter server must not return (tf.distribute.Server.join)"
        )


def _find_foreign_peers(report: Report, seen: Snapshot) -> Iterator[str]:
    """Yield which pods of a run that makes no step are started with the address of another release's task."""
    own = {name_of(each) for each in listed(seen.sets)}
    for pod in listed(seen.pods) if report.seems_to_hang else ():
        found = (match for word in _read_commands(pod) for match in _TASK_NAME.finditer(word))
        names = list(dict.fromkeys(match.group(0) for match in found if match.group(1) not in own))
        if names:
            yield (
                f"{name_of(pod)} is started with the address of {list_names(names)}, which is not a pod of this "
                "release: it waits for a pod that it may not reach, or joins another run. Check args in the values"
            )


def _read_commands(pod: Object) -> Iterator[str]:
    for container in _entries(pod, "spec", "containers"):
        for key in ("command", "args"):
            words = container.get(key)
            yield from map(str, words if isinstance(words, list) else ())
