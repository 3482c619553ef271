"""The pods of one role, in the words of the spec: fields of Kubernetes pass through, the rest is noted. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.importing.amounts import read_resources
from trainchart.importing.commands import RoleCommand, read_command
from trainchart.importing.environment import read_env
from trainchart.importing.ledger import Ledger, Place
from trainchart.importing.training import RolePods
from trainchart.importing.volumes import Mount, read_volumes
from trainchart.spec.section import PassThrough
from trainchart.spec.settings import PodSettings

_NOT_RESTRICTED = "the Pod Security level restricted, which charts follow, forbids it"
_POD_SILENT = {
    "restartPolicy",
    "automountServiceAccountToken",
    "serviceAccount",
    "enableServiceLinks",
    "securityContext",
}
"""What a chart's pods have anyway, or what is read elsewhere."""
_POD_REASONS = {
    "nodeName": (
        "a StatefulSet's pods cannot all be on one named node",
        "use nodeSelector: {kubernetes.io/hostname: …}",
    ),
    "hostPID": (_NOT_RESTRICTED, ""),
    "hostIPC": (_NOT_RESTRICTED, ""),
    "hostNetwork": (_NOT_RESTRICTED, "set hostNetwork: true where RDMA needs it, and waive the check pod-security"),
    "activeDeadlineSeconds": ("the run has a deadline, not its pods", "use run.activeDeadline"),
}
_CONTAINER_SILENT = {
    *("name", "image", "command", "args", "env", "resources", "volumeMounts", "terminationMessagePath"),
    *("terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin", "stdinOnce", "tty"),
}
_CONTAINER_REASONS = {
    "lifecycle": ("the chart sets the hooks of the training container", "see stopGraceSeconds and saveWaitSeconds"),
    "volumeDevices": ("the chart mounts file systems only", "use volumes"),
}
_NO_SETTING = "the model spec has no such setting"
_OWN_LABELS = re.compile(
    r"(app\.kubernetes\.io|helm\.sh|apps\.kubernetes\.io|statefulset\.kubernetes\.io|training\.kubeflow\.org|"
    r"kubectl\.kubernetes\.io|meta\.helm\.sh|trainchart)/.*|controller-revision-hash|group-name|job-name|job-role|"
    r"replica-(type|index)|tf-job-name|tf-job-key|tf-replica-(type|index)|tf_job_name|chart|release|heritage|createdBy"
)
_SMALL = {"cpu": "100m", "memory": "128Mi"}
_SAFE_OWN = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass
class RoleSpec:
    """A role in the words of the spec."""

    role: str
    replicas: int
    command: RoleCommand
    image: str
    settings: dict[str, Any] = field(default_factory=dict)
    """Keys of roles.ROLE."""
    mounts: list[Mount] = field(default_factory=list)
    image_settings: dict[str, Any] = field(default_factory=dict)
    service_account: str = ""
    has_user: bool = False
    """Whether the input says which user the program runs as."""
    place: Place = ()


def _pass_through() -> Iterator[tuple[str, str, str]]:
    """Yield place, Kubernetes' name and the spec's name of each field that the chart passes on."""
    for name, info in PodSettings.model_fields.items():
        for marker in info.metadata:
            if isinstance(marker, PassThrough):
                yield marker.place, marker.key, info.alias or name


_FIELDS = tuple(_pass_through())
_POD_FIELDS = {key: alias for place, key, alias in _FIELDS if place == "pod"} | {"containers": "extraContainers"}
_CONTAINER_FIELDS = {key: alias for place, key, alias in _FIELDS if place == "container"}


def find_containers(pods: RolePods, name: str, ledger: Ledger) -> tuple[dict[str, Any], int]:
    """Return the training container of a role's pods and its number in the list."""
    place = (*pods.place, "containers")
    containers = ledger.entries(pods.pod.get("containers"), place)
    found = [(ledger.mapping(entry, (*place, number)), number) for number, entry in enumerate(containers)]
    if not found:
        return {}, 0
    named = next((pair for pair in found if pair[0].get("name") == name), None)
    if name and named is None:
        ledger.note(f"no container of {pods.role} is called {name}: the first one is taken for the training")
    return named or found[0]


def read_role(pods: RolePods, container_name: str, gpu: str, model: str, ledger: Ledger) -> RoleSpec:
    """Return a role in the words of the spec, and note what those cannot say."""
    container, number = find_containers(pods, container_name, ledger)
    place: Place = (*pods.place, "containers", number)
    env = read_env(container.get("env"), (*place, "env"), model, ledger)
    command = read_command(container, place, env, model, ledger)
    role = RoleSpec(pods.role, pods.replicas, command, str(container.get("image") or ""), place=place)
    role.settings |= {"env": {**env, **command.env}} if env or command.env else {}
    role.settings |= read_resources(container.get("resources"), (*place, "resources"), pods.role, gpu, ledger)
    volumes = read_volumes(pods.pod, container, (pods.place, place), ledger)
    role.mounts = volumes.mounts
    role.settings |= volumes.settings
    _read_container(container, place, role, ledger)
    _read_pod(pods, number, role, ledger)
    _read_security(pods, container, place, role, ledger)
    _read_metadata(pods, role, ledger)
    if command.folder:
        role.settings["workingDir"] = command.folder
    return role


