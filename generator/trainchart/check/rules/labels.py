"""Rules about labels and selectors."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import EXTRA_MANIFESTS, called, find_pods, mapping_at, selects
from trainchart.check.pod_templates import kubernetes_kind
from trainchart.check.rule import Rule, Scope

_RECOMMENDED = (
    "app.kubernetes.io/name",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "helm.sh/chart",
)
_SELECTING = ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")


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
        every = [pods for pods in find_pods(rendering) if kubernetes_kind(pods.manifest) in _SELECTING]
        for pods in every:
            selector = mapping_at(pods.manifest.document, "spec", "selector")
            if not selects(selector, pods.labels):
                yield Finding(
                    f"{pods.called} does not select its own pods",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    values=label,
                )
            for other in every:
                if other is pods or other.namespace != pods.namespace:
                    continue
                if selector and selects(selector, other.labels):
                    yield Finding(
                        f"{pods.called} also selects the pods of {other.called}",
                        path=pods.manifest.source,
                        line=pods.manifest.line,
                        values=label,
                    )


RULES = (
    Rule(
        "labels",
        "Tools and users find the objects of a release by these labels.",
        check_labels,
        "https://helm.sh/docs/chart_best_practices/labels/#standard-labels",
        others=Severity.info,
        scope=Scope.charts,
    ),
    Rule(
        "selectors-own",
        "The API server refuses a workload whose selector does not match its pods; "
        "two whose selectors overlap may adopt each other's pods.",
        check_selectors,
        "https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#selector",
    ),
)
