"""Rules about the names of objects: they fit at the longest release name, and releases keep apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.formats import DNS_LABEL_LIMIT
from trainchart.check.made_names import find_made_names
from trainchart.check.objects import EXTRA_MANIFESTS, mapping_at, namespace_of, wanted_replicas
from trainchart.check.pod_templates import kubernetes_kind, pod_templates
from trainchart.check.rule import Rule, Scope
from trainchart.check.rules.cases import for_each_release
from trainchart.helm.rendering import Manifest, Rendering

_MOST_HOSTS = 5000
"""Pods that are looked at of one object: as many as a large cluster has nodes."""


@for_each_release
def check_names_fit(rendering: Rendering) -> Iterator[Finding]:
    """Check lengths of names, those made of them and label values, and that no two pods share a host name."""
    hosts: dict[tuple[str, str], str] = {}
    for manifest in rendering.manifests:
        yield from _names_too_long(manifest)
        for host in _hosts(manifest):
            if len(host) > DNS_LABEL_LIMIT:
                yield _too_long(manifest, f"the pod host name {host}", len(host), DNS_LABEL_LIMIT)
            place = (namespace_of(manifest, rendering), host)
            if place in hosts:
                yield Finding(
                    f"the pod host name {host} is also one of {hosts[place]}", path=manifest.source, line=manifest.line
                )
            hosts[place] = f"{manifest.kind} {manifest.name}"


def check_releases_apart(given: CheckInput) -> Iterator[Finding]:
    """Check that releases with different names have no object in common.

    Only with the chart's own values: names that come from a values file are the author's of that file.
    """
    by_release: dict[str, dict[tuple[str, str, str], Manifest]] = {}
    for case in given.cases:
        if case.rendering is not None and not case.values:
            objects = by_release.setdefault(case.rendering.release, {})
            objects.update(
                {
                    (found.kind, found.name, namespace_of(found, case.rendering)): found
                    for found in case.rendering.manifests
                    if found.name
                }
            )
    reported: set[tuple[str, str, str]] = set()
    for (one, first), (other, second) in combinations(by_release.items(), 2):
        for key in sorted((first.keys() & second.keys()) - reported):
            kind, name, _ = key
            if kind == "CustomResourceDefinition" or first[key].source == EXTRA_MANIFESTS:
                continue
            reported.add(key)
            yield Finding(
                f"{kind} {name} belongs to release {one} and to release {other}",
                path=first[key].source,
                line=first[key].line,
                hint="put the release name into the name, and add a hash if it is truncated",
            )


def _names_too_long(manifest: Manifest) -> Iterator[Finding]:
    for made in find_made_names(manifest):
        if len(made.name) > made.limit:
            what = f"the {made.owner} name {made.name}" if made.owner else f"the name {made.name}"
            yield _too_long(manifest, what, len(made.name), made.limit)
    for key, value in _labels(manifest):
        if len(value) > DNS_LABEL_LIMIT:
            yield _too_long(manifest, f"the value of label {key}", len(value), DNS_LABEL_LIMIT)


def _hosts(manifest: Manifest) -> Iterator[str]:
    if kubernetes_kind(manifest) == "StatefulSet":
        start = mapping_at(manifest.document, "spec", "ordinals").get("start", 0)
        start = start if isinstance(start, int) else 0
        for ordinal in range(min(wanted_replicas(manifest) or 0, _MOST_HOSTS)):
            yield f"{manifest.name}-{start + ordinal}"
    elif kubernetes_kind(manifest) == "Pod":
        yield manifest.name


def _labels(manifest: Manifest) -> Iterator[tuple[str, str]]:
    sources: list[Mapping[str, Any]] = [mapping_at(manifest.document, "metadata", "labels")]
    sources += (
        mapping_at(template.content, "metadata", "labels") for template in pod_templates(manifest) if template.where
    )
    for labels in sources:
        yield from ((str(key), str(value)) for key, value in labels.items())


def _too_long(manifest: Manifest, what: str, length: int, limit: int) -> Finding:
    return Finding(
        f"{manifest.kind} {manifest.name}: {what} has {length} characters, but the limit is {limit}",
        path=manifest.source,
        line=manifest.line,
        hint="truncate the release and chart part, and end it with a hash",
    )


RULES = (
    Rule(
        "names-fit",
        "A StatefulSet whose name is longer than 52 characters never starts a pod.",
        check_names_fit,
        "https://github.com/kubernetes/kubernetes/issues/64023",
        others=Severity.warning,
    ),
    Rule(
        "releases-apart",
        "Two releases in one namespace must not share objects.",
        check_releases_apart,
        "https://helm.sh/docs/chart_best_practices/templates/",
        others=Severity.warning,
        scope=Scope.charts,
    ),
)
