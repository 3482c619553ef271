"""The rule that an upgrade goes through: nothing that Kubernetes never changes depends on the chart's version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Probe, Severity
from trainchart.check.immutable import find_differences, immutable_fields
from trainchart.check.objects import called, is_hook, list_at, mapping_at, namespace_of
from trainchart.check.pod_templates import kubernetes_kind, pod_templates
from trainchart.check.randomness import is_random_behind_lookup
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import chart_file
from trainchart.helm.rendering import Manifest, Rendering
from trainchart_runtime.contract import CHART_LABEL, VERSION_LABEL

_VERSION_LABELS = (CHART_LABEL, VERSION_LABEL)
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
    before, after = dict(given.renderings()).get(""), given.probes.get(Probe.next_version)
    versions = _versions(given, after)
    for label, rendering in given.renderings():
        for manifest in rendering.manifests:
            for where, labels in versions.labels(manifest, rendering, is_default=rendering is before):
                # A pod template may change; it only restarts pods that trainings want to keep.
                mild = where == _POD_TEMPLATE and (kubernetes_kind(manifest) != "Job" or is_hook(manifest))
                for key, value in labels.items():
                    yield Finding(
                        f"{called(manifest)}: {where} holds {key}: {value}",
                        path=manifest.source,
                        line=manifest.line,
                        severity=Severity.info if mild and not given.is_generated else Severity.error,
                        hint="use the chart's version only in metadata.labels of the object itself",
                        values=label,
                    )
    if before is not None:
        yield from _find_changes(given, before, versions)


@dataclass(frozen=True)
class _Versions:
    """How labels tell the chart's version, and the objects of its next version."""

    chart_label: str = ""
    """`name-version`, the usual value of helm.sh/chart; empty where Chart.yaml cannot be read."""
    texts: tuple[str, ...] = ()
    upgraded: Mapping[tuple[str, ...], Manifest] = field(default_factory=dict)

    def labels(
        self, manifest: Manifest, rendering: Rendering, *, is_default: bool
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield, for every place whose labels should stay, those that the next version changes.

        `is_default` says that `rendering` has the values of the next version's: then nothing else can differ.
        """
        other = self.upgraded.get(_identity(manifest, rendering))
        later = [labels for _, labels in _stable_maps(other)] if other else []
        for number, (where, labels) in enumerate(_stable_maps(manifest)):
            new = later[number] if number < len(later) else None
            yield where, {key: value for key, value in labels.items() if self._changes(key, value, new, is_default)}

    def _changes(self, key: str, value: object, new: Mapping[str, Any] | None, is_default: bool) -> bool:
        if new is not None and new.get(key, value) == value:
            return False
        is_usual = key in _VERSION_LABELS
        return (
            (bool(self.chart_label) and self.chart_label in str(value))
            or (is_usual and is_default and new is not None)
            or (is_usual and any(text in str(value) for text in self.texts))
        )


def _versions(given: CheckInput, after: Rendering | None) -> _Versions:
    chart = chart_file(given)
    name, version = chart.get("name"), str(chart.get("version") or "")
    texts = tuple(dict.fromkeys(filter(None, (version, str(chart.get("appVersion") or "")))))
    return _Versions(f"{name}-{version}" if name and version else "", texts, _by_identity(after))


def _find_changes(given: CheckInput, before: Rendering, versions: _Versions) -> Iterator[Finding]:
    again = _by_identity(given.probes.get(Probe.again))
    for manifest in before.manifests:
        other = versions.upgraded.get(_identity(manifest, before))
        # A hook is a new object every time.
        if other is None or is_hook(manifest):
            continue
        reported = {where for where, labels in versions.labels(manifest, before, is_default=True) if labels}
        old, new = immutable_fields(manifest), immutable_fields(other)
        # What lookup keeps on a cluster is new here every time.
        same = again.get(_identity(manifest, before)) if is_random_behind_lookup(given, manifest) else None
        random = immutable_fields(same) if same else old
        for path in sorted({*old, *new}):
            field = ".".join(path)
            if _FIELDS.get(field, field) in reported or random.get(path) != old.get(path):
                continue
            for where, was, becomes in find_differences(field, old.get(path), new.get(path)):
                yield Finding(
                    f"{called(manifest)}: {where} is immutable, but an upgrade changes {was!r} to {becomes!r}",
                    path=manifest.source,
                    line=manifest.line,
                    hint="keep versions and revisions out of it, or put them into the object's name",
                )


def _by_identity(rendering: Rendering | None) -> dict[tuple[str, ...], Manifest]:
    return {_identity(manifest, rendering): manifest for manifest in rendering.manifests} if rendering else {}


def _identity(manifest: Manifest, rendering: Rendering) -> tuple[str, ...]:
    return manifest.source, manifest.kind, namespace_of(manifest, rendering), manifest.name


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


RULES = (
    Rule(
        "stable-selectors",
        "A chart version in an immutable field breaks every upgrade.",
        check_stable,
        "https://helm.sh/docs/chart_best_practices/labels/",
        scope=Scope.charts,
    ),
)
