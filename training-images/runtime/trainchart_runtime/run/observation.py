"""What the run controller sees: the training pods of its release, reduced to what its rules need.

Parsing only. A pod object has some ten kilobytes, a PodView a few hundred bytes: the controller keeps a thousand.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from trainchart_runtime.cluster import Cluster, Task
from trainchart_runtime.contract import CONTROLLER_AGENT, PEER_UNASKED, RUN_ID, TRAINING_CONTAINER
from trainchart_runtime.image_builds import Build, read_build
from trainchart_runtime.log_text import cut_message, hide_credentials, last_line, shorten
from trainchart_runtime.pod_changes import read_settings
from trainchart_runtime.pod_problems import (
    MESSAGE_LIMIT,
    Event,
    Problem,
    find_claims,
    find_last_start,
    find_pod_problem,
    parse_time,
)
from trainchart_runtime.pod_starts import describe_start
from trainchart_runtime.progress import (
    METRIC_NAME_LIMIT,
    parse_count,
    parse_metrics,
    parse_number,
    parse_whole,
)
from trainchart_runtime.run.queueing import QueueView, reduce_template
from trainchart_runtime.termination import Failure, Termination, parse_failures, parse_termination
from trainchart_runtime.throttling import describe_throttling, parse_throttling

_REVISION_LABEL = "controller-revision-hash"
_HOOK_FAILED = "PostStartHookError"
"""Why a container waits, at first: later the same one is in CrashLoopBackOff, and its hook's words are gone."""
_BACKING_OFF = ("CrashLoopBackOff", _HOOK_FAILED)
_AROUND_HOOK_WORDS = re.compile(r"^.*? failed - error: |, message: .*$", re.DOTALL)
PEER_SECONDS = 60.0
"""Pods that start together answer each other earlier."""
_PEERS_KEPT = 20
_PEER_LIMIT = 200
"""Characters of a peer's address, and of why it cannot be reached."""
_KILL_LIMIT = 200
_UID_LIMIT = 64
"""Characters: Kubernetes makes uids of 36, and does not limit those that others write as an owner's."""
_REASON_LIMIT = 200
_RUN_ID_LIMIT = 300
"""Characters: more than a chart gives a run."""
NAN_NAMES_SHOWN = 5
"""Names of numbers that are NaN, of every task: the first ones say enough."""
_ENTRIES_KEPT = 100
"""Claims, gates and tolerations of one pod: others may make pods with a megabyte of them."""
LOST_SECONDS = 30.0
"""A pod that is still there so long after the end of its grace period is on a node that does not answer."""


class ContainerEnd(NamedTuple):
    """One end of a training container."""

    exit_code: int
    reason: str = ""
    """Kubernetes' word: Completed, Error, OOMKilled, StartError, ..."""
    detail: str = ""
    """The termination message where no launcher wrote it, such as the container runtime's."""
    termination: Optional[Termination] = None
    """The launcher's last words."""
    finished_at: float = 0.0
    failed_hook: str = ""
    """What the kubelet says of the postStart hook for whose failure it stopped the container."""

    @property
    def succeeded(self) -> bool:
        # A parked launcher that was killed has code 137 and the words "succeeded"; without words the code decides.
        return self.termination.succeeded if self.termination else self.exit_code == 0


