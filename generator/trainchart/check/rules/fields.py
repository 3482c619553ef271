"""Rules about what fields say where the schemas of Kubernetes know only their types: words, names, ports, times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.check.choices import CONTAINER, EVERY_POD, OBJECT, POD, find_wrong_choices
from trainchart.check.finding import Finding
from trainchart.check.formats import is_base64, is_data_key, is_dns_label, is_port_name, is_schedule
from trainchart.check.objects import (
    Container,
    Pods,
    called,
    find_pods,
    list_at,
    mapping_at,
    mappings_at,
)
from trainchart.check.pod_templates import is_of_kubernetes, kubernetes_kind
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.plan.scheduling import find_scheduling_problems

_LAST_PORT = 65535
_ENDING = ("Job", "CronJob")


@for_each_rendering
def check_fields_valid(rendering: Rendering) -> Iterator[Finding]:
    """Check words, names, ports, keys, schedules and access modes that the API server looks at."""
    for manifest in rendering.manifests:
        for problem in _object_problems(manifest):
            yield Finding(f"{called(manifest)}: {problem}", path=manifest.source, line=manifest.line)
    for pods in find_pods(rendering):
        for problem in _pod_problems(pods):
            yield Finding(f"{pods.called}: {problem}", path=pods.manifest.source, line=pods.manifest.line)


def _object_problems(manifest: Manifest) -> Iterator[str]:
    document = manifest.document
    namespace = mapping_at(document, "metadata").get("namespace")
    if isinstance(namespace, str) and namespace and not is_dns_label(namespace):
        yield f"metadata.namespace {namespace!r} is not a valid DNS label"
    if not is_of_kubernetes(manifest):
        return
    yield from find_wrong_choices(document, OBJECT.get(manifest.kind, ()))
    if manifest.kind in ("ConfigMap", "Secret"):
        yield from _data_problems(manifest)
    elif manifest.kind == "CronJob":
        schedule = mapping_at(document, "spec").get("schedule")
        if isinstance(schedule, str) and not is_schedule(schedule):
            yield f"spec.schedule {schedule!r} is not a valid cron schedule, such as 0 3 * * 1-5"
    elif manifest.kind == "Service":
        yield from _service_problems(mapping_at(document, "spec"))
    elif manifest.kind == "PersistentVolumeClaim":
        yield from _claim_problems(document, "spec")
    for number, claim in enumerate(mappings_at(document, "spec", "volumeClaimTemplates")):
        yield from _claim_problems(claim, f"spec.volumeClaimTemplates[{number}].spec")


def _data_problems(manifest: Manifest) -> Iterator[str]:
    for field in ("data", "binaryData", "stringData"):
        for key, value in mapping_at(manifest.document, field).items():
            if not is_data_key(str(key)):
                yield f"{field}: {key!r} cannot be the name of a file"
            is_encoded = field == "binaryData" or (field == "data" and manifest.kind == "Secret")
            # The value may be secret: it is not told.
            if is_encoded and isinstance(value, str) and not is_base64(value):
                yield f"{field}.{key} is not base64" + ("; stringData takes text" if manifest.kind == "Secret" else "")


def _service_problems(spec: Mapping[str, Any]) -> Iterator[str]:
    ports = list(mappings_at(spec, "ports"))
    if not spec:
        return  # Another rule says so.
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield "spec.ports is empty"
    if len(ports) > 1 and not all(port.get("name") for port in ports):
        yield "one of several ports has no name"
    for port in ports:
        yield from _port_problems(port, "port", "spec.ports")
        yield from _port_problems(port, "nodePort", "spec.ports")
        yield from _port_problems(port, "targetPort", "spec.ports")
        if isinstance(port.get("name"), str) and port["name"] and not is_dns_label(port["name"]):
            yield f"spec.ports: the name {port['name']!r} is not a valid DNS label"
        target = port.get("targetPort")
        if isinstance(target, str) and not is_port_name(target):
            yield f"spec.ports: the targetPort {target!r} is not a valid port name"


def _claim_problems(claim: Mapping[str, Any], where: str) -> Iterator[str]:
    if mapping_at(claim, "spec") and not list_at(claim, "spec", "accessModes"):
        yield f"{where}.accessModes is empty"


def _pod_problems(pods: Pods) -> Iterator[str]:
    yield from find_wrong_choices(pods.spec, (*POD.get(kubernetes_kind(pods.manifest), POD["Pod"]), *EVERY_POD))
    if pods.spec and kubernetes_kind(pods.manifest) in _ENDING and not pods.spec.get("restartPolicy"):
        yield "restartPolicy is missing, and its default Always is not valid for a Job: use OnFailure or Never"
    yield from (problem for _, problem in find_scheduling_problems(pods.spec))
    for volume in mappings_at(pods.spec, "volumes"):
        template = mapping_at(volume, "ephemeral", "volumeClaimTemplate")
        yield from _claim_problems(template, f"volume {volume.get('name')}: ephemeral.volumeClaimTemplate.spec")
    for container in pods.containers:
        for problem in _container_problems(container):
            yield f"{container.where}: {problem}"
        for port in mappings_at(container.document, "ports") if pods.spec.get("hostNetwork") is True else ():
            if port.get("hostPort") not in (None, 0, port.get("containerPort")):
                yield f"{container.where}: with hostNetwork, hostPort {port['hostPort']} must be the containerPort"


def _container_problems(container: Container) -> Iterator[str]:
    yield from find_wrong_choices(container.document, CONTAINER)
    name = container.document.get("name")
    if isinstance(name, str) and not is_dns_label(name):
        yield "its name is not a valid DNS label"
    for port in mappings_at(container.document, "ports"):
        yield from _port_problems(port, "containerPort", "ports")
        yield from _port_problems(port, "hostPort", "ports")
        if isinstance(port.get("name"), str) and port["name"] and not is_port_name(port["name"]):
            yield f"invalid port name {port['name']!r}: at most 15 lower-case letters, digits and dashes"
    for variable in mappings_at(container.document, "env"):
        name = variable.get("name")
        if isinstance(name, str) and (not name or "=" in name or not name.isascii() or not name.isprintable()):
            yield f"an environment variable cannot be named {name!r}"


def _port_problems(port: Mapping[str, Any], field: str, where: str) -> Iterator[str]:
    number = port.get(field)
    # 0 is what a field that is not set says.
    is_set = (
        isinstance(number, int) and not isinstance(number, bool) and (number != 0 or field in ("port", "containerPort"))
    )
    if is_set and not 1 <= int(str(number)) <= _LAST_PORT:
        yield f"{where}: {field} {number} is not between 1 and {_LAST_PORT}"


RULES = (
    Rule(
        "fields-valid",
        "The API server refuses a word, name, port or time that is not valid, even if the schema accepts it.",
        check_fields_valid,
        "https://kubernetes.io/docs/reference/kubernetes-api/",
    ),
)
