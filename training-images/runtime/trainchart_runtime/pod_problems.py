"""What keeps a pod from running, in the words of causes.py: from its status, and from Events where only they say it.

Pure; the run controller and the CLI ask the same questions here. Kubernetes' reasons are stable, its messages are
not: a message only picks between causes of one reason.
"""

from __future__ import annotations

import calendar
import re
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_runtime import causes, pod_causes
from trainchart_runtime.cause import Cause
from trainchart_runtime.contract import TRAINING_CONTAINER
from trainchart_runtime.log_text import cut_message, last_line, shorten
from trainchart_runtime.scheduling_words import (
    DELETED_CLAIM,
    IN_USE_WORDS,
    MISSING_CLAIM,
    SCHEDULING_CAUSES,
    name_scheduling_cause,
)
from trainchart_runtime.start_words import LOST_DEVICES, TOO_LITTLE_MEMORY, name_start_cause

MESSAGE_LIMIT = 500
_EVENT_MESSAGE = 1024
"""Characters: the newer API of Events allows no more, and thousands of them are kept."""
_NAME_LIMIT, _KIND_LIMIT, _REASON_LIMIT, _UID_LIMIT = 300, 63, 128, 64
"""Characters in an Event, which Kubernetes does not limit: names of objects have 253, kinds 63, uids 36."""
CLAIM_CAUSES = (pod_causes.VOLUME_ERROR.name, pod_causes.CLAIM_MISSING.name)
"""Causes about which a claim's own events say more: the scheduler's words stay while a new claim is provided."""
_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.\d+)?Z")

_PREEMPTOR = re.compile(r"Preempted by (?:a )?pod ([-0-9a-f]{36})\b")
_COMBINED = "(combined from similar events): "
"""Kubernetes puts this before the message of an event that came in several words."""


class Event(NamedTuple):
    """A warning that Kubernetes gave about one object."""

    kind: str
    """Kind of the object: Pod, StatefulSet, PersistentVolumeClaim, ..."""
    name: str
    """Name of the object."""
    reason: str
    message: str
    at: float
    """Unix seconds of its last occurrence."""
    uid: str = ""
    """Of the object; empty where the event does not say."""
    preemptor: str = ""
    """uid of the pod that took the place of this one."""


class Problem(NamedTuple):
    """Why a pod does not run."""

    cause: str
    """A name of causes.CAUSES."""
    message: str
    """Kubernetes' own words, one line."""


def parse_event(event: Mapping[str, Any]) -> Event:
    """Reduce an Event object (core/v1) of the Kubernetes API."""
    about = event.get("involvedObject") or {}
    series = event.get("series") or {}
    # The scheduler of Kubernetes 1.36 names no related object.
    message = cut_message(event.get("message"))[:_EVENT_MESSAGE]
    preemptor = _PREEMPTOR.match(message) if event.get("reason") == "Preempted" else None
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return Event(
        kind=str(about.get("kind") or "")[:_KIND_LIMIT],
        name=str(about.get("name") or "")[:_NAME_LIMIT],
        reason=str(event.get("reason") or "")[:_REASON_LIMIT],
        message=message.replace(_COMBINED, "", 1),
        at=max(parse_time(time) for time in times),
        uid=str(about.get("uid") or "")[:_UID_LIMIT],
        preemptor=preemptor[1] if preemptor else "",
    )


def find_pod_problem(pod: Mapping[str, Any], events: Sequence[Event] = ()) -> Optional[Problem]:
    """Return what keeps a pod object of the API from running; None where nothing is known to."""
    status, metadata = pod.get("status") or {}, pod.get("metadata") or {}
    is_scheduled = bool((pod.get("spec") or {}).get("nodeName"))
    name, uid = metadata.get("name") or "", metadata.get("uid") or ""
    return (
        _find_disruption(pod, status)
        or _find_waiting(status)
        or _find_failed_init(pod, status)
        or _find_unscheduled(pod, status, events)
        or _find_silent_node(status)
        or _find_failed_sidecar(pod, status)
        or find_pod_event(name, events, uid, is_scheduled, find_last_start(pod))
    )