class PodView(NamedTuple):
    """One training pod."""

    name: str
    task: Task
    uid: str = ""
    owner_uid: str = ""
    """Of the StatefulSet that made it; empty for a pod that something else made, or a person."""
    run_id: Optional[str] = None
    """None where the pod does not say."""
    node: str = ""
    ip: str = ""
    is_running: bool = False
    is_backing_off: bool = False
    """The kubelet waits before it starts the container again."""
    is_held: bool = False
    """The container waits for something else than that: its image, a volume, its sandbox, an init container."""
    last_start: float = 0.0
    """Unix time at which one of its containers was last started, init containers included; 0 before."""
    gone_by: float = 0.0
    """Unix time at which a pod that is being deleted should have gone; 0 for one that is not."""
    revision: str = ""
    """Of its StatefulSet's template."""
    problem: Optional[Problem] = None
    """What keeps it from running, as far as its status tells."""
    start: str = ""
    """How far its start has come; empty without a node, and once its program was started."""
    claims: Sequence[str] = ()
    """Names of the claims that it mounts."""
    restarts: int = 0
    ends: Sequence[ContainerEnd] = ()
    """The ends that Kubernetes still remembers, newest first; never more than two."""
    settings: Mapping[str, str] = {}
    """Image, command, requests and limits of its training container."""
    build: Optional[Build] = None
    """What its training container runs; None while that is not known, and for an image named by digest."""
    gates: Sequence[str] = ()
    """What must happen before a node is looked for."""
    tolerations: Sequence[Mapping[str, Any]] = ()
    """Only of a pod with gates."""

    @property
    def is_deleting(self) -> bool:
        return self.gone_by > 0

    @property
    def deaths(self) -> int:
        """How often the container of this pod has ended."""
        ended_now = 1 if self.ends and not self.is_running else 0
        return self.restarts + ended_now

    def is_lost(self, now: float) -> bool:
        """Say whether a pod that should be gone will not go by itself."""
        return self.is_deleting and now >= self.gone_by + LOST_SECONDS


class SetView(NamedTuple):
    """One StatefulSet of the run."""

    replicas: int
    """What it is told to have."""
    revision: str = ""
    """Of the pods that it would create now; empty until Kubernetes has looked at its last change."""
    uid: str = ""
    settings: Mapping[str, str] = {}
    """Those of the pods that it would create now; see PodView."""
    template: Mapping[str, Any] = {}
    """What quota depends on, of those pods."""
    scaled_by: str = ""
    """Who set `replicas`, as the API server calls it; empty for what applies the release, and for the controller."""


class MissingPeer(NamedTuple):
    """A peer that a launcher has not reached for PEER_SECONDS."""

    address: str
    """host:port"""
    reason: str
    """The launcher's word; see contract.py."""


class LauncherReport(NamedTuple):
    """What the launcher of one pod says over HTTP."""

    attempt: int
    peer_failures: int = 0
    step: Optional[int] = None
    examples_per_second: Optional[float] = None
    metrics: Mapping[str, float] = {}
    ended: int = 0
    """Ends of the program in this pod that were no success."""
    failures: Sequence[Failure] = ()
    """The last of them, oldest first."""
    is_parked: bool = False
    """The task has ended well, maybe in a pod before this one, and has nothing left to do."""
    missing_peers: Sequence[MissingPeer] = ()
    nan_metrics: Sequence[str] = ()
    """Names of the program's numbers that are NaN."""
    memory_kill: str = ""
    """That the kernel killed a process of the program for memory, in the launcher's words; the program goes on."""
    memory_killed_at: float = 0.0
    """Unix time."""
    silent_storage: str = ""
    """Why the program stands still, or is not started: its checkpoint storage does not answer."""
    throttling: str = ""
    """That the program can hardly run for its CPU limit."""


class Observation(NamedTuple):
    """One look at the release."""

    now: float
    """Unix time."""
    pods: Sequence[PodView]
    sets: Mapping[str, SetView]
    """By name. A set that does not exist is not listed."""
    missing: Mapping[str, str] = {}
    """Other objects that the run needs and that are gone or changed, such as "Service exp1-mnist", each with how."""
    refused: Mapping[str, str] = {}
    """Changes that the API server refuses: of what, such as "StatefulSet exp1-mnist-ps", and in which words."""
    events: Sequence[Event] = ()
    """Warnings about the release's pods, sets and claims, where they were asked for."""
    reports: Mapping[str, LauncherReport] = {}
    """By uid of the pod, of those whose launcher has answered."""
    queue: QueueView = QueueView()
    departed: Sequence[PodView] = ()
    """Pods that have gone since the last look, as they were at last: an evicted one is gone as soon as it has ended."""


