"""Rules about labels and selectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import CheckInput, Finding
from trainchart.check.objects import list_at, mapping_at, pod_template
from trainchart.kubernetes_yaml import YamlError, parse_mapping
from trainchart.rendering import Manifest

_VERSION_LABELS = ("helm.sh/chart", "app.kubernetes.io/version")


def check_no_version(given: CheckInput) -> Iterator[Finding]:
    """Find chart and version labels in selectors, pod templates and claim templates.

    Selectors and claim templates are immutable, so such a label makes `helm upgrade` fail; in a pod template
    it restarts a training for nothing.
    """
    chart_label = _chart_label(given)
    for case in given.cases:
        for manifest in case.rendering.manifests if case.rendering else ():
            for where, labels in _stable_maps(manifest):
                for key, value in labels.items():
                    if key in _VERSION_LABELS or (chart_label and chart_label in str(value)):
                        yield Finding(
                            f"{manifest.kind} {manifest.name}: {where} holds {key}: {value}",
                            path=manifest.source,
                            hint="keep the chart's version to metadata.labels of the object itself",
                            values=case.label,
                        )


def _stable_maps(manifest: Manifest) -> Iterator[tuple[str, Mapping[str, Any]]]:
    document = manifest.document
    selector = mapping_at(document, "spec", "selector")
    yield "spec.selector", mapping_at(selector, "matchLabels") or selector
    yield "spec.podSelector", mapping_at(document, "spec", "podSelector", "matchLabels")
    template = pod_template(manifest)
    if template is not None and manifest.kind != "Pod":
        yield "the pod template", mapping_at(template, "metadata", "labels")
        yield "the pod template", mapping_at(template, "metadata", "annotations")
    for claim in list_at(document, "spec", "volumeClaimTemplates"):
        yield "a volumeClaimTemplate", mapping_at(claim, "metadata", "labels")


def _chart_label(given: CheckInput) -> str:
    """Return `name-version`, the value of helm.sh/chart; empty where Chart.yaml cannot be read."""
    try:
        chart = parse_mapping(given.files.get("Chart.yaml", b"").decode())
    except (YamlError, UnicodeDecodeError):
        return ""
    name, version = chart.get("name"), chart.get("version")
    return f"{name}-{version}" if name and version else ""
