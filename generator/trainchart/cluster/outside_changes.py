"""Reads what was changed about a release's objects after they were made, and by what: the API server keeps it. Pure.

Helm's own record would say what it was before, but lies in a Secret, which those on call seldom may read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trainchart.cluster.snapshot import Object, items_of, label, name_of, section
from trainchart.json_documents import parse_json
from trainchart.reports.report import STATEFUL_SET, OutsideChange
from trainchart.reports.text import describe_time
from trainchart_runtime.contract import CONTROLLER_AGENT, INSTANCE_LABEL
from trainchart_runtime.pod_problems import parse_time
from trainchart_runtime.run.judge import list_names

_SHOWN = ("resources", "image")
"""Fields whose values are shown: others, such as env, may hold secrets."""
HELM = "helm"
"""Its name as the API server knows it, beside CONTROLLER_AGENT: these may change a release."""
_RELEASE_ANNOTATION = "meta.helm.sh/release-name"
_MANAGER_LABEL = "app.kubernetes.io/managed-by"
_OF_KUBERNETES = "kube-controller-manager"
SET_BY_CHARTS = {
    "Job": ("template",),
    "Service": ("type", "clusterIP", "publishNotReadyAddresses", "selector", "ports"),
    "NetworkPolicy": ("podSelector", "policyTypes", "ingress", "egress"),
}
"""Kind → fields of its spec that charts set: Helm leaves all others to those who changed them."""
_RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""kubectl rollout restart changes no more than this annotation."""


def find_outside_changes(each: Object) -> tuple[OutsideChange, ...]:
    """Return the changes of a StatefulSet's pod template by others than what applies the release, oldest first."""
    template = section(each, "spec", "template")
    changes = []
    for entry, owned in _foreign_entries(each):
        fields = [words for path, value in _walk(owned, template, ()) for words in _say(path, value)]
        if fields:
            who, at = str(entry.get("manager") or "?"), parse_time(entry.get("time"))
            changes.append(OutsideChange(STATEFUL_SET, name_of(each), who, at, tuple(fields)))
    return tuple(sorted(changes, key=lambda change: change.at))


def describe_scalers(sets: Sequence[Object]) -> Iterator[str]:
    """Yield who else changes the number of pods of StatefulSets, or has noted at them that it does."""
    found: dict[str, dict[str, tuple[float, str]]] = {}
    for each in sets:
        for entry in _entries(each):
            who, owned = str(entry.get("manager") or "?"), section(entry, "fieldsV1")
            marks = [
                key.removeprefix("f:") for key in section(owned, "f:metadata", "f:annotations") if "replicas" in key
            ]
            has_scaled = "f:replicas" in section(owned, "f:spec")
            is_own = who in (HELM, CONTROLLER_AGENT) or "f:selector" in section(owned, "f:spec")
            if not is_own and (has_scaled or marks):
                how = "it has set spec.replicas" if has_scaled else f"annotation {marks[0]}"
                found.setdefault(who, {})[name_of(each)] = (parse_time(entry.get("time")), how)
    for who, names in found.items():
        at, how = max(names.values())
        yield (
            f"{who} scales {list_names(list(names))} ({how}, last at {describe_time(at)}): its pods are deleted each "
            f"time, whatever the run does. Exclude this release from {who}"
        )


def find_config_changes(kind: str, objects: Iterable[Object], since: float, release: str) -> Iterator[OutsideChange]:
    """Yield the changes of data in ConfigMaps or Secrets by others than Helm after `since`, when the run began."""
    for each in objects:
        for entry in _entries(each):
            who, at = str(entry.get("manager") or "?"), parse_time(entry.get("time"))
            keys = [
                f"{part}.{key.removeprefix('f:')}"
                for part in ("data", "binaryData")
                for key in section(entry, "fieldsV1", f"f:{part}")
                if key != "."
            ]
            if keys and at > since and who not in (HELM, CONTROLLER_AGENT):
                yield OutsideChange(kind, name_of(each), who, at, tuple(keys), False, _is_of_release(each, release))


def find_object_changes(kind: str, objects: Iterable[Object], since: float, release: str) -> Iterator[OutsideChange]:
    """Yield the changes of what objects of a kind ask for, by others than what applies the release, after `since`."""
    for each in objects:
        for entry in _entries(each):
            who, at = str(entry.get("manager") or "?"), parse_time(entry.get("time"))
            # What applies the release owns the label of its chart, whatever its name.
            applies = "f:helm.sh/chart" in section(entry, "fieldsV1", "f:metadata", "f:labels")
            is_own = applies or who in (HELM, CONTROLLER_AGENT, _OF_KUBERNETES) or entry.get("subresource")
            fields = [key.removeprefix("f:") for key in section(entry, "fieldsV1", "f:spec") if key != "."]
            if fields and at > since and not is_own:
                is_left = not set(fields) & set(SET_BY_CHARTS[kind])
                words = tuple(f"spec.{field}" for field in fields)
                yield OutsideChange(kind, name_of(each), who, at, words, is_left, _is_of_release(each, release))