def find_task(cluster: Cluster, pod_name: str) -> Optional[Task]:
    """Return the task of a pod; None for one that is of no training set, such as TensorBoard's."""
    set_name, _, ordinal = pod_name.rpartition("-")
    if not (ordinal.isascii() and ordinal.isdigit()):
        return None
    for task_type, role in cluster.roles.items():
        if role.name == set_name:
            return Task(task_type, int(ordinal))
    return None


def parse_pod(cluster: Cluster, pod: Mapping[str, Any]) -> Optional[PodView]:
    """Reduce a pod object of the Kubernetes API; None for a pod that is not one of the cluster's."""
    metadata, spec, status = pod.get("metadata") or {}, pod.get("spec") or {}, pod.get("status") or {}
    name = metadata.get("name") or ""
    task = find_task(cluster, name)
    if task is None:
        return None
    container = _find_training(status.get("containerStatuses"))
    current, last = container.get("state") or {}, container.get("lastState") or {}
    waiting = current.get("waiting")
    run_id = _find_run_id(spec)
    ends = [_parse_end(state["terminated"], run_id) for state in (current, last) if state.get("terminated")]
    if ends and waiting is not None and waiting.get("reason") == _HOOK_FAILED:
        ends[0] = ends[0]._replace(failed_hook=_word_hook(cut_message(waiting.get("message"))))
    return PodView(
        name=name,
        task=task,
        uid=metadata.get("uid") or "",
        owner_uid=_find_owner(metadata),
        run_id=run_id,
        node=spec.get("nodeName") or "",
        ip=status.get("podIP") or "",
        is_running="running" in current,
        is_backing_off=waiting is not None and waiting.get("reason") in _BACKING_OFF,
        is_held=waiting is not None and waiting.get("reason") not in _BACKING_OFF,
        last_start=find_last_start(pod),
        gone_by=parse_time(metadata.get("deletionTimestamp")),
        revision=(metadata.get("labels") or {}).get(_REVISION_LABEL) or "",
        problem=find_pod_problem(pod),
        start=describe_start(pod) if spec.get("nodeName") and not current.keys() & {"running", "terminated"} else "",
        claims=find_claims(pod)[:_ENTRIES_KEPT],
        restarts=parse_count(container.get("restartCount")) or 0,
        ends=tuple(ends),
        settings=read_settings(spec),
        build=read_build(pod),
        gates=tuple(str(gate.get("name")) for gate in (spec.get("schedulingGates") or ())[:_ENTRIES_KEPT]),
        tolerations=tuple((spec.get("tolerations") or ())[:_ENTRIES_KEPT]) if spec.get("schedulingGates") else (),
    )


def parse_set(item: Mapping[str, Any]) -> SetView:
    """Reduce a StatefulSet object of the Kubernetes API."""
    metadata, spec, status = item.get("metadata") or {}, item.get("spec") or {}, item.get("status") or {}
    template = (spec.get("template") or {}).get("spec") or {}
    is_seen = (status.get("observedGeneration") or 0) >= (metadata.get("generation") or 1)
    return SetView(
        # A replica number of 0 is left out of the JSON.
        replicas=int(spec.get("replicas") or 0),
        revision=(status.get("updateRevision") or "") if is_seen else "",
        uid=metadata.get("uid") or "",
        settings=read_settings(template),
        template=reduce_template(template),
        scaled_by=_find_scaler(metadata),
    )


def _find_scaler(metadata: Mapping[str, Any]) -> str:
    for entry in metadata.get("managedFields") or ():
        owned = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        # What applies the release owns the selector, which cannot be changed later.
        is_foreign = entry.get("manager") != CONTROLLER_AGENT and "f:selector" not in owned
        if "f:replicas" in owned and is_foreign:
            return str(entry.get("manager") or "")
    return ""


