"""Plain StatefulSets that run TensorFlow: which role each one is, by its name, its labels and its flags. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainchart.errors import Problem, ToolError
from trainchart.importing.ledger import Ledger, Origin, Place
from trainchart.importing.pods import keep_own
from trainchart.importing.training import RolePods, Training
from trainchart_runtime.cluster import CHIEF, EVALUATOR, PS, WORKER

KIND = "set of StatefulSets"
_ROLES = (
    (PS, re.compile(r"ps|parameter-?servers?|param-?servers?")),
    (WORKER, re.compile(r"workers?")),
    (CHIEF, re.compile(r"chief|master|coordinator")),
    (EVALUATOR, re.compile(r"evaluator|eval")),
)
_ROLE_LABELS = ("role", "component", "app.kubernetes.io/component", "job", "job-name", "task", "type", "tier")
_ROLE_VARIABLES = ("JOB_NAME", "TASK_TYPE", "TF_JOB", "ROLE")
_SIGNS = re.compile(r"tensorflow|TF_CONFIG|ps_hosts|worker_hosts|PS_HOSTS|WORKER_HOSTS|job_name|keras", re.IGNORECASE)
_SILENT = {
    *(
        "replicas",
        "selector",
        "serviceName",
        "template",
        "podManagementPolicy",
        "updateStrategy",
        "volumeClaimTemplates",
    ),
    *("revisionHistoryLimit", "minReadySeconds", "persistentVolumeClaimRetentionPolicy", "ordinals"),
}


def is_training_set(value: Any) -> bool:
    """Tell whether an object is a StatefulSet that runs TensorFlow."""
    is_set = isinstance(value, dict) and value.get("kind") == "StatefulSet"
    return is_set and bool(_SIGNS.search(json.dumps(value, default=str)))


def read_stateful_sets(
    sets: Sequence[tuple[Mapping[str, Any], Mapping[Place, int]]], file: str
) -> tuple[Training, ...]:
    """Return one training for each group of sets whose names differ in their role only.

    Raises:
        ToolError: two sets have the same name and role.
    """
    groups: dict[str, list[tuple[str, Mapping[str, Any], Mapping[Place, int]]]] = {}
    for value, lines in sets:
        role, base = _find_role(value)
        groups.setdefault(base, []).append((role, value, lines))
    return tuple(_read_group(base, members, file) for base, members in groups.items())


def _read_group(base: str, members: list[tuple[str, Mapping[str, Any], Mapping[Place, int]]], file: str) -> Training:
    lines: dict[Place, int] = {}
    for role, _, own in members:
        lines |= {(role, *place): line for place, line in own.items()}
    first = min(lines.values(), default=1)
    ledger = Ledger(Origin(file, {(): first, **lines}))
    found: dict[str, RolePods] = {}
    common: dict[str, Any] = {}
    for role, value, own in members:
        if role in found:
            problem = Problem(
                f"another StatefulSet is the {role} of {base or 'this training'}", f"{file}:{own.get((), 1)}"
            )
            raise ToolError(
                f"{file} contains two StatefulSets of the same role",
                hint="put each training job into a file of its own",
                problems=(problem,),
            )
        found[role] = _read_set(role, value, ledger)
        labels = keep_own(
            ledger.mapping(
                ledger.mapping(value.get("metadata"), (role, "metadata")).get("labels"), (role, "metadata", "labels")
            )
        )
        common = {key: label for key, label in labels.items() if key not in ("app", *_ROLE_LABELS)} or common
    settings = {"commonLabels": common} if common else {}
    ledger.note(
        "the pods of a chart have other host names: the launcher gives them in TF_CONFIG, PS_HOSTS and WORKER_HOSTS"
    )
    return Training(KIND, base, (), tuple(found.values()), ledger, settings, has_tf_config=False)


def _read_set(role: str, value: Mapping[str, Any], ledger: Ledger) -> RolePods:
    spec = ledger.mapping(value.get("spec"), (role, "spec"))
    template = ledger.mapping(spec.get("template"), (role, "spec", "template"))
    metadata = ledger.mapping(template.get("metadata"), (role, "spec", "template", "metadata"))
    place: Place = (role, "spec", "template", "spec")
    pod = dict(ledger.mapping(template.get("spec"), place))
    claims = ledger.entries(spec.get("volumeClaimTemplates"), (role, "spec", "volumeClaimTemplates"))
    for index, claim in enumerate(claims):
        where: Place = (role, "spec", "volumeClaimTemplates", index)
        reason = "each pod had a claim of its own, and the pods of a chart share theirs"
        ledger.leave(where, reason, "add it to volumes with a size, or with existingClaim")
        name = ledger.mapping(ledger.mapping(claim, where).get("metadata"), where).get("name")
        pod = _without_volume(pod, str(name))
    for key, entry in spec.items():
        if key not in _SILENT and entry not in (None, "", {}, []):
            ledger.leave((role, "spec", str(key)), "the model spec has no such setting")
    count = ledger.number(spec.get("replicas"), (role, "spec", "replicas"), 1)
    ledger.carry((role, "spec", "replicas"), f"roles.{role}.replicas")
    selector = ledger.mapping(ledger.mapping(spec.get("selector"), place).get("matchLabels"), place)
    labels = {
        key: label
        for key, label in ledger.mapping(metadata.get("labels"), place).items()
        if key not in selector and key not in _ROLE_LABELS
    }
    annotations = ledger.mapping(metadata.get("annotations"), place)
    return RolePods(role, count, pod, place, labels, annotations)


def _without_volume(pod: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a pod whose containers do not mount a volume."""
    containers = pod.get("containers")
    if not isinstance(containers, list):
        return pod
    return {**pod, "containers": [_without_mount(container, name) for container in containers]}


def _without_mount(container: Any, name: str) -> Any:
    mounts = container.get("volumeMounts") if isinstance(container, dict) else None
    if not isinstance(mounts, list):
        return container
    kept = [mount for mount in mounts if not (isinstance(mount, dict) and mount.get("name") == name)]
    return {**container, "volumeMounts": kept}


def _find_role(value: Mapping[str, Any]) -> tuple[str, str]:
    """Return the role of a set, and its name without the role."""
    metadata = value.get("metadata")
    name = str(metadata.get("name") or "") if isinstance(metadata, dict) else ""
    parts = [part for part in re.split(r"[-._]+", name) if part]
    for role, pattern in _ROLES:
        kept = [part for part in parts if not pattern.fullmatch(part)]
        if len(kept) < len(parts):
            return role, "-".join(kept)
    words = [*_label_words(value), *_program_words(value)]
    role = next((role for word in words for role, pattern in _ROLES if pattern.fullmatch(word.lower())), WORKER)
    return role, name


def _label_words(value: Mapping[str, Any]) -> Iterator[str]:
    spec = value.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    for owner in (value, template):
        metadata = owner.get("metadata") if isinstance(owner, dict) else None
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if isinstance(labels, dict):
            yield from (str(labels[label]) for label in _ROLE_LABELS if label in labels)


def _program_words(value: Mapping[str, Any]) -> Iterator[str]:
    """Yield what `--job_name=ps` and JOB_NAME say."""
    text = json.dumps(value, default=str)
    yield from re.findall(r"--?(?:job_name|job-name|task_type|role)[= ]([a-z-]+)", text)
    names = "|".join(_ROLE_VARIABLES)
    yield from re.findall(rf'"name": "(?:{names})", "value": "([a-z-]+)"', text)
