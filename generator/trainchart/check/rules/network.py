"""Rules about who reaches whom: Services, Ingresses, NetworkPolicies, and the ports they name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.objects import (
    Pods,
    called,
    find_pods,
    list_at,
    made_namespaces,
    mapping_at,
    mappings_at,
    namespace_of,
    selects,
    whereabouts,
)
from trainchart.check.pod_templates import kubernetes_kind, names_peers
from trainchart.check.rule import Rule
from trainchart.check.rules.cases import for_each_rendering
from trainchart.helm.rendering import Manifest, Rendering

_HOST_NETWORK_HINT = "dnsPolicy: ClusterFirstWithHostNet"


@for_each_rendering
def check_services(rendering: Rendering) -> Iterator[Finding]:
    """Check that every Service selects pods of the release which have the ports it names."""
    every = list(find_pods(rendering))
    for manifest in _of_kind(rendering, "Service"):
        selector = mapping_at(manifest.document, "spec", "selector")
        if not selector or not every:
            continue  # Endpoints come from elsewhere.
        near = _in_namespace_of(manifest, rendering, every)
        chosen = [pods for pods in near if selector.items() <= pods.labels.items()]
        if not chosen:
            yield Finding(
                f"{called(manifest)} selects no pods {whereabouts(rendering)}", path=manifest.source, line=manifest.line
            )
        for port in mappings_at(manifest.document, "spec", "ports") if chosen else ():
            target = port.get("targetPort", port.get("port"))
            if not any(_has_port(pods, target) for pods in chosen):
                yield Finding(
                    f"{called(manifest)}: no pod that it selects has the port {target}",
                    path=manifest.source,
                    line=manifest.line,
                    severity=Severity.error if isinstance(target, str) else Severity.info,
                )


@for_each_rendering
def check_names_of_services(rendering: Rendering) -> Iterator[Finding]:
    """Check that Ingresses and StatefulSets name a Service, and a port of it, that is rendered."""
    services = {
        (namespace_of(manifest, rendering), manifest.name): manifest for manifest in _of_kind(rendering, "Service")
    }
    for manifest in rendering.manifests:
        if kubernetes_kind(manifest) == "StatefulSet":
            governing = str(mapping_at(manifest.document, "spec").get("serviceName") or "")
            if governing and (namespace_of(manifest, rendering), governing) not in services:
                yield Finding(
                    f"{called(manifest)} names Service {governing!r}, which is not rendered",
                    path=manifest.source,
                    line=manifest.line,
                )
    for manifest in _of_kind(rendering, "Ingress"):
        for backend in _backends(manifest):
            name, port = backend.get("name"), mapping_at(backend, "port")
            service = services.get((namespace_of(manifest, rendering), str(name)))
            if service is None:
                yield Finding(
                    f"{called(manifest)} names Service {name!r}, which is not rendered",
                    path=manifest.source,
                    line=manifest.line,
                )
            elif not any(_is_port(port, known) for known in mappings_at(service.document, "spec", "ports")):
                asked = port.get("name", port.get("number"))
                yield Finding(
                    f"{called(manifest)}: Service {name} has no port {asked}", path=manifest.source, line=manifest.line
                )


@for_each_rendering
def check_probe_ports(rendering: Rendering) -> Iterator[Finding]:
    """Check that probes and hooks of containers name ports of their container."""
    for pods in find_pods(rendering):
        for container in pods.containers:
            own = [port.get("name") for port in mappings_at(container.document, "ports")]
            for field in ("livenessProbe", "readinessProbe", "startupProbe"):
                for action in ("httpGet", "tcpSocket"):
                    port = mapping_at(container.document, field, action).get("port")
                    if isinstance(port, str) and not port.isdigit() and port not in own:
                        yield Finding(
                            f"{pods.called}: {container.where}: {field} probes port {port}, which it does not have",
                            path=pods.manifest.source,
                            line=pods.manifest.line,
                        )


@for_each_rendering
def check_name_resolution(rendering: Rendering) -> Iterator[Finding]:
    """Find DNS policies under which pods cannot resolve Services, by which they find their peers."""
    every = list(find_pods(rendering))
    governed = Counter[tuple[str, str]]()
    for pods in every:
        governed[_governing_service(pods)] += 1 if pods.replicas is None else pods.replicas
    for pods in every:
        service = _governing_service(pods)
        has_peers = governed[service] > 1 if service[1] else names_peers(pods.manifest)
        problem, hint = _resolution_problem(pods.spec, has_peers=has_peers)
        if problem:
            yield Finding(
                f"{pods.called}: {problem}",
                path=pods.manifest.source,
                line=pods.manifest.line,
                severity=Severity.error if has_peers else Severity.info,
                hint=hint,
            )


def _governing_service(pods: Pods) -> tuple[str, str]:
    """Return namespace and name of the Service that gives the pods their DNS names; the name is empty without one."""
    is_set = kubernetes_kind(pods.manifest) == "StatefulSet"
    name = mapping_at(pods.manifest.document, "spec").get("serviceName") if is_set else pods.spec.get("subdomain")
    return pods.namespace, str(name or "")


def _resolution_problem(spec: Mapping[str, Any], *, has_peers: bool) -> tuple[str, str]:
    """Return why pods cannot resolve Services, and a hint; empty texts where they can, or need not."""
    policy = spec.get("dnsPolicy") or "ClusterFirst"
    if policy == "ClusterFirst" and spec.get("hostNetwork") is True and (has_peers or spec.get("dnsPolicy")):
        return (
            "with hostNetwork, dnsPolicy ClusterFirst means Default, which does not resolve Services",
            _HOST_NETWORK_HINT,
        )
    if policy == "Default" and has_peers:
        return (
            "dnsPolicy Default does not resolve Services, by which the pods find their peers",
            "dnsPolicy: ClusterFirst",
        )
    if policy == "None" and has_peers and not list_at(spec, "dnsConfig", "searches"):
        return "dnsPolicy None without dnsConfig.searches does not resolve names such as pod.service", (
            "dnsPolicy: ClusterFirst, which dnsConfig adds to"
        )
    return "", ""


def check_policies(given: CheckInput) -> Iterator[Finding]:
    """Check that NetworkPolicies cover every pod, name ports that exist, and let no stranger in."""
    for label, rendering in given.renderings():
        policies = _of_kind(rendering, "NetworkPolicy")
        every = list(find_pods(rendering))
        for policy in policies:
            selector = mapping_at(policy.document, "spec", "podSelector")
            chosen = [pods for pods in _in_namespace_of(policy, rendering, every) if selects(selector, pods.labels)]
            for message, severity in _policy_problems(policy, chosen, rendering, given.is_generated):
                yield Finding(
                    f"{called(policy)} {message}", path=policy.source, line=policy.line, severity=severity, values=label
                )
        # Without a policy, the user who turned it off knows; with one, a forgotten pod is an oversight.
        for pods in every:
            near = [policy for policy in policies if namespace_of(policy, rendering) == pods.namespace]
            covered = any(selects(mapping_at(p.document, "spec", "podSelector"), pods.labels) for p in near)
            if near and not covered:
                yield Finding(
                    f"{pods.called}: no NetworkPolicy selects its pods",
                    path=pods.manifest.source,
                    line=pods.manifest.line,
                    values=label,
                )


def _policy_problems(
    policy: Manifest, chosen: list[Pods], rendering: Rendering, is_ours: bool
) -> Iterator[tuple[str, Severity]]:
    spec = mapping_at(policy.document, "spec")
    if not chosen and namespace_of(policy, rendering) in made_namespaces(rendering):
        return
    if not chosen:
        yield f"selects no pods {whereabouts(rendering)}", Severity.error
        return
    for rule in mappings_at(spec, "ingress"):
        if is_ours and not rule.get("from"):
            yield "allows traffic from anywhere", Severity.error
        for port in mappings_at(rule, "ports"):
            name = port.get("port")
            if isinstance(name, str) and not any(_has_port(pods, name) for pods in chosen):
                yield f"names the port {name}, which no pod that it selects has", Severity.error
    if is_ours and "Egress" in list_at(spec, "policyTypes") and not spec.get("egress"):
        yield "forbids all outgoing traffic, including name resolution", Severity.error


def _of_kind(rendering: Rendering, kind: str) -> list[Manifest]:
    return [manifest for manifest in rendering.manifests if kubernetes_kind(manifest) == kind]


def _in_namespace_of(manifest: Manifest, rendering: Rendering, every: Iterable[Pods]) -> list[Pods]:
    namespace = namespace_of(manifest, rendering)
    return [pods for pods in every if pods.namespace == namespace]


def _has_port(pods: Pods, wanted: Any) -> bool:
    for container in pods.containers:
        for port in mappings_at(container.document, "ports"):
            if wanted in (port.get("name"), port.get("containerPort")):
                return True
    return False


def _backends(ingress: Manifest) -> Iterator[Mapping[str, Any]]:
    default = mapping_at(ingress.document, "spec", "defaultBackend", "service")
    if default:
        yield default
    for rule in mappings_at(ingress.document, "spec", "rules"):
        for path in mappings_at(rule, "http", "paths"):
            if mapping_at(path, "backend", "service"):
                yield mapping_at(path, "backend", "service")


def _is_port(asked: Mapping[str, Any], known: Mapping[str, Any]) -> bool:
    return asked.get("name") == known.get("name") if "name" in asked else asked.get("number") == known.get("port")


RULES = (
    Rule(
        "service-targets",
        "A Service whose selector or port matches nothing leads nowhere, and peers wait forever.",
        check_services,
        "https://kubernetes.io/docs/concepts/services-networking/service/",
        others=Severity.warning,
    ),
    Rule(
        "service-names",
        "A StatefulSet's pods get DNS names from the Service it names; an Ingress routes to the Service it names.",
        check_names_of_services,
        "https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#stable-network-id",
        others=Severity.warning,
    ),
    Rule(
        "peers-resolve",
        "A pod with the node's DNS settings cannot resolve the names of its peers, and waits for them forever.",
        check_name_resolution,
        "https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pod-s-dns-policy",
        others=Severity.warning,
    ),
    Rule(
        "probe-ports",
        "A probe of a named port that the container does not define always fails.",
        check_probe_ports,
        "https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/",
    ),
    Rule(
        "network-policy",
        "A pod that no policy selects is open to the whole cluster; "
        "an ingress rule without `from` admits every client.",
        check_policies,
        "https://kubernetes.io/docs/concepts/services-networking/network-policies/",
        others=Severity.info,
    ),
)
