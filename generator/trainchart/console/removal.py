"""What uninstalling a release removes and what it leaves, from the objects that helm keeps of it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_POLICY = "helm.sh/resource-policy"
_CLAIM, _SET = "PersistentVolumeClaim", "StatefulSet"


def count_kinds(objects: Iterable[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Return how many objects of each kind there are, the most frequent first."""
    counts = Counter(str(each.get("kind", "")) for each in objects)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def divide(objects: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str], list[tuple[str, int]]]:
    """Return what stays, the claims that go, and how many objects of each kind go."""
    kept = [each for each in objects if _is_kept(each)]
    gone = [each for each in objects if not _is_kept(each)]
    stays = [*map(_describe, kept), *(text for each in gone for text in _find_claims_of_set(each))]
    return stays, [_describe(each) for each in gone if each.get("kind") == _CLAIM], count_kinds(gone)


def warn_of(name: str, pause: str) -> str:
    """Return what to say of a tool that applies a release, and of the command that makes it stop."""
    return f"{name} applies this release and will install it again: remove it there, or pause it first: {pause}"


def _is_kept(each: Mapping[str, Any]) -> bool:
    return str(_section(_section(each, "metadata"), "annotations").get(_POLICY, "")).strip().lower() == "keep"


def _find_claims_of_set(each: Mapping[str, Any]) -> Iterator[str]:
    """Yield the claims that a StatefulSet makes for its pods: helm does not know them."""
    spec = _section(each, "spec")
    if (
        each.get("kind") != _SET
        or _section(spec, "persistentVolumeClaimRetentionPolicy").get("whenDeleted") == "Delete"
    ):
        return
    templates = spec.get("volumeClaimTemplates")
    for template in templates if isinstance(templates, list) else ():
        if isinstance(template, Mapping):
            yield f"{_CLAIM}s {_name(template)}-{_name(each)}-…"


def _describe(each: Mapping[str, Any]) -> str:
    size = _section(_section(_section(each, "spec"), "resources"), "requests").get("storage")
    return f"{each.get('kind', '')} {_name(each)}{f' ({size})' if size and each.get('kind') == _CLAIM else ''}"


def _name(each: Mapping[str, Any]) -> str:
    return str(_section(each, "metadata").get("name", ""))


def _section(each: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = each.get(name)
    return found if isinstance(found, Mapping) else {}
