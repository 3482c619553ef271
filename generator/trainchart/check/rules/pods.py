"""Rules about what pods are made of: tokens, images, volumes, references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import Finding, Severity
from trainchart.check.objects import Pods, find_pods, list_at, mapping_at, mappings_at, namespace_of
from trainchart.check.rule import Rule, Scope
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Rendering

_DIGEST = re.compile(r"@[a-z0-9]+:[a-f0-9]{32,}$")


@for_each_rendering
def check_tokens(rendering: Rendering) -> Iterator[Finding]:
    """Find pods that get an API token, though nothing in the release grants their account a right."""
    granted = {
        (str(subject.get("namespace") or namespace_of(manifest, rendering)), str(subject.get("name")))
        for manifest in rendering.manifests
        if manifest.kind in ("RoleBinding", "ClusterRoleBinding")
        for subject in mappings_at(manifest.document, "subjects")
    }
    closed = {
        (namespace_of(manifest, rendering), manifest.name)
        for manifest in rendering.manifests
        if manifest.kind == "ServiceAccount" and manifest.document.get("automountServiceAccountToken") is False
    }
    for pods in find_pods(rendering):
        account = (pods.namespace, str(pods.spec.get("serviceAccountName") or "default"))
        wanted = pods.spec.get("automountServiceAccountToken")
        gets_token = wanted is True or (wanted is None and account not in closed)
        if gets_token and account not in granted:
            yield Finding(
                f"{pods.called}: pods get a Kubernetes API token, which they do not need: it has no rights",
                path=pods.manifest.source,
                line=pods.manifest.line,
                hint="automountServiceAccountToken: false",
            )


@for_each_rendering
def check_images(rendering: Rendering) -> Iterator[Finding]:
    """Find images without a fixed tag or digest, and containers without a pull policy."""
    for pods in find_pods(rendering):
        for container in pods.containers:
            image = str(container.document.get("image") or "")
            where = f"{pods.called}: {container.where}"
            tag = image.rpartition("/")[2].partition(":")[2]
            if not image:
                yield Finding(f"{where} has no image", path=pods.manifest.source, line=pods.manifest.line)
            elif not _DIGEST.search(image) and tag in ("", "latest"):
                yield Finding(
                    f"{where} has the image {image}, which can change at any time",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    severity=Severity.error,
                    hint="a fixed tag, or a digest",
                )
            if not container.document.get("imagePullPolicy"):
                yield Finding(
                    f"{where} has no imagePullPolicy",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    severity=Severity.info,
                )


@for_each_rendering
def check_volume_mounts(rendering: Rendering) -> Iterator[Finding]:
    """Find mounts of volumes that the pod does not have."""
    for pods in find_pods(rendering):
        own = {str(volume.get("name")) for volume in mappings_at(pods.spec, "volumes")}
        own |= {
            str(mapping_at(claim, "metadata").get("name"))
            for claim in list_at(pods.manifest.document, "spec", "volumeClaimTemplates")
        }
        for container in pods.containers:
            for mount in mappings_at(container.document, "volumeMounts"):
                if str(mount.get("name")) not in own:
                    yield Finding(
                        f"{pods.called}: {container.where} mounts {mount.get('name')!r}, which is not a pod volume",
                        path=pods.manifest.source,
                        line=pods.manifest.line,
                    )


@for_each_rendering
def check_references(rendering: Rendering) -> Iterator[Finding]:
    """Find ConfigMaps, Secrets and claims that bear the release's name but are not rendered."""
    rendered = {(manifest.kind, manifest.name) for manifest in rendering.manifests}
    if not rendering.release:
        return
    for pods in find_pods(rendering):
        for kind, name in sorted(set(_references(pods))):
            if name.startswith(f"{rendering.release}-") and (kind, name) not in rendered:
                yield Finding(
                    f"{pods.called} needs {kind} {name}, which the chart does not render",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                )


def _references(pods: Pods) -> Iterator[tuple[str, str]]:
    for volume in mappings_at(pods.spec, "volumes"):
        sources: list[Mapping[str, Any]] = [volume, *mappings_at(volume, "projected", "sources")]
        for source in sources:
            yield from _named(source, "configMap", "name", "ConfigMap")
            yield from _named(source, "secret", "secretName", "Secret")
            yield from _named(source, "secret", "name", "Secret")
        yield from _named(volume, "persistentVolumeClaim", "claimName", "PersistentVolumeClaim")
    for container in pods.containers:
        for entry in mappings_at(container.document, "envFrom"):
            yield from _named(entry, "configMapRef", "name", "ConfigMap")
            yield from _named(entry, "secretRef", "name", "Secret")
        for variable in mappings_at(container.document, "env"):
            yield from _named(mapping_at(variable, "valueFrom"), "configMapKeyRef", "name", "ConfigMap")
            yield from _named(mapping_at(variable, "valueFrom"), "secretKeyRef", "name", "Secret")


def _named(source: Mapping[str, Any], field: str, key: str, kind: str) -> Iterator[tuple[str, str]]:
    found = mapping_at(source, field)
    if found.get(key) and not found.get("optional"):
        yield kind, str(found[key])


RULES = (
    Rule(
        "token-unused",
        "A token that the pod does not need opens the API to an attacker who takes over the pod.",
        check_tokens,
        "https://kubernetes.io/docs/concepts/security/service-accounts/#opt-out-of-api-credential-automounting",
        others=Severity.info,
    ),
    Rule(
        "images-pinned",
        "With a moving tag, two pods of one training run can run different programs.",
        check_images,
        "https://helm.sh/docs/chart_best_practices/pods/#images",
        others=Severity.warning,
    ),
    Rule(
        "mounts-exist",
        "The API server refuses a mount without its volume.",
        check_volume_mounts,
        "https://kubernetes.io/docs/concepts/storage/volumes/",
    ),
    Rule(
        "references-exist",
        "A pod waits forever for a ConfigMap, Secret or claim that is never created.",
        check_references,
        "https://kubernetes.io/docs/concepts/configuration/configmap/#using-configmaps-as-files-from-a-pod",
        others=Severity.info,
        scope=Scope.charts,
    ),
)
