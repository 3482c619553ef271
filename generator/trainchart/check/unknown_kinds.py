"""The objects whose fields no schema of Kubernetes describes, so that a summary can say what was not looked into."""

from __future__ import annotations

from dataclasses import dataclass

from trainchart.check.finding import CheckInput
from trainchart.check.pod_templates import group_of, pod_templates


@dataclass(frozen=True)
class UnknownKind:
    """A kind of which only names, labels and, where it is well known, pod templates are checked."""

    api_version: str
    kind: str
    objects: tuple[str, ...]
    has_pods: bool


def find_unknown_kinds(given: CheckInput) -> tuple[UnknownKind, ...]:
    """Return the kinds that no Kubernetes version asked for defines, each with the names of its objects."""
    known = given.kinds or given.kubernetes
    names: dict[tuple[str, str], dict[str, bool]] = {}
    for _, rendering in given.renderings():
        for manifest in rendering.manifests:
            group = group_of(manifest)
            if manifest.kind and not any(schemas.has_group(group) for schemas in known):
                key = (str(manifest.document.get("apiVersion", "")), manifest.kind)
                names.setdefault(key, {})[manifest.name] = bool(pod_templates(manifest))
    return tuple(UnknownKind(*key, tuple(found), any(found.values())) for key, found in sorted(names.items()))