def _is_of_release(each: Object, release: str) -> bool:
    """Say whether Helm made an object for a release: as it notes itself, or as charts that others apply say."""
    noted = section(each, "metadata", "annotations").get(_RELEASE_ANNOTATION)
    if noted:
        return bool(noted == release)
    return label(each, _MANAGER_LABEL) == "Helm" and label(each, INSTANCE_LABEL) == release


def list_secrets(sets: Iterable[Object]) -> list[str]:
    """Return the names of the Secrets that the pods of StatefulSets use."""
    return _list_used(sets, volume=("secret", "secretName"), source="secretRef", variable="secretKeyRef")


def list_config_maps(sets: Iterable[Object]) -> list[str]:
    """Return the names of the ConfigMaps that the pods of StatefulSets use."""
    return _list_used(sets, volume=("configMap", "name"), source="configMapRef", variable="configMapKeyRef")


def _list_used(sets: Iterable[Object], volume: tuple[str, str], source: str, variable: str) -> list[str]:
    """Return the names by which pods use objects of a kind as volumes, as sources of variables, and for single ones."""
    names: dict[str, None] = {}
    for each in sets:
        pod = section(each, "spec", "template", "spec")
        for each_volume in items_of(pod, "volumes"):
            names[str(section(each_volume, volume[0]).get(volume[1]) or "")] = None
        for container in (*items_of(pod, "containers"), *items_of(pod, "initContainers")):
            for entry in items_of(container, "envFrom"):
                names[str(section(entry, source).get("name") or "")] = None
            for entry in items_of(container, "env"):
                names[str(section(entry, "valueFrom", variable).get("name") or "")] = None
    return [name for name in names if name]


def lay_over(manifest: Object, each: Object) -> Object:
    """Return the manifest of a StatefulSet with what others have changed since about the pods that it describes.

    Fields that the manifest does not have stay out: whatever applies it leaves them alone.
    """
    template = section(manifest, "spec", "template")
    for _, owned in _foreign_entries(each):
        template = _take(owned, template, section(each, "spec", "template"))
    return {**manifest, "spec": {**section(manifest, "spec"), "template": template}}


def _foreign_entries(each: Object) -> Iterator[tuple[Object, Object]]:
    """Yield who owns fields of the pod template beside what applies the release, and those fields as a tree."""
    for entry in _entries(each):
        owned = section(entry, "fieldsV1", "f:spec")
        # What applies the release owns the selector, which cannot be changed later.
        if owned and not entry.get("subresource") and "f:selector" not in owned:
            yield entry, section(owned, "f:template")


def _entries(each: Object) -> list[Object]:
    return items_of(section(each, "metadata"), "managedFields")


def _take(fields: Mapping[str, Any], value: Any, live: Any) -> Any:
    """Return `value` with the live values of the fields in a tree of managed fields, as far as it has them."""
    inner = {key: below for key, below in fields.items() if key != "." and isinstance(below, Mapping)}
    if not inner:
        return live
    for key, below in inner.items():
        kind, _, name = key.partition(":")
        if kind not in ("f", "k"):
            continue
        mine, theirs = _step(kind, name, value)[0], _step(kind, name, live)[0]
        if mine is None or theirs is None:
            continue
        taken = _take(below, mine, theirs)
        value = {**value, name: taken} if kind == "f" else [taken if item is mine else item for item in value]
    return value


def _walk(fields: Mapping[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the path and the present value of every field in a tree of managed fields."""
    for key, below in fields.items():
        kind, _, name = key.partition(":")
        if kind not in ("f", "k") or not isinstance(below, Mapping):
            continue
        child, step = _step(kind, name, value)
        inner = {inner_key: each for inner_key, each in below.items() if inner_key != "."}
        if inner:
            yield from _walk(inner, child, (*path, step))
        else:
            yield (*path, step), child


def _step(kind: str, name: str, value: Any) -> tuple[Any, str]:
    """Return what lies below `value` in a field, or in the item of a list that has these keys; and its name."""
    if kind == "f":
        return (value.get(name) if isinstance(value, Mapping) else None), name
    try:
        keys = parse_json(name)
    except ValueError:
        return None, name
    keys = keys if isinstance(keys, dict) else {}
    items: Sequence[Any] = value if isinstance(value, list) else ()
    fitting = (item for item in items if isinstance(item, Mapping) and keys.items() <= item.items())
    return next(fitting, None), str(next(iter(keys.values()), name))


def _say(path: tuple[str, ...], value: Any) -> Iterator[str]:
    """Yield a field as people write it, with its value where that is no secret."""
    if _RESTARTED in path:
        return
    short = [step for step in path if step not in ("spec", "containers")]
    is_shown = isinstance(value, (str, int)) and (short[1:2] and short[1] in _SHOWN)
    yield ".".join(short) + (f"={value}" if is_shown else "")