def parse_report(document: Any) -> Optional[LauncherReport]:
    """Read a launcher's /status, parsed from JSON; None for anything else."""
    if not isinstance(document, dict):
        return None
    attempt = parse_count(document.get("attempt"))
    if attempt is None:
        return None
    kill, silence = document.get("memoryKill"), document.get("silentStorage")
    return LauncherReport(
        attempt=attempt,
        peer_failures=parse_count(document.get("peerFailures")) or 0,
        step=parse_whole(document.get("step")),
        examples_per_second=parse_number(document.get("examplesPerSecond")),
        metrics=parse_metrics(document.get("metrics")),
        ended=parse_count(document.get("ended")) or 0,
        failures=parse_failures(document.get("failures")),
        is_parked=document.get("state") == "parked",
        missing_peers=_parse_missing_peers(document.get("peersWaiting")),
        nan_metrics=_parse_names(document.get("nanMetrics")),
        memory_kill=kill[:_KILL_LIMIT] if isinstance(kill, str) and _is_plain(kill) else "",
        memory_killed_at=parse_number(document.get("memoryKilledAt")) or 0.0,
        silent_storage=silence[:MESSAGE_LIMIT] if isinstance(silence, str) and _is_plain(silence) else "",
        throttling=describe_throttling(parse_throttling(document.get("cpuThrottling"))),
    )


def _parse_missing_peers(entries: Any) -> Sequence[MissingPeer]:
    """Return the peers that were waited for long enough, without for how long: that changes with every answer."""
    found = []
    for each in entries if isinstance(entries, list) else ():
        if not isinstance(each, dict) or (parse_number(each.get("seconds")) or 0.0) < PEER_SECONDS:
            continue
        address, reason = each.get("address"), each.get("reason")
        if not isinstance(address, str) or not isinstance(reason, str) or reason == PEER_UNASKED:
            continue
        # Host names and system errors; other text takes four times the memory.
        if _is_plain(address) and _is_plain(reason):
            found.append(MissingPeer(address[:_PEER_LIMIT], reason[:_PEER_LIMIT]))
    return tuple(found[:_PEERS_KEPT])


def _parse_names(entries: Any) -> Sequence[str]:
    names = (each for each in entries if isinstance(each, str)) if isinstance(entries, list) else ()
    return tuple(each[:METRIC_NAME_LIMIT] for each in itertools.islice(names, NAN_NAMES_SHOWN + 1))


def _find_owner(metadata: Mapping[str, Any]) -> str:
    """Return the uid of the StatefulSet that controls a pod; empty where none does."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") and (owner.get("apiVersion"), owner.get("kind")) == ("apps/v1", "StatefulSet"):
            return str(owner.get("uid") or "")[:_UID_LIMIT]
    return ""


def _find_training(containers: Any) -> Mapping[str, Any]:
    found: List[Mapping[str, Any]] = [each for each in containers or () if each.get("name") == TRAINING_CONTAINER]
    return found[0] if found else {}


def _find_run_id(spec: Mapping[str, Any]) -> Optional[str]:
    for variable in _find_training(spec.get("containers")).get("env") or ():
        if variable.get("name") == RUN_ID and not variable.get("valueFrom"):
            return str(variable.get("value") or "")[:_RUN_ID_LIMIT]
    return None


def _parse_end(terminated: Mapping[str, Any], run_id: Optional[str]) -> ContainerEnd:
    message = cut_message(terminated.get("message"))
    said = parse_termination(message)
    # The program can write there, too; the pod's launcher knows which run it is part of.
    termination = said if said is not None and run_id in (None, said.run_id) else None
    started_at, finished_at = parse_time(terminated.get("startedAt")), parse_time(terminated.get("finishedAt"))
    # The kubelet has the same clock, and counts whole seconds.
    if termination is not None and not started_at <= termination.finished_at <= finished_at + 1:
        termination = termination._replace(finished_at=finished_at)
    return ContainerEnd(
        exit_code=terminated.get("exitCode") or 0,
        reason=str(terminated.get("reason") or "")[:_REASON_LIMIT],
        detail="" if said else hide_credentials(last_line(message))[:MESSAGE_LIMIT],
        termination=termination,
        finished_at=finished_at,
    )


def _word_hook(message: str) -> str:
    """Return why a hook failed, without the pod's names around it."""
    return shorten(" ".join(_AROUND_HOOK_WORDS.sub("", message).split()), MESSAGE_LIMIT) or _HOOK_FAILED


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()