def _read_container(container: Mapping[str, Any], place: Place, role: RoleSpec, ledger: Ledger) -> None:
    for key, value in container.items():
        where = (*place, str(key))
        if value in (None, "", [], {}) or key in _CONTAINER_SILENT:
            continue
        if key == "ports":
            ledger.carry(where, "service.port, which TF_CONFIG names")
        elif key in _CONTAINER_FIELDS:
            role.settings[_CONTAINER_FIELDS[key]] = value
            ledger.carry(where, _CONTAINER_FIELDS[key])
        else:
            ledger.leave(where, *_CONTAINER_REASONS.get(str(key), (_NO_SETTING, "")))
    if container.get("imagePullPolicy"):
        role.image_settings["pullPolicy"] = container["imagePullPolicy"]
        ledger.carry((*place, "imagePullPolicy"), "image.pullPolicy")


def _read_pod(pods: RolePods, number: int, role: RoleSpec, ledger: Ledger) -> None:
    for key, value in pods.pod.items():
        place = (*pods.place, str(key))
        if value in (None, "", [], {}, False) or key in _POD_SILENT or key == "volumes":
            continue
        if key in ("containers", "initContainers"):
            _read_own_containers(key, value, number, place, role, ledger)
        elif key == "imagePullSecrets":
            names = [
                entry["name"] for entry in ledger.entries(value, place) if isinstance(entry, dict) and "name" in entry
            ]
            role.image_settings["pullSecrets"] = [str(name) for name in names]
            ledger.carry(place, "image.pullSecrets")
        elif key == "serviceAccountName":
            role.service_account = str(value)
            ledger.carry(place, "serviceAccount.name")
        elif key == "terminationGracePeriodSeconds":
            role.settings["stopGraceSeconds"] = ledger.number(value, place, 30)
            ledger.carry(place, f"roles.{pods.role}.stopGraceSeconds")
        elif key in _POD_FIELDS and key not in _POD_REASONS:
            if (key, value) not in (("dnsPolicy", "ClusterFirst"), ("schedulerName", "default-scheduler")):
                role.settings[_POD_FIELDS[key]] = value
                ledger.carry(place, _POD_FIELDS[key])
        else:
            ledger.leave(place, *_POD_REASONS.get(str(key), (_NO_SETTING, "")))


def _read_own_containers(key: str, value: Any, number: int, place: Place, role: RoleSpec, ledger: Ledger) -> None:
    """Take over the containers beside the training's, which have to keep to the same security level."""
    for index, entry in enumerate(ledger.entries(value, place)):
        if (key == "containers" and index == number) or not isinstance(entry, dict):
            continue
        context = entry.get("securityContext")
        context = context if isinstance(context, dict) else {}
        target = _POD_FIELDS[key]
        own = {**entry, "securityContext": {**_only_restricted(context, (*place, index), ledger), **_SAFE_OWN}}
        own["resources"] = _complete_amounts(own.get("resources"), str(entry.get("name")), ledger)
        role.settings.setdefault(target, []).append(own)
        ledger.carry((*place, index), target)


def _complete_amounts(resources: Any, name: str, ledger: Ledger) -> dict[str, Any]:
    """Return the resources of a container beside the training's, which must not take a node's for itself."""
    given = resources if isinstance(resources, dict) else {}
    amounts = {kind: dict(given[kind]) if isinstance(given.get(kind), dict) else {} for kind in ("requests", "limits")}
    for resource, default in _SMALL.items():
        requested = amounts["requests"].get(resource, amounts["limits"].get(resource))
        if requested is None:
            ledger.note(f"the container {name} requests no {resource}: it gets {default}")
        amounts["requests"][resource] = default if requested is None else requested
        amounts["limits"].setdefault(resource, amounts["requests"][resource])
    return {**given, **amounts}


def _read_security(pods: RolePods, container: Mapping[str, Any], place: Place, role: RoleSpec, ledger: Ledger) -> None:
    for context, where, target in (
        (pods.pod.get("securityContext"), (*pods.place, "securityContext"), "podSecurityContext"),
        (container.get("securityContext"), (*place, "securityContext"), "containerSecurityContext"),
    ):
        kept = _only_restricted(ledger.mapping(context, where), where, ledger)
        if kept:
            role.settings[target] = kept
            role.has_user |= "runAsUser" in kept
            ledger.carry(where, target)


def _only_restricted(context: dict[str, Any], place: Place, ledger: Ledger) -> dict[str, Any]:
    """Return what a security context says, without that which takes rights that charts do not give."""
    kept = {}
    for key, value in context.items():
        where = (*place, str(key))
        is_root = key in ("runAsUser", "runAsGroup") and value == 0
        is_loose = (key, value) in (("runAsNonRoot", False), ("privileged", True), ("allowPrivilegeEscalation", True))
        if is_root or is_loose or key in ("procMount", "seLinuxOptions", "windowsOptions", "sysctls"):
            remedy = "let the image work for any user, or set podSecurityContext yourself" if is_root else ""
            ledger.leave(where, _NOT_RESTRICTED, remedy)
        elif key == "capabilities":
            added = value.get("add") if isinstance(value, dict) else None
            if added:
                ledger.leave(where, _NOT_RESTRICTED, "set containerSecurityContext.capabilities where RDMA needs it")
        elif value not in (None, {}, []) and key != "privileged":
            kept[str(key)] = value
    return kept


def _read_metadata(pods: RolePods, role: RoleSpec, ledger: Ledger) -> None:
    for words, target in ((pods.labels, "podLabels"), (pods.annotations, "podAnnotations")):
        kept = keep_own(words)
        if kept:
            role.settings[target] = kept
            ledger.carry((*pods.place[:-1], "metadata"), target)


def keep_own(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return labels or annotations without those that another tool, or the chart, sets by itself."""
    return {
        str(key): value for key, value in words.items() if not _OWN_LABELS.fullmatch(str(key)) and value is not None
    }
