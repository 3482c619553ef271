"""What Kubernetes would refuse in rendered objects: schemas, names, labels, and names that occur twice."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.helm.rendering import Rendering
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.spec.section import LABEL_KEY_PATTERN, LABEL_VALUE_PATTERN

VERSION = "1.37"
USER_OBJECTS = "templates/extra-manifests.yaml"
"""Installed as the user wrote them, so they may be anything."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@functools.cache
def _schemas() -> KubernetesSchemas:
    return KubernetesSchemas(VERSION, read_definitions(VERSION))


def find_faults(rendering: Rendering) -> list[str]:
    """Return what is wrong in the chart's own objects, one text each."""
    own = [manifest for manifest in rendering.manifests if manifest.source != USER_OBJECTS]
    faults = [f"{m.kind} {m.name}: {error}" for m in own for error in _schemas().find_errors(m.document)]
    faults += [f"{m.kind} {m.name}: not a name" for m in own if not _NAME.fullmatch(m.name)]
    faults += [f"{m.kind} {m.name}: label {label}" for m in own for label in _bad_labels(m.document)]
    names = Counter((m.kind, m.name) for m in own)
    return faults + [f"{kind} {name} occurs {times} times" for (kind, name), times in names.items() if times > 1]


def _bad_labels(node: Any) -> Iterator[str]:
    """Yield the labels, anywhere below `node`, that Kubernetes refuses."""
    if isinstance(node, Mapping):
        metadata = node.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
        for key, value in (labels or {}).items():
            good = isinstance(value, str) and re.fullmatch(LABEL_VALUE_PATTERN, value)
            if not good or not re.fullmatch(LABEL_KEY_PATTERN, key):
                yield f"{key}={value!r}"
        for child in node.values():
            yield from _bad_labels(child)
    elif isinstance(node, list):
        for child in node:
            yield from _bad_labels(child)
