"""Rules about labels and selectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import EXTRA_MANIFESTS, called, find_pods, list_at, mapping_at, pod_template, selects
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import chart_file
from trainchart.rendering import Manifest

_VERSION_LABELS = ("helm.sh/chart", "app.kubernetes.io/version")
_RECOMMENDED = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
)
_SELECTING = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
_POD_TEMPLATE = "the pod template"


def check_no_version(given: CheckInput) -> Iterator[Finding]:
    """Find chart and version labels in selectors, pod templates and claim templates.

    Selectors and claim templates are immutable, so such a label makes `helm upgrade` fail; in a pod template
    it restarts a training for nothing.
    """
    chart_label = _chart_label(given)
    for label, rendering in given.renderings():
        for manifest in rendering.manifests:
            for where, labels in _stable_maps(manifest):
                for key, value in labels.items():
                    if key in _VERSION_LABELS or (chart_label and chart_label in str(value)):
                        # A pod template may change; it only restarts pods that trainings want to keep.
                        mild = where == _POD_TEMPLATE and not given.is_generated
                        yield Finding(
                            f"{called(manifest)}: {where} holds {key}: {value}",
                            path=manifest.source,
                            line=manifest.line,
                            severity=Severity.info if mild else Severity.error,
                            hint="keep the chart's version to metadata.labels of the object itself",
                            values=label,
                        )


def check_labels(given: CheckInput) -> Iterator[Finding]:
    """Check that every object has the labels that Helm recommends; ours name their component too."""
    for label, rendering in given.renderings():
        for manifest in rendering.manifests:
            # What a user's values add is the user's.
            if manifest.source == EXTRA_MANIFESTS:
                continue
            labels = mapping_at(manifest.document, "metadata", "labels")
            wanted = (*_RECOMMENDED, "app.kubernetes.io/component") if given.is_generated else _RECOMMENDED
            missing = [key for key in wanted if not labels.get(key)]
            if missing:
                yield Finding(
                    f"{called(manifest)} lacks the label {', '.join(missing)}",
                    path=manifest.source,
                    line=manifest.line,
                    values=label,
                )


def check_selectors(given: CheckInput) -> Iterator[Finding]:
    """Check that each workload selects its own pods, and no two the same."""
    for label, rendering in given.renderings():
        every = [pods for pods in find_pods(rendering) if pods.manifest.kind in _SELECTING]
        for pods in every:
            selector = mapping_at(pods.manifest.document, "spec", "selector")
            if not selects(selector, pods.labels):
                yield Finding(
                    f"{called(pods.manifest)} does not select its own pods",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    values=label,
                )
            for other in every:
                if other is pods or other.namespace != pods.namespace:
                    continue
                if selector and selects(selector, other.labels):
                    yield Finding(
                        f"{called(pods.manifest)} also selects the pods of {called(other.manifest)}",
                        path=pods.manifest.source,
                        line=pods.manifest.line,
                        values=label,
                    )


def _stable_maps(manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    document = manifest.document
    selector = mapping_at(document, "spec", "selector")
    yield "spec.selector", mapping_at(selector, "matchLabels") or selector
    yield "spec.podSelector", mapping_at(document, "spec", "podSelector", "matchLabels")
    template = pod_template(manifest)
    if template is not None and manifest.kind != "Pod":
        yield _POD_TEMPLATE, mapping_at(template, "metadata", "labels")
        yield _POD_TEMPLATE, mapping_at(template, "metadata", "annotations")
    for claim in list_at(document, "spec", "volumeClaimTemplates"):
        yield "a volumeClaimTemplate", mapping_at(claim, "metadata", "labels")


def _chart_label(given: CheckInput) -> str:
    """Return `name-version`, the value of helm.sh/chart; empty where Chart.yaml cannot be read."""
    chart = chart_file(given)
    name, version = chart.get("name"), chart.get("version")
    return f"{name}-{version}" if name and version else ""


RULES = (
    Rule(
        "stable-selectors",
        "A chart version in an immutable field breaks every upgrade.",
        check_no_version,
        "https://helm.sh/docs/chart_best_practices/labels/",
        scope=Scope.charts,
    ),
    Rule(
        "labels",
        "Tools and people find the objects of a release by these labels.",
        check_labels,
        "https://helm.sh/docs/chart_best_practices/labels/#standard-labels",
        others=Severity.info,
        scope=Scope.charts,
    ),
    Rule(
        "selectors-own",
        "The API server refuses a workload that misses its pods; two that share some delete each other's.",
        check_selectors,
        "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#selector",
    ),
)