def find_pod_event(
    name: str, events: Sequence[Event], uid: str = "", is_scheduled: bool = False, last_start: float = 0.0
) -> Optional[Problem]:
    """Return what the Events of a pod, whose status says nothing, keep it from.

    Events outlive what they report: the earlier pod of this name, the wait for a node, and the wait for volumes and
    network, which a pod has once one of its containers is started.
    """

    def is_past(event: Event) -> bool:
        if uid and event.uid and event.uid != uid:
            return True
        is_before_start = event.reason in _BEFORE_START and 0 < event.at <= last_start
        return is_before_start or (is_scheduled and event.reason == "FailedScheduling")

    return _find_newest("Pod", name, [event for event in events if not is_past(event)], _POD_EVENTS)


def find_last_start(pod: Mapping[str, Any]) -> float:
    """Return the Unix time at which a container of a pod object was last started, init containers included; or 0."""
    status = pod.get("status") or {}
    containers = [each for key in _CONTAINER_STATUSES for each in status.get(key) or ()]
    states = [each.get(key) or {} for each in containers for key in ("state", "lastState")]
    starts = [(state.get(kind) or {}).get("startedAt") for state in states for kind in ("running", "terminated")]
    return max(map(parse_time, starts), default=0.0)


def find_claim_problem(claims: Sequence[str], events: Sequence[Event]) -> Optional[Problem]:
    """Return what the provisioner says about claims of a pod: the scheduler only says that it waits for one."""
    of_claims = [event for event in events if event.kind == "PersistentVolumeClaim" and event.name in claims]
    newest = max(of_claims, key=lambda event: event.at, default=None)
    if newest is None:
        return None
    is_class = re.search(r'storageclass\.storage\.k8s\.io "[^"]*" not found', newest.message)
    cause = pod_causes.STORAGE_CLASS_MISSING if is_class else pod_causes.VOLUME_ERROR
    return _problem(cause, f"claim {newest.name}: {newest.message}")


def find_claims(pod: Mapping[str, Any]) -> Tuple[str, ...]:
    """Return the names of the claims that a pod object of the API mounts, those of its own included."""
    name = (pod.get("metadata") or {}).get("name") or ""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    claims = (
        f"{name}-{volume.get('name')}"
        if volume.get("ephemeral")
        else (volume.get("persistentVolumeClaim") or {}).get("claimName")
        for volume in volumes
    )
    return tuple(claim for claim in claims if claim)


def find_set_problem(name: str, events: Sequence[Event]) -> Optional[Problem]:
    """Return why the pods of StatefulSet `name` are not created: only Events tell."""
    return _find_newest("StatefulSet", name, events, _SET_EVENTS)


def find_job_problem(name: str, events: Sequence[Event]) -> Optional[Problem]:
    """Return why the pod of Job `name` is not created: only Events tell."""
    return _find_newest("Job", name, events, _SET_EVENTS)


def parse_time(text: Any) -> float:
    """Return the Unix seconds of a time of the Kubernetes API; 0 for anything else."""
    match = _TIME.fullmatch(text) if isinstance(text, str) else None
    try:
        return float(calendar.timegm(tuple(int(part) for part in match.groups()))) if match else 0.0
    except ValueError:  # The year 0, which the API takes.
        return 0.0


