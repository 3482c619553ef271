"""Carries what a post-renderer changed about a release over to another rendering of its chart. Pure.

A post-renderer (kustomize, say) is not at hand when one value of a release changes, but its work is in Helm's record. A
merge of three: what the chart renders with the values as they are, what the record holds, and what the chart renders
with the changed value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trainchart.helm.manifests import split_by_source
from trainchart.helm.rendering import ReleaseTexts
from trainchart.json_documents import is_same
from trainchart.kubernetes_yaml import dump_mapping, parse_objects
from trainchart_runtime.contract import REPLICAS_ANNOTATION

SOURCE_ANNOTATION = "postrenderer.helm.sh/postrender-filename"
"""How Helm 4 knows, after a post-renderer, which template an object comes from; it takes the annotation off."""
_MISSING: Any = object()
_Map = Mapping[Any, Any]


class _Key(NamedTuple):
    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


Objects = tuple[tuple[str, Mapping[str, Any]], ...]
"""(path of the template, object); without a path where a post-renderer has added the object."""


@dataclass(frozen=True)
class Carried:
    """A rendering with the earlier changes in it."""

    objects: Objects
    hooks: Objects
    kept: tuple[str, ...]
    """Each field that differs from what the chart renders, such as `Job a: metadata.labels.team`."""
    kept_in_hooks: tuple[str, ...]
    conflicts: tuple[str, ...]
    """Each field that both the post-renderer and the new value change."""


def carry_over(rendered: ReleaseTexts, stored: ReleaseTexts, wanted: ReleaseTexts, namespace: str) -> Carried:
    """Return `wanted` with every change between `rendered` and `stored` made in it, too.

    Raises:
        YamlError: a text is not YAML.
    """
    objects, merge = _carry(rendered.manifest, stored.manifest, split_by_source(wanted.manifest), namespace)
    hooks, below = _carry(_join(rendered.hooks), _join(stored.hooks), _by_path(wanted.hooks), namespace)
    conflicts = (*merge.conflicts, *below.conflicts)
    return Carried(objects, hooks, tuple(merge.kept), tuple(below.kept), conflicts)


def dump_objects(objects: Objects, *, marks_sources: bool) -> str:
    """Return objects as a post-renderer prints them: for Helm 4 with the source of each as an annotation."""
    texts = []
    for source, each in objects:
        if marks_sources and source:
            metadata = each["metadata"]
            annotations = {**(metadata.get("annotations") or {}), SOURCE_ANNOTATION: source}
            each = {**each, "metadata": {**metadata, "annotations": annotations}}
        comment = f"# Source: {source}\n" if source else ""
        texts.append(f"---\n{comment}{dump_mapping(each)}")
    return "".join(texts)


def _carry(rendered: str, stored: str, wanted: Mapping[str, str], namespace: str) -> tuple[Objects, _Merge]:
    base, theirs = _index(parse_objects(rendered), namespace), _index(parse_objects(stored), namespace)
    ours: dict[_Key, Any] = {}
    sources: dict[_Key, str] = {}
    for source, text in wanted.items():
        found = _index(parse_objects(text), namespace)
        ours |= found
        sources |= dict.fromkeys(found, source)
    for each in (base, theirs):
        _drop_replicas(each, marked_in=base)
    earlier = _match_renamed(base, ours)
    merge = _Merge()
    merged = merge.mappings(base, theirs, {earlier.get(key, key): value for key, value in ours.items()}, ())
    named = {earlier.get(key, key): source for key, source in sources.items()}
    objects = tuple((named.get(key, ""), each) for key, each in merged.items())
    return objects, merge


def _index(objects: Iterable[Any], namespace: str) -> dict[_Key, Any]:
    found = {}
    for value in (_cleaned(each.value) for each in objects if isinstance(each.value, Mapping)):
        metadata = value.get("metadata") or {}
        group = str(value.get("apiVersion")).rpartition("/")[0]
        place = str(metadata.get("namespace") or namespace)
        found[_Key(group, str(value.get("kind")), place, str(metadata.get("name")))] = value
    return found


def _cleaned(value: Any) -> Any:
    """Return `value` as every tool writes it: without nulls, and whole numbers without a fraction."""
    if isinstance(value, Mapping):
        return {key: _cleaned(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_cleaned(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _drop_replicas(objects: dict[_Key, Any], *, marked_in: Mapping[_Key, Any]) -> None:
    """Take the number of pods away: the run controller's, and rendered in some phases of a run only."""
    for key, each in objects.items():
        annotations = (marked_in.get(key, {}).get("metadata") or {}).get("annotations") or {}
        if REPLICAS_ANNOTATION in annotations and "replicas" in each.get("spec", {}):
            spec = {name: value for name, value in each["spec"].items() if name != "replicas"}
            objects[key] = {**each, "spec": spec}


def _match_renamed(base: Mapping[_Key, Any], ours: Mapping[_Key, Any]) -> dict[_Key, _Key]:
    """Return new name → earlier one: a Job's name changes with its content, which cannot be changed."""
    gone = [key for key in base if key not in ours]
    new = [key for key in ours if key not in base]
    pairs = {}
    for key in new:
        before = [old for old in gone if old[:3] == key[:3]]
        if len(before) == 1 and sum(other[:3] == key[:3] for other in new) == 1:
            pairs[key] = before[0]
    return pairs


@dataclass
class _Merge:
    """A merge of three under way."""

    kept: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)

    def mappings(self, base: _Map, theirs: _Map, ours: _Map, path: tuple[str, ...]) -> dict[Any, Any]:
        merged = {}
        for key in dict.fromkeys((*theirs, *ours, *base)):
            before, kept, new = (each.get(key, _MISSING) for each in (base, theirs, ours))
            value = self._values(before, kept, new, (*path, str(key)))
            if value is not _MISSING:
                merged[key] = value
        return merged

    def _values(self, base: Any, theirs: Any, ours: Any, path: tuple[str, ...]) -> Any:
        if is_same(theirs, base):
            return ours
        if is_same(theirs, ours):
            return theirs
        maps = _as_maps(base, theirs, ours)
        if maps is not None:
            merged = self.mappings(*maps, path)
            return merged if isinstance(theirs, Mapping) else list(merged.values())
        is_unchanged = is_same(ours, base)
        (self.kept if is_unchanged else self.conflicts).append(_say(path))
        return theirs if is_unchanged else ours


def _as_maps(base: Any, theirs: Any, ours: Any) -> tuple[_Map, _Map, _Map] | None:
    """Return the three sides as mappings, of lists by the names of their items; None where one is something else."""
    sides = (type(theirs)() if base is _MISSING else base, theirs, ours)
    if len({isinstance(side, list) for side in sides}) > 1:
        return None
    before, kept, new = map(_as_map, sides)
    return None if before is None or kept is None or new is None else (before, kept, new)


def _as_map(value: Any) -> _Map | None:
    if isinstance(value, Mapping):
        return value
    if not isinstance(value, list) or not all(isinstance(item, Mapping) and "name" in item for item in value):
        return None
    named = {f"[{item['name']}]": item for item in value}
    return named if len(named) == len(value) else None


def _say(path: Sequence[str]) -> str:
    below = ".".join(path[1:]).replace(".[", "[")
    return f"{path[0]}: {below}" if below else path[0]


def _join(hooks: Iterable[tuple[str, str]]) -> str:
    return "".join(f"---\n{text.rstrip()}\n" for _, text in hooks)


def _by_path(hooks: Iterable[tuple[str, str]]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path, text in hooks:
        texts[path] = f"{texts.get(path, '')}---\n{text.rstrip()}\n"
    return texts
