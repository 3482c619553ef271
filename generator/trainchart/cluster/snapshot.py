"""What was seen of a release in one look: the API's objects as they are, or why they could not be seen.

Types and their sorting only; releases.py looks, diagnosis.py concludes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainchart.cluster.object_shapes import find_wrong_field
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import TrainingKey
from trainchart_runtime.contract import (
    COMPONENT_LABEL,
    INSTANCE_LABEL,
    NAME_LABEL,
    PLAN_ANNOTATION,
    REPLICAS_ANNOTATION,
    STATE_KEY,
    STATE_NAME,
    TRAINING_LABEL,
)

MOST_PODS = 10_000
"""Pods of one role that are named: a chart makes a thousand at most, and anyone may ask for more."""
CONTROLLER = "controller"
_STATE = "state"
STATE_SUFFIX = f"-{_STATE}"

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Unreadable:
    """Objects that could not be listed: neither there nor absent, but unknown."""

    what: str
    """Plural, such as pods."""
    reason: str
    """forbidden, unreachable, ..."""
    detail: str = ""


Objects = tuple[Object, ...] | Unreadable


@dataclass(frozen=True)
class Damaged:
    """An object that is left out, because the rest of the code expects the types of the Kubernetes API."""

    key: TrainingKey
    """As far as its labels say it."""
    name: str
    """With its kind, such as pods/exp-7-mnist-worker-0."""
    field: str
    """The first of a wrong type."""

    def __str__(self) -> str:
        return f"{self.name}, whose field {self.field} is missing or has the wrong type"


@dataclass(frozen=True)
class Snapshot:
    """Everything that one look has shown: of one release, one namespace or the cluster."""

    now: float
    """Unix seconds."""
    sets: Objects = ()
    pods: Objects = ()
    records: Objects = ()
    """ConfigMaps of run controllers."""
    config_maps: Objects = ()
    """Others of the release, as far as they were looked for."""
    jobs: Objects = ()
    events: Objects = ()
    """Warnings of the namespace; of others than the release too, since events have no labels."""
    autoscalers: Objects = ()
    """Those of the namespace; looked for by `why` only, like all that follows."""
    claims: Objects = ()
    """Those of the namespace."""
    services: Objects = ()
    """Those of the namespace, where an init container keeps pods waiting; then the release's own is one of them."""
    init_lines: Mapping[str, str] = field(default_factory=dict)
    """Pod → last line of the init container that it waits for."""
    controller_lines: tuple[LogLine, ...] = ()
    """The last lines of the run controller's log, while the run goes on."""
    volumes: Objects = ()
    """PersistentVolumes of pods for which no node is found."""
    nodes: Objects = ()
    namespaces: Objects = ()
    """The release's own, where it may be being deleted."""
    damaged: tuple[Damaged, ...] = ()
    """Those that are in none of the above."""


def leave_out_damaged(seen: Snapshot) -> Snapshot:
    """Return the snapshot without objects that have fields of a wrong type; these are named in `damaged`."""
    looks = {"statefulsets": "sets", "pods": "pods", "configmaps": "records", "jobs": "jobs", "events": "events"}
    found = {kind: getattr(seen, look) for kind, look in looks.items()}
    damaged = (
        Damaged(_key(each), f"{kind}/{name_of(each)}", wrong)
        for kind, objects in found.items()
        for each in listed(objects)
        if (wrong := find_wrong_field(each))
    )
    kept: dict[str, Any] = {look: drop_damaged(found[kind]) for kind, look in looks.items()}
    return replace(seen, **kept, damaged=tuple(damaged))


def drop_damaged(objects: Objects) -> Objects:
    """Return the objects without those that have fields of a wrong type."""
    return objects if isinstance(objects, Unreadable) else tuple(each for each in objects if not find_wrong_field(each))


def find_trainings(seen: Snapshot) -> dict[TrainingKey, Snapshot]:
    """Sort what was seen by training, and leave out what trainchart has not made."""
    ours = {
        *(_key(each) for each in listed(seen.sets) if is_training_set(each)),
        *(_key(each) for each in listed(seen.pods) if is_training_pod(each)),
        # Alone, a ConfigMap of that name may be foreign unless a run controller has written it.
        *(_key(each) for each in listed(seen.records) if is_record(each) and STATE_KEY in section(each, "data")),
    }
    sets, pods, records, jobs = map(_sort, (seen.sets, seen.pods, seen.records, seen.jobs))
    composed = {key: _compose(seen, sets(key), pods(key), records(key), jobs(key)) for key in sorted(ours)}
    return {
        key: replace(own, damaged=tuple(each for each in seen.damaged if each.key == key or not each.key.release))
        for key, own in composed.items()
    }


