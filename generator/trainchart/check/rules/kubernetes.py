"""Rules about rendered objects that hold for every chart: schemas, uniqueness, no namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.kubernetes_schemas import OBJECT_META, POD_TEMPLATE, KubernetesSchemas
from trainchart.check.objects import (
    Pods,
    called,
    list_at,
    made_namespaces,
    mapping_at,
    mappings_at,
    namespace_of,
    pods_of,
)
from trainchart.check.pod_templates import group_of, kubernetes_kind, pod_templates
from trainchart.check.rule import Rule, Scope
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Manifest, Rendering


def check_schemas(given: CheckInput) -> Iterator[Finding]:
    """Check every object against the strict schemas of every Kubernetes version asked for."""
    for label, rendering in given.renderings():
        for manifest in rendering.manifests:
            versions: dict[str, list[str]] = {}
            for schemas in given.kubernetes:
                for error in _schema_errors(manifest, schemas):
                    versions.setdefault(error, []).append(schemas.version)
            hint = _replacement(manifest, given.kubernetes)
            for error, refusing in versions.items():
                yield Finding(
                    f"{called(manifest)}: {error} (Kubernetes {', '.join(refusing)})",
                    path=manifest.source,
                    line=manifest.line,
                    hint=hint,
                    values=label,
                )


@for_each_rendering
def check_unique_objects(rendering: Rendering) -> Iterator[Finding]:
    """Find objects of one kind and API group that share a name."""
    seen: set[Hashable] = set()
    for manifest in rendering.manifests:
        key = (group_of(manifest), manifest.kind, manifest.name, namespace_of(manifest, rendering))
        if key in seen:
            yield Finding(f"{called(manifest)} is rendered twice", path=manifest.source, line=manifest.line)
        seen.add(key)


@for_each_rendering
def check_no_namespace(rendering: Rendering) -> Iterator[Finding]:
    """Find objects that fix their namespace, but for those in a namespace that the chart makes."""
    made = made_namespaces(rendering)
    for manifest in rendering.manifests:
        if "namespace" in mapping_at(manifest.document, "metadata") and namespace_of(manifest, rendering) not in made:
            yield Finding(
                f"{called(manifest)} sets metadata.namespace",
                path=manifest.source,
                line=manifest.line,
                hint="leave it out: helm install --namespace sets it",
            )


@for_each_rendering
def check_unique_entries(rendering: Rendering) -> Iterator[Finding]:
    """Find lists in which Kubernetes identifies entries by a field, and two entries have the same."""
    for manifest in rendering.manifests:
        for where, what, entries in _keyed_lists(manifest):
            for repeated in _repeated(entries):
                yield Finding(
                    f"{called(manifest)}: {where} has {what} {repeated} twice", path=manifest.source, line=manifest.line
                )


def _schema_errors(manifest: Manifest, schemas: KubernetesSchemas) -> Iterator[str]:
    """Yield what a version refuses; of a kind that it does not define, in the parts that every version knows."""
    yield from schemas.find_errors(manifest.document)
    if not schemas.has_group(group_of(manifest)):
        yield from schemas.find_part_errors(OBJECT_META, manifest.document.get("metadata"), "metadata")
        for template in pod_templates(manifest):
            if template.is_strict:
                yield from schemas.find_part_errors(POD_TEMPLATE, template.content, template.where)


def _replacement(manifest: Manifest, kubernetes: Iterable[KubernetesSchemas]) -> str:
    """Return the APIs that have the kind in the newest version, where the manifest's own no longer has it."""
    api_version = str(manifest.document.get("apiVersion", ""))
    lacking = [schemas for schemas in kubernetes if schemas.lacks(api_version, manifest.kind)]
    found = lacking[-1].find_api_versions(manifest.kind) if lacking else ()
    return f"apiVersion: {' or '.join(found)}" if found else ""


def _keyed_lists(manifest: Manifest) -> Iterator[tuple[str, str, Iterable[Any]]]:
    for pods in pods_of(manifest):
        place = f"{pods.where}: " if pods.where else ""
        for where, what, entries in _keyed_lists_of_pods(pods):
            yield f"{place}{where}", what, entries
    if kubernetes_kind(manifest) == "Service":
        ports = list_at(manifest.document, "spec", "ports")
        yield "the Service", "the port name", _names(ports)
        yield "the Service", "the port", _ports(ports, "port")


def _keyed_lists_of_pods(pods: Pods) -> Iterator[tuple[str, str, Iterable[Any]]]:
    for container in pods.containers:
        ports = list_at(container.document, "ports")
        mounts = mappings_at(container.document, "volumeMounts")
        yield container.where, "the environment variable", _names(list_at(container.document, "env"))
        yield container.where, "the port name", _names(ports)
        yield container.where, "the port", _ports(ports, "containerPort")
        yield container.where, "the mount path", (mount.get("mountPath") for mount in mounts)
    yield "the pod", "the volume", _names(list_at(pods.spec, "volumes"))
    every = [*list_at(pods.spec, "initContainers"), *list_at(pods.spec, "containers")]
    yield "the pod", "the container", _names(every)
    yield "the pod", "the pull secret", _names(list_at(pods.spec, "imagePullSecrets"))
    yield "the pod", "the host alias", (entry.get("ip") for entry in mappings_at(pods.spec, "hostAliases"))
    constraints = mappings_at(pods.spec, "topologySpreadConstraints")
    yield (
        "the pod",
        "the spread constraint",
        (f"{entry.get('topologyKey')}/{entry.get('whenUnsatisfiable')}" for entry in constraints),
    )


def _names(entries: Iterable[Any]) -> Iterator[Any]:
    return (entry.get("name") for entry in entries if isinstance(entry, Mapping))


def _ports(entries: Iterable[Any], field: str) -> Iterator[str]:
    return (f"{entry.get(field)}/{entry.get('protocol', 'TCP')}" for entry in entries if isinstance(entry, Mapping))


def _repeated(entries: Iterable[Any]) -> list[str]:
    counted = Counter(str(entry) for entry in entries if entry is not None)
    return [entry for entry, times in counted.items() if times > 1]


RULES = (
    Rule(
        "kubernetes-schema",
        "An unknown or mistyped field is refused by the API server.",
        check_schemas,
        "https://kubernetes.io/docs/reference/using-api/api-concepts/#field-validation",
    ),
    Rule(
        "objects-unique",
        "Two objects of one kind and name overwrite each other.",
        check_unique_objects,
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/names/",
    ),
    Rule(
        "no-namespace",
        "The release decides the namespace, not the chart.",
        check_no_namespace,
        "https://helm.sh/docs/chart_best_practices/templates/",
        others=Severity.info,
        scope=Scope.charts,
    ),
    Rule(
        "entries-unique",
        "Server-side apply refuses a repeated name or port.",
        check_unique_entries,
        "https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy",
    ),
)
