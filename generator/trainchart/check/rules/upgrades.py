"""The rule that an upgrade goes through: nothing that Kubernetes never changes depends on the chart's version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Probe, Severity
from trainchart.check.immutable import find_differences, immutable_fields
from trainchart.check.objects import called, is_hook, list_at, mapping_at, namespace_of
from trainchart.check.pod_templates import kubernetes_kind, pod_templates
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import chart_file
from trainchart.rendering import Manifest, Rendering

_VERSION_LABELS = ("helm.sh/chart", "app.kubernetes.io/version")
_SELECTOR = "spec.selector"
_POD_TEMPLATE = "the pod template"
_CLAIM_TEMPLATE = "a volumeClaimTemplate"
_FIELDS = {"spec.template": _POD_TEMPLATE, "spec.volumeClaimTemplates": _CLAIM_TEMPLATE}
"""What findings call immutable fields that hold labels; others by their path."""


def check_stable(given: CheckInput) -> Iterator[Finding]:
    """Find versions in selectors, pod templates and claim templates, and immutable fields that an upgrade changes.

    Selectors, claim templates and the templates of Jobs are immutable, so such a label makes `helm upgrade`
    fail; in another pod template it restarts a training for nothing.
    """
    chart_label = _chart_label(given)
    for label, rendering in given.renderings():
        for manifest in rendering.manifests:
            for where, labels in _version_labels(manifest, chart_label):
                # A pod template may change; it only restarts pods that trainings want to keep.
                mild = where == _POD_TEMPLATE and (kubernetes_kind(manifest) != "Job" or is_hook(manifest))
                for key, value in labels.items():
                    yield Finding(
                        f"{called(manifest)}: {where} holds {key}: {value}",
                        path=manifest.source,
                        line=manifest.line,
                        severity=Severity.info if mild and not given.is_generated else Severity.error,
                        hint="keep the chart's version to metadata.labels of the object itself",
                        values=label,
                    )
    before, after = dict(given.renderings()).get(""), given.probes.get(Probe.next_version)
    if before is not None and after is not None:
        yield from _find_changes(before, after, chart_label)


def _find_changes(before: Rendering, after: Rendering, chart_label: str) -> Iterator[Finding]:
    upgraded = {_identity(manifest, after): manifest for manifest in after.manifests}
    for manifest in before.manifests:
        other = upgraded.get(_identity(manifest, before))
        # A hook is a new object every time.
        if other is None or is_hook(manifest):
            continue
        told = {where for where, labels in _version_labels(manifest, chart_label) if labels}
        old, new = immutable_fields(manifest), immutable_fields(other)
        for path in sorted({*old, *new}):
            field = ".".join(path)
            if _FIELDS.get(field, field) in told:
                continue
            for where, was, becomes in find_differences(field, old.get(path), new.get(path)):
                yield Finding(
                    f"{called(manifest)}: {where} is immutable, but an upgrade changes {was!r} to {becomes!r}",
                    path=manifest.source,
                    line=manifest.line,
                    hint="keep versions and revisions out of it, or put them into the object's name",
                )


def _identity(manifest: Manifest, rendering: Rendering) -> tuple[str, ...]:
    return manifest.source, manifest.kind, namespace_of(manifest, rendering), manifest.name


def _version_labels(manifest: Manifest, chart_label: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield, for every place whose labels should stay, those that hold the chart's version."""
    for where, labels in _stable_maps(manifest):
        yield (
            where,
            {
                key: value
                for key, value in labels.items()
                if key in _VERSION_LABELS or (chart_label and chart_label in str(value))
            },
        )


def _stable_maps(manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    document = manifest.document
    selector = mapping_at(document, "spec", "selector")
    yield _SELECTOR, mapping_at(selector, "matchLabels") or selector
    yield "spec.podSelector", mapping_at(document, "spec", "podSelector", "matchLabels")
    for template in pod_templates(manifest):
        if template.where:
            yield _POD_TEMPLATE, mapping_at(template.content, "metadata", "labels")
            yield _POD_TEMPLATE, mapping_at(template.content, "metadata", "annotations")
    for claim in list_at(document, "spec", "volumeClaimTemplates"):
        yield _CLAIM_TEMPLATE, mapping_at(claim, "metadata", "labels")


def _chart_label(given: CheckInput) -> str:
    """Return `name-version`, the value of helm.sh/chart; empty where Chart.yaml cannot be read."""
    chart = chart_file(given)
    name, version = chart.get("name"), chart.get("version")
    return f"{name}-{version}" if name and version else ""


RULES = (
    Rule(
        "stable-selectors",
        "A chart version in an immutable field breaks every upgrade.",
        check_stable,
        "https://helm.sh/docs/chart_best_practices/labels/",
        scope=Scope.charts,
    ),
)
