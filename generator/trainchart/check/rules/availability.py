"""Rules about drains and storage: budgets that block, claims that too many write, volume types that are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Probe, Severity
from trainchart.check.objects import (
    Pods,
    called,
    find_pods,
    list_at,
    mapping_at,
    mappings_at,
    namespace_of,
    selects,
    whereabouts,
)
from trainchart.check.randomness import is_random_behind_lookup
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_release, for_each_rendering
from trainchart.helm.rendering import Manifest, Rendering
from trainchart_runtime.contract import RESOURCE_POLICY_ANNOTATION

_REMOVED_VOLUMES = {
    "cephfs": "1.31",
    "rbd": "1.31",
    "glusterfs": "1.26",
    "flocker": "1.25",
    "quobyte": "1.25",
    "storageos": "1.25",
    "scaleIO": "1.22",
    "photonPersistentDisk": "1.31",
    "gitRepo": "1.33",
}
_HOSTNAME = "kubernetes.io/hostname"
_SHARED_MODES = {"ReadWriteMany", "ReadOnlyMany"}


def check_budgets(given: CheckInput) -> Iterator[Finding]:
    """Find disruption budgets that never let a pod go, or that protect nothing."""
    for label, rendering in given.renderings():
        every = list(find_pods(rendering))
        for manifest in rendering.manifests:
            if manifest.kind != "PodDisruptionBudget":
                continue
            spec = mapping_at(manifest.document, "spec")
            near = [pods for pods in every if pods.namespace == namespace_of(manifest, rendering)]
            chosen = [pods for pods in near if selects(mapping_at(spec, "selector"), pods.labels)]
            for message, hint in _budget_problems(spec, chosen, rendering, given.is_generated):
                yield Finding(
                    f"{called(manifest)} {message}", path=manifest.source, line=manifest.line, hint=hint, values=label
                )


@for_each_release
def check_access_modes(rendering: Rendering) -> Iterator[Finding]:
    """Find claims of one node or one pod that several pods of the release mount."""
    claims = {
        (namespace_of(manifest, rendering), manifest.name): manifest
        for manifest in rendering.manifests
        if manifest.kind == "PersistentVolumeClaim"
    }
    mounted: dict[tuple[str, str], list[Pods]] = {}
    for pods in find_pods(rendering):
        for volume in mappings_at(pods.spec, "volumes"):
            name = (pods.namespace, str(mapping_at(volume, "persistentVolumeClaim").get("claimName")))
            if name in claims:
                mounted.setdefault(name, []).append(pods)
    for name, users in mounted.items():
        modes = set(map(str, list_at(claims[name].document, "spec", "accessModes")))
        number = sum(1 if pods.replicas is None else pods.replicas for pods in users)
        nodes = {str(mapping_at(pods.spec, "nodeSelector").get(_HOSTNAME) or "") for pods in users}
        is_together = "ReadWriteOnce" in modes and len(nodes) == 1 and "" not in nodes
        if number > 1 and not modes & _SHARED_MODES and not is_together:
            mode = ", ".join(sorted(modes)) or "without access mode"
            yield Finding(
                f"{called(claims[name])} is {mode}, but {number} pods mount it",
                path=claims[name].source,
                line=claims[name].line,
                hint="ReadWriteMany, where several pods share a claim",
            )


@for_each_rendering
def check_volume_types(rendering: Rendering) -> Iterator[Finding]:
    """Find volume types that Kubernetes no longer has."""
    for pods in find_pods(rendering):
        for volume in mappings_at(pods.spec, "volumes"):
            for kind in volume.keys() & _REMOVED_VOLUMES.keys():
                yield Finding(
                    f"{pods.called}: volume {volume.get('name')} is of the type {kind}, removed in Kubernetes "
                    f"{_REMOVED_VOLUMES[kind]}",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    hint="a claim with a storage class of the CSI driver",
                )


@for_each_rendering
def check_resource_policy(rendering: Rendering) -> Iterator[Finding]:
    """Find values of helm.sh/resource-policy that Helm does not know."""
    for manifest in rendering.manifests:
        policy = mapping_at(manifest.document, "metadata", "annotations").get(RESOURCE_POLICY_ANNOTATION)
        if policy not in (None, "keep"):
            yield Finding(
                f"{called(manifest)}: helm.sh/resource-policy is {policy!r}, but Helm only knows keep",
                path=manifest.source,
                line=manifest.line,
            )


def _budget_problems(
    spec: Mapping[str, Any], chosen: list[Pods], rendering: Rendering, is_ours: bool
) -> Iterator[tuple[str, str]]:
    if not chosen:
        yield f"selects no pods {whereabouts(rendering)}", ""
        return
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    number = None if any(pods.replicas is None for pods in chosen) else sum(pods.replicas or 0 for pods in chosen)
    if str(most) in ("0", "0%"):
        yield f"has maxUnavailable {most}, so no node with its pods can be drained", "maxUnavailable: 1"
    elif str(least) == "100%" or (isinstance(least, int) and number is not None and 0 < number <= least):
        yield f"has minAvailable {least} of {number} pods, so no node with them can be drained", "maxUnavailable: 1"
    if is_ours and spec.get("unhealthyPodEvictionPolicy") != "AlwaysAllow":
        yield "protects pods that are not running anyway", "unhealthyPodEvictionPolicy: AlwaysAllow"


def check_immutable_names(given: CheckInput) -> Iterator[Finding]:
    """Find immutable ConfigMaps and Secrets whose content changes while their name stays."""
    seen: dict[tuple[str, ...], Any] = {}
    renderings = [*given.renderings(), *((str(probe), found) for probe, found in given.probes.items())]
    random = _find_random(dict(given.renderings()).get(""), given.probes.get(Probe.again))
    for label, rendering in renderings:
        for key, manifest in _immutable(rendering):
            if seen.setdefault(key, _content(manifest)) == _content(manifest):
                continue
            # What lookup would keep on a cluster differs here each time, and says nothing about upgrades.
            if (manifest.source, manifest.kind) not in random or not is_random_behind_lookup(given, manifest):
                yield Finding(
                    f"{called(manifest)} is immutable, but different values change its content under the same name",
                    path=manifest.source,
                    line=manifest.line,
                    hint="put a hash of the content into the name",
                    values=label,
                )


def _find_random(before: Rendering | None, again: Rendering | None) -> set[tuple[str, str]]:
    """Return template and kind of immutable objects whose content differs when the same chart is rendered once more."""
    if before is None or again is None:
        return set()
    known = {key: _content(manifest) for key, manifest in _immutable(before)}
    changed = (manifest for key, manifest in _immutable(again) if known.get(key) != _content(manifest))
    return {(manifest.source, manifest.kind) for manifest in changed}


def _immutable(rendering: Rendering) -> Iterator[tuple[tuple[str, ...], Manifest]]:
    for manifest in rendering.manifests:
        if manifest.document.get("immutable") is True:
            yield (rendering.release, manifest.kind, manifest.name), manifest


def _content(manifest: Manifest) -> tuple[Any, ...]:
    return tuple(manifest.document.get(key) for key in ("data", "binaryData", "stringData"))


RULES = (
    Rule(
        "budget-blocks",
        "A budget that never allows an eviction blocks every node upgrade until it is deleted.",
        check_budgets,
        "https://kubernetes.io/docs/tasks/run-application/configure-pdb/",
        others=Severity.warning,
    ),
    Rule(
        "access-modes",
        "A ReadWriteOnce claim serves the pods of one node; all others stay in ContainerCreating.",
        check_access_modes,
        "https://kubernetes.io/docs/concepts/storage/persistent-volumes/#access-modes",
        others=Severity.warning,
    ),
    Rule(
        "volume-types",
        "Kubernetes has removed many volume types; a pod that uses one of them never starts.",
        check_volume_types,
        "https://kubernetes.io/docs/concepts/storage/volumes/",
    ),
    Rule(
        "resource-policy",
        "Only the word keep protects a claim from helm uninstall.",
        check_resource_policy,
        "https://helm.sh/docs/howto/charts_tips_and_tricks/#tell-helm-not-to-uninstall-a-resource",
    ),
    Rule(
        "immutable-names",
        "helm upgrade fails when an immutable object changes.",
        check_immutable_names,
        "https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable",
    ),
)