def listed(objects: Objects) -> Sequence[Object]:
    """Return the objects; none where they could not be seen."""
    return () if isinstance(objects, Unreadable) else objects


def is_training_set(each: Object) -> bool:
    return REPLICAS_ANNOTATION in section(each, "metadata", "annotations")


def is_training_pod(each: Object) -> bool:
    return label(each, TRAINING_LABEL) == "true"


def is_record(each: Object) -> bool:
    """Return whether a ConfigMap is the one a run controller keeps its state in.

    A long release's is named by a hash, and known by the chart's annotation, which earlier charts have not.
    """
    is_marked = PLAN_ANNOTATION in section(each, "metadata", "annotations")
    return label(each, COMPONENT_LABEL) == CONTROLLER and (is_marked or name_of(each).endswith(STATE_SUFFIX))


def is_controllers(each: Object) -> bool:
    return label(each, COMPONENT_LABEL) == CONTROLLER


def section(each: Object, *path: str) -> Mapping[str, Any]:
    """Return a mapping inside an object; an empty one where it is missing or something else."""
    found: Any = each
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def items_of(each: Object, key: str) -> list[Object]:
    """Return the mappings in a list inside an object; none where it is missing or something else."""
    found = each.get(key)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, list) else []


def label(each: Object, name: str) -> str:
    return str(section(each, "metadata", "labels").get(name) or "")


def name_of(each: Object) -> str:
    return str(section(each, "metadata").get("name") or "")


def namespace_of(each: Object) -> str:
    return str(section(each, "metadata").get("namespace") or "")


def has_ended(pod: Object) -> bool:
    """Return whether a pod has finished, so that it holds nothing of its node any more."""
    return section(pod, "status").get("phase") in ("Succeeded", "Failed")


def owner_of(each: Object) -> str:
    """Return the kind and the name of what made an object; "" where nothing did."""
    owner = _find_owner(each)
    return f"{owner.get('kind')} {owner.get('name')}" if owner else ""


def owner_uid(each: Object) -> str:
    """Return the UID of what made an object; "" where nothing did."""
    return str(_find_owner(each).get("uid") or "")


def _find_owner(each: Object) -> Object:
    owners = items_of(section(each, "metadata"), "ownerReferences")
    return next((owner for owner in owners if owner.get("controller")), {})


def _key(each: Object) -> TrainingKey:
    return TrainingKey(namespace_of(each), label(each, INSTANCE_LABEL), label(each, NAME_LABEL))


def _sort(objects: Objects) -> Callable[[TrainingKey], Objects]:
    """Return what gives the objects of a training, in their order; what could not be seen is unknown of each."""
    if isinstance(objects, Unreadable):
        return lambda key: objects
    sorted_objects: dict[TrainingKey, list[Object]] = {}
    for each in objects:
        sorted_objects.setdefault(_key(each), []).append(each)
    return lambda key: tuple(sorted_objects.get(key, ()))


def _compose(seen: Snapshot, sets: Objects, pods: Objects, records: Objects, jobs: Objects) -> Snapshot:
    """Return what was seen of one training, from all that has its labels."""
    return Snapshot(
        now=seen.now,
        sets=sets if isinstance(sets, Unreadable) else tuple(filter(is_training_set, sets)),
        pods=pods,
        records=records if isinstance(records, Unreadable) else _find_records(records, jobs, sets),
        config_maps=tuple(each for each in listed(records) if not is_record(each)),
        jobs=jobs,
        events=seen.events,
    )


def _find_records(config_maps: Sequence[Object], jobs: Objects, sets: Objects) -> tuple[Object, ...]:
    """Return the record of a training: any user may give other ConfigMaps its labels.

    Its run controller's Job states the name; where there is no Job, the names of the StatefulSets begin alike.
    """
    found = tuple(filter(is_record, config_maps))
    stated = {name for job in filter(is_controllers, listed(jobs)) for name in _list_state_names(job)}
    if stated:
        return tuple(each for each in found if name_of(each) in stated)
    alike = {name_of(each).removesuffix(label(each, COMPONENT_LABEL)) + _STATE for each in listed(sets)}
    return tuple(each for each in found if name_of(each) in alike) or found


def _list_state_names(job: Object) -> Iterator[str]:
    for container in items_of(section(job, "spec", "template", "spec"), "containers"):
        for variable in items_of(container, "env"):
            if variable.get("name") == STATE_NAME:
                yield str(variable.get("value") or "")
