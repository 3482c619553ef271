"""The rule about APIs that Kubernetes dropped or is about to drop."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import called, find_pods, mapping_at
from trainchart.check.rule import Rule
from trainchart.helm.rendering import Manifest

_DEPRECATED = {
    ("v1", "Endpoints"): ("1.33", "EndpointSlice in discovery.k8s.io/v1"),
    ("v1", "ComponentStatus"): ("1.19", "the health endpoints of the components"),
    ("networking.k8s.io/v1beta1", "IPAddress"): ("1.33", "networking.k8s.io/v1"),
    ("networking.k8s.io/v1beta1", "ServiceCIDR"): ("1.33", "networking.k8s.io/v1"),
    ("resource.k8s.io/v1beta1", "ResourceClaim"): ("1.34", "resource.k8s.io/v1"),
    ("resource.k8s.io/v1beta1", "ResourceClaimTemplate"): ("1.34", "resource.k8s.io/v1"),
    ("resource.k8s.io/v1beta1", "DeviceClass"): ("1.34", "resource.k8s.io/v1"),
    ("storage.k8s.io/v1beta1", "VolumeAttributesClass"): ("1.34", "storage.k8s.io/v1"),
}
_OLD_ANNOTATIONS = {
    "kubernetes.io/ingress.class": "spec.ingressClassName",
    "volume.beta.kubernetes.io/storage-class": "spec.storageClassName",
    "scheduler.alpha.kubernetes.io/critical-pod": "priorityClassName",
    "seccomp.security.alpha.kubernetes.io/pod": "securityContext.seccompProfile",
    "container.apparmor.security.beta.kubernetes.io": "securityContext.appArmorProfile",
}
_OLD_NODE_LABELS = ("beta.kubernetes.io/", "failure-domain.beta.kubernetes.io/")


def check_api_versions(given: CheckInput) -> Iterator[Finding]:
    """Find kinds that one of the Kubernetes versions lacks, and what is deprecated."""
    for label, rendering in given.renderings():
        for manifest in rendering.manifests:
            api, kind = str(manifest.document.get("apiVersion", "")), manifest.kind
            lacking = [schemas.version for schemas in given.kinds if schemas.lacks(api, kind)]
            # What the schemas of a version refuse is told by the rule about schemas.
            compared = {schemas.version for schemas in given.kubernetes}
            if lacking and not compared & set(lacking):
                yield Finding(
                    f"{called(manifest)}: there is no {kind} in {api} in Kubernetes {', '.join(lacking)}",
                    path=manifest.source,
                    line=manifest.line,
                    values=label,
                )
            for message, hint in _deprecations(manifest):
                yield Finding(
                    f"{called(manifest)}: {message}",
                    path=manifest.source,
                    line=manifest.line,
                    severity=Severity.warning,
                    hint=hint,
                    values=label,
                )
        for pods in find_pods(rendering):
            old = [key for key in map(str, mapping_at(pods.spec, "nodeSelector")) if key.startswith(_OLD_NODE_LABELS)]
            if old:
                yield Finding(
                    f"{pods.called}: nodes no longer have the label {', '.join(old)}",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    severity=Severity.warning,
                    values=label,
                )


def _deprecations(manifest: Manifest) -> Iterator[tuple[str, str]]:
    found = _DEPRECATED.get((str(manifest.document.get("apiVersion", "")), manifest.kind))
    if found:
        yield (
            f"{manifest.document['apiVersion']} {manifest.kind} has been deprecated since Kubernetes {found[0]}",
            found[1],
        )
    for key in mapping_at(manifest.document, "metadata", "annotations"):
        instead = _OLD_ANNOTATIONS.get(key) or _OLD_ANNOTATIONS.get(str(key).partition("/")[0])
        if instead:
            yield f"the annotation {key} is deprecated", instead


RULES = (
    Rule(
        "api-versions",
        "A chart must survive the next upgrade of the cluster.",
        check_api_versions,
        "https://kubernetes.io/docs/reference/using-api/deprecation-guide/",
    ),
)
