"""The rule that the cluster description names exactly the pods that the StatefulSets make.

The launcher builds TF_CONFIG from cluster.json alone. A name, number or Service that differs from the
objects shows only as a training that waits for a peer which never comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.finding import Finding
from trainchart.check.objects import mapping_at, mappings_at, pods_of, wanted_replicas
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_release
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.json_documents import parse_json

CLUSTER_KEY = "cluster.json"


@for_each_release
def check_hosts(rendering: Rendering) -> Iterator[Finding]:
    """Compare every cluster.json with the StatefulSets and the Service it names."""
    objects = {(manifest.kind, manifest.name): manifest for manifest in rendering.manifests}
    for manifest in rendering.manifests:
        text = mapping_at(manifest.document, "data").get(CLUSTER_KEY) if manifest.kind == "ConfigMap" else None
        if text is None:
            continue
        try:
            cluster = parse_json(text)
        except (TypeError, ValueError) as error:
            yield Finding(f"{CLUSTER_KEY} is not JSON: {error}", path=manifest.source, line=manifest.line)
            continue
        roles = mapping_at(cluster, "roles")
        if not roles:
            yield Finding(f"{CLUSTER_KEY} names no roles", path=manifest.source, line=manifest.line)
        for role, described in roles.items():
            for problem in _role_problems(role, mapping_at(described), mapping_at(cluster), objects):
                yield Finding(problem, path=manifest.source, line=manifest.line)
        yield from _service_findings(manifest, mapping_at(cluster), objects)


_Objects = Mapping[tuple[str, str], Manifest]


def _role_problems(
    role: str, described: Mapping[str, Any], cluster: Mapping[str, Any], objects: _Objects
) -> Iterator[str]:
    name, replicas = str(described.get("name", "")), described.get("replicas")
    stateful_set = objects.get(("StatefulSet", name))
    if stateful_set is None:
        if replicas != 0:
            yield f"{CLUSTER_KEY} says role {role} is StatefulSet {name!r}, which is not rendered"
        return
    actual = wanted_replicas(stateful_set)
    if actual != replicas:
        yield f"{CLUSTER_KEY} says {replicas} replicas of role {role}, but StatefulSet {name} has {actual}"
    spec = mapping_at(stateful_set.document, "spec")
    if spec.get("serviceName") != cluster.get("service"):
        yield (
            f"{CLUSTER_KEY} says service {cluster.get('service')!r}, "
            f"but StatefulSet {name} has serviceName {spec.get('serviceName')!r}"
        )
    if mapping_at(spec, "ordinals").get("start", 0) != 0:
        yield f"StatefulSet {name} does not count from 0, as {CLUSTER_KEY} assumes"
    ports = [
        port.get("containerPort")
        for pods in pods_of(stateful_set)
        for found in pods.containers
        for port in mappings_at(found.document, "ports")
    ]
    if ports and cluster.get("port") not in ports:
        yield f"{CLUSTER_KEY} says port {cluster.get('port')}, but no container of StatefulSet {name} has it"


def _service_findings(source: Manifest, cluster: Mapping[str, Any], objects: _Objects) -> Iterator[Finding]:
    name = str(cluster.get("service", ""))
    service = objects.get(("Service", name))
    if service is None:
        yield Finding(
            f"{CLUSTER_KEY} names Service {name!r}, which is not rendered", path=source.source, line=source.line
        )
        return
    spec = mapping_at(service.document, "spec")
    if spec.get("clusterIP") != "None":
        yield Finding(
            f"Service {name} is not headless, so pods have no DNS names",
            path=service.source,
            line=service.line,
            hint="clusterIP: None",
        )
    if spec.get("publishNotReadyAddresses") is not True:
        yield Finding(
            f"Service {name} hides pods that are not ready, but peers must find each other to become ready",
            path=service.source,
            line=service.line,
            hint="publishNotReadyAddresses: true",
        )
    selector = mapping_at(spec, "selector")
    for described in mapping_at(cluster, "roles").values():
        stateful_set = objects.get(("StatefulSet", str(mapping_at(described).get("name", ""))))
        if stateful_set is None:
            continue
        if not selector or not all(selector.items() <= pods.labels.items() for pods in pods_of(stateful_set)):
            yield Finding(
                f"Service {name} does not select the pods of {stateful_set.name}",
                path=service.source,
                line=service.line,
            )


RULES = (
    Rule(
        "hosts-match",
        "TF_CONFIG must list the existing pods, under names that resolve.",
        check_hosts,
        "https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable",
    ),
)