_CONTAINER_STATUSES = ("initContainerStatuses", "containerStatuses")
_BEFORE_START = (
    "FailedMount",
    "FailedMapVolume",
    "FailedAttachVolume",
    "FailedCreatePodSandBox",
    "NetworkNotReady",
)
"""Reasons of events about what a pod has before the first of its containers is started."""
_TAINTED = "DeletionByTaintManager"
"""Kubernetes taints a node that does not answer; administrators taint others, which do."""
_DISRUPTIONS = {
    "PreemptionByScheduler": pod_causes.PREEMPTED,
    "PreemptionByKubeScheduler": pod_causes.PREEMPTED,
    _TAINTED: pod_causes.NODE_LOST,
    "DeletionByPodGC": pod_causes.NODE_LOST,
    "EvictionByEvictionAPI": pod_causes.EVICTED_BY_CLIENT,
    "TerminationByKubelet": pod_causes.EVICTED,
}
"""Reasons of the pod condition DisruptionTarget."""
_STATUS_REASONS = {
    "Evicted": pod_causes.EVICTED,
    "Preempting": pod_causes.PREEMPTED,
    "NodeLost": pod_causes.NODE_LOST,
    "DeadlineExceeded": pod_causes.POD_DEADLINE,
    "NodeShutdown": pod_causes.EVICTED,
    "Terminated": pod_causes.EVICTED,
    "UnexpectedAdmissionError": pod_causes.ADMISSION_REFUSED,
    "NodeAffinity": pod_causes.ADMISSION_REFUSED,
    "AppArmor": pod_causes.NODE_FILE_MISSING,
}
"""Reasons of a pod's status; a kubelet that has no room for a pod after all says OutOf and what it lacks."""
_WAITING_REASONS = {
    "ErrImagePull": pod_causes.IMAGE_PULL,
    "ImagePullBackOff": pod_causes.IMAGE_PULL,
    "ErrImageNeverPull": pod_causes.IMAGE_PULL,
    "InvalidImageName": pod_causes.IMAGE_PULL,
    "ImageInspectError": pod_causes.IMAGE_PULL,
    "RegistryUnavailable": pod_causes.IMAGE_PULL,
    "SignatureValidationFailed": pod_causes.IMAGE_PULL,
    "CreateContainerConfigError": pod_causes.CONFIG_MISSING,
    "CreateContainerError": pod_causes.CONFIG_MISSING,
    "RunContainerError": causes.PROGRAM_MISSING,
}
"""Reasons of a container that waits. CrashLoopBackOff is none: the container's end says more."""
_START_FAILURES = (pod_causes.CONFIG_MISSING, causes.PROGRAM_MISSING)
"""Causes of reasons whose message may say that it is another one."""
_RESUME_VOLUME = "resume"
"""Name of the volume of charts that is the claim of run.resumeRelease."""
_DRIVER_WORDS = re.compile(
    r"external-attacher of \S+ CSI driver|not found in the list of registered CSI drivers|does not contain driver "
)
_NO_CLIENT = r"unknown filesystem type|you might need a /sbin/mount\.|mount\.\w+: (command )?not found"
"""As mount says it; a module of the kernel may be missing instead."""
_POD_EVENTS: Sequence[Tuple[str, str, Cause]] = (
    (
        "FailedMount|FailedMapVolume",
        r'(configmap|secret) "[^"]*" not found|references non-existent',
        pod_causes.CONFIG_MISSING,
    ),
    ("FailedAttachVolume", IN_USE_WORDS.pattern, pod_causes.CLAIM_IN_USE),
    ("FailedMount|FailedMapVolume|FailedAttachVolume", _DRIVER_WORDS.pattern, pod_causes.STORAGE_DRIVER_MISSING),
    ("FailedMount|FailedMapVolume|FailedAttachVolume", MISSING_CLAIM, pod_causes.CLAIM_MISSING),
    ("FailedMount", "hostPath type check failed", pod_causes.NODE_FILE_MISSING),
    ("FailedMount", _NO_CLIENT, pod_causes.MOUNT_UNSUPPORTED),
    ("FailedMount|FailedMapVolume|FailedAttachVolume", "", pod_causes.VOLUME_ERROR),
    ("FailedCreatePodSandBox", TOO_LITTLE_MEMORY, causes.OUT_OF_MEMORY),
    ("FailedCreatePodSandBox|NetworkNotReady", "", pod_causes.SANDBOX_ERROR),
    *(("FailedScheduling", pattern, cause) for pattern, cause in SCHEDULING_CAUSES),
    ("Evicted", "", pod_causes.EVICTED),
    ("Preempted", "", pod_causes.PREEMPTED),
)
_SET_EVENTS: Sequence[Tuple[str, str, Cause]] = (
    ("FailedCreate", r"failed quota: [-.a-z0-9]{1,253}: must specify", pod_causes.QUOTA_NEEDS_AMOUNT),
    ("FailedCreate", r"exceeded quota|failed quota", pod_causes.QUOTA_EXCEEDED),
    ("FailedCreate", r"already exists|AlreadyExists", pod_causes.NAME_CONFLICT),
    ("FailedCreate", r"error looking up service account", pod_causes.CONFIG_MISSING),
    ("FailedCreate", r'no PriorityClass with name|RuntimeClass "[^"]*" not found', pod_causes.CLASS_MISSING),
    ("FailedCreate", r" usage per (Container|Pod) is |limit to request ratio per ", pod_causes.LIMIT_RANGE),
    ("FailedCreate", "", pod_causes.ADMISSION_REFUSED),
)


def _find_disruption(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Optional[Problem]:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            cause = _DISRUPTIONS.get(condition.get("reason") or "", pod_causes.EVICTED)
            if condition.get("reason") == _TAINTED and _is_node_alive(status):
                cause = pod_causes.EVICTED_BY_TAINT
            return _problem(cause, status.get("message") or condition.get("message") or condition.get("reason"))
    reason, message = status.get("reason") or "", cut_message(status.get("message"))
    if reason.startswith("OutOf"):
        return _problem(pod_causes.ADMISSION_REFUSED, message or reason)
    if reason == "UnexpectedAdmissionError" and re.search(LOST_DEVICES, message):
        return _problem(pod_causes.DEVICE_ERROR, message)
    if reason in _STATUS_REASONS:
        return _problem(_STATUS_REASONS[reason], message or reason)
    return None


def _find_waiting(status: Mapping[str, Any]) -> Optional[Problem]:
    for key in _CONTAINER_STATUSES:
        for container in status.get(key) or ():
            waiting = (container.get("state") or {}).get("waiting") or {}
            cause = _WAITING_REASONS.get(waiting.get("reason") or "")
            if cause is not None and cause in _START_FAILURES:
                cause = name_start_cause(cut_message(waiting.get("message")), cause)
            if cause:
                return _problem(cause, waiting.get("message") or waiting["reason"])
    return None


def _find_failed_init(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Optional[Problem]:
    sidecars = _list_sidecars(pod)
    for container in status.get("initContainerStatuses") or ():
        if container.get("name") in sidecars:
            continue
        current, last = container.get("state") or {}, container.get("lastState") or {}
        # One that is running once more may yet succeed.
        ended = current.get("terminated") or ("waiting" in current and last.get("terminated")) or {}
        if ended.get("exitCode"):
            words = last_line(cut_message(ended.get("message"))) or ended.get("reason") or ""
            name, code = container.get("name"), ended["exitCode"]
            return _problem(pod_causes.INIT_FAILED, f"init container {name} ended with exit code {code}: {words}")
    return None


def _find_unscheduled(pod: Mapping[str, Any], status: Mapping[str, Any], events: Sequence[Event]) -> Optional[Problem]:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            message = cut_message(condition.get("message") or condition.get("reason"))
            if condition.get("reason") == "SchedulingGated":
                return _problem(pod_causes.SCHEDULING_GATED, f"{message}{_list_gates(pod)}")
            missing, cause = _find_missing_to_resume(pod, message), name_scheduling_cause(message)
            if missing:
                return missing
            if cause is pod_causes.CLAIM_IN_USE:
                return _problem(cause, f"claim {' or '.join(find_claims(pod))}: {message}")
            of_claim = find_claim_problem(find_claims(pod), events) if cause.name in CLAIM_CAUSES else None
            return of_claim or _problem(cause, message)
    return None


def _find_missing_to_resume(pod: Mapping[str, Any], message: str) -> Optional[Problem]:
    """Recognize that the release to go on from, whose claim is the volume of that name, has none."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if volume.get("name") == _RESUME_VOLUME and f'persistentvolumeclaim "{claim}" not found' in message:
            words = f'run.resumeRelease: the claim "{claim}" of that release is not there'
            return _problem(pod_causes.RESUME_CLAIM_MISSING, words)
    return None


def _list_gates(pod: Mapping[str, Any]) -> str:
    gates = [str(gate.get("name")) for gate in (pod.get("spec") or {}).get("schedulingGates") or ()]
    return f": {', '.join(gates)}" if gates else ""


def _find_silent_node(status: Mapping[str, Any]) -> Optional[Problem]:
    """Recognize a node that does not answer: a pod not ready, though its containers last were."""
    containers = status.get("containerStatuses") or ()
    if not containers or not all(container.get("ready") for container in containers):
        return None
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready") or {}
    # The kubelet itself gives a reason when it finds a pod unready.
    if ready.get("status") == "False" and not ready.get("reason"):
        return _problem(pod_causes.NODE_LOST, f"the node has not answered since {ready.get('lastTransitionTime')}")
    return None


def _is_node_alive(status: Mapping[str, Any]) -> bool:
    """Say whether the kubelet still reported on the pod when it was taken away."""
    is_ready = any(
        each.get("type") == "Ready" and each.get("status") == "True" for each in status.get("conditions") or ()
    )
    containers = status.get("containerStatuses") or ()
    return is_ready or any((container.get("state") or {}).get("terminated") for container in containers)


def _list_sidecars(pod: Mapping[str, Any]) -> Sequence[str]:
    """Return the names of the init containers that run as long as the pod does."""
    init = (pod.get("spec") or {}).get("initContainers") or ()
    return [container["name"] for container in init if container.get("restartPolicy") == "Always"]


def _find_failed_sidecar(pod: Mapping[str, Any], status: Mapping[str, Any]) -> Optional[Problem]:
    containers = status.get("containerStatuses") or ()
    # A pod without a training, such as the run controller's, has no containers beside it.
    if not any(container.get("name") == TRAINING_CONTAINER for container in containers):
        return None
    sidecars = _list_sidecars(pod)
    first = [each for each in status.get("initContainerStatuses") or () if each.get("name") in sidecars]
    for container in [*first, *containers]:
        waiting = (container.get("state") or {}).get("waiting") or {}
        ended = (container.get("lastState") or {}).get("terminated") or {}
        if container.get("name") != TRAINING_CONTAINER and waiting.get("reason") == "CrashLoopBackOff" and ended:
            words = last_line(cut_message(ended.get("message"))) or ended.get("reason") or ""
            return _problem(
                pod_causes.SIDECAR_FAILED, f"container {container['name']} ended with {ended['exitCode']}: {words}"
            )
    return None


def _find_newest(
    kind: str, name: str, events: Sequence[Event], causes_by_reason: Sequence[Tuple[str, str, Cause]]
) -> Optional[Problem]:
    found: List[Tuple[float, Problem]] = []
    for event in events:
        if event.kind != kind or event.name != name:
            continue
        for reasons, words, cause in causes_by_reason:
            if re.fullmatch(reasons, event.reason) and re.search(words, event.message):
                found.append((event.at, _problem(cause, event.message)))
                break
    return max(found)[1] if found else None


def _problem(cause: Cause, message: Any) -> Problem:
    # The scheduler puts "not found" behind what it says of a claim, also of one that is gone or being deleted.
    words = " ".join(cut_message(message).split()).replace(" not found. not found", " not found")
    deleted = DELETED_CLAIM.search(words) if cause is pod_causes.CLAIM_DELETED else None
    if deleted:
        words = f'claim "{deleted.group(1)}" is being deleted'
    return Problem(cause.name, shorten(words, MESSAGE_LIMIT))
