"""What the API server refuses in fields that choose a pod's node or resolve names, and pods that miss their peers."""

from __future__ import annotations

import pytest

from trainchart.check.finding import Case, CheckInput, Severity
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import parse_documents

POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {FIELDS, containers: [{name: a, image: b}]}}"
STATEFUL_SET = (
    "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: NAME}, "
    "spec: {serviceName: SERVICE, replicas: COUNT, template: {spec: {FIELDS}}}}"
)
TF_JOB = (
    "{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {name: a}, "
    "spec: {tfReplicaSpecs: {Worker: {template: {spec: {FIELDS}}}}}}"
)
NODES = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [TERM]}}}"
PREFERRED_NODES = "affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [TERM]}}"
PODS = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [TERM]}}"
PREFERRED_PODS = "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [TERM]}}"
DNS = "dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.10], searches: [ml.svc.example]}"


def find(text: str, *rules: str) -> list[tuple[str, Severity]]:
    manifests = tuple(Manifest("a.yaml", document) for document in parse_documents(text))
    given = CheckInput(files={}, cases=(Case("", Rendering("", "default", manifests, {})),))
    return [(found.message, found.severity) for found in run_checks(given, find_rules(rules)).findings]


def tolerate(fields: str) -> str:
    return f"tolerations: [{{{fields}}}]"


def spread(fields: str) -> str:
    return f"topologySpreadConstraints: [{{{fields}}}]"


def match(expression: str) -> str:
    return NODES.replace("TERM", f"{{matchExpressions: [{{{expression}}}]}}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (tolerate("key: a, operator: Exists, value: b"), "tolerations[0]: operator Exists takes no value, but has 'b'"),
        (tolerate("operator: Equal, value: b"), "tolerations[0]: operator Equal needs a key"),
        (tolerate("value: b"), "tolerations[0]: operator Equal needs a key"),
        (tolerate("key: a, value: 'b c'"), "'b c' is not a valid taint value"),
        (tolerate("key: a b, operator: Exists"), "'a b' is not a valid taint key"),
        (tolerate("key: a, operator: Gt, value: many"), "operator Gt compares integers, not 'many'"),
        (tolerate("key: a, effect: NoSchedule, tolerationSeconds: 0, operator: Exists"), "not NoSchedule"),
        (tolerate("operator: Exists, tolerationSeconds: 5"), "needs the effect NoExecute, not none"),
        (tolerate("operator: Exists, effect: NoRun"), "tolerations[0].effect is 'NoRun', not NoExecute or"),
        (tolerate("operator: Exist, key: a"), "tolerations[0].operator is 'Exist', not Equal or"),
        (tolerate("operator: Exists"), ""),
        (tolerate("key: a.b/c, value: d, effect: NoExecute, tolerationSeconds: 5"), ""),
        (tolerate("key: a, operator: Lt, value: '-5'"), ""),
        (spread("maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule"), "maxSkew 0 is not 1 or more"),
        (spread("maxSkew: 1, whenUnsatisfiable: DoNotSchedule"), "topologyKey is empty"),
        (spread("maxSkew: 1, topologyKey: a"), "whenUnsatisfiable is empty"),
        (spread("maxSkew: 1, topologyKey: a, whenUnsatisfiable: Never"), "whenUnsatisfiable is 'Never', not"),
        (spread("maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 2"), "minDomains needs"),
        (spread("maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, minDomains: 0"), "minDomains 0 is not"),
        (spread("maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Use"), "is 'Use'"),
        (spread("maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, minDomains: 2"), ""),
        (
            "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}",
            "nodeSelectorTerms is empty",
        ),
        (PREFERRED_NODES.replace("TERM", "{weight: 0, preference: {}}"), "weight 0 is not between 1 and 100"),
        (PREFERRED_PODS.replace("TERM", "{weight: 1, podAffinityTerm: {}}"), "podAffinityTerm: topologyKey is empty"),
        (PODS.replace("TERM", "{labelSelector: {}}"), "[0]: topologyKey is empty"),
        (PODS.replace("TERM", "{topologyKey: zone}"), ""),
        ("dnsPolicy: None", "dnsPolicy None needs dnsConfig.nameservers"),
        ("dnsConfig: {nameservers: [dns]}", "dnsConfig.nameservers: 'dns' is not an IP address"),
        (
            "dnsConfig: {nameservers: [1.1.1.1, 2.2.2.2, 3.3.3.3, '4::4']}",
            "dnsConfig.nameservers: 4 entries, but the limit is 3",
        ),
        ("dnsConfig: {options: [{value: '2'}]}", "dnsConfig.options[0]: name is empty"),
        (DNS, ""),
        ("hostAliases: [{ip: host, hostnames: [a]}]", "hostAliases[0]: ip 'host' is not an IP address"),
    ],
)
def test_what_the_api_server_refuses(fields: str, message: str) -> None:
    found = find(POD.replace("FIELDS", fields), "fields-valid")
    assert len(found) == bool(message), found
    assert all(message in told and severity is Severity.error for told, severity in found)


@pytest.mark.parametrize(("host_port", "is_fine"), [("8080", True), ("80", False)])
def test_a_host_port_of_the_nodes_network_is_the_containers(host_port: str, is_fine: bool) -> None:
    container = f"[{{name: a, image: b, ports: [{{containerPort: 8080, hostPort: {host_port}}}]}}]"
    text = POD.replace("FIELDS", "hostNetwork: true").replace("[{name: a, image: b}]", container)
    assert (find(text, "fields-valid") == []) is is_fine
    assert find(text.replace("hostNetwork: true", "hostNetwork: false"), "fields-valid") == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (match("key: a, operator: In"), "a: In needs values"),
        (match("key: a, operator: NotIn, values: []"), "a: NotIn needs values"),
        (match("key: a, operator: Exists, values: [b]"), "a: Exists takes no values"),
        (match("key: a, operator: Gt, values: ['1', '2']"), "a: Gt needs exactly one value, an integer"),
        (match("key: a, operator: Lt, values: [few]"), "a: Lt needs exactly one value, an integer"),
        (match("key: a, operator: Is, values: [b]"), "operator 'Is' is not In, NotIn, Exists or DoesNotExist, Gt or"),
        (match("key: a, operator: In, values: ['b c']"), "'b c' is not a valid label value"),
        (match("key: a, operator: Gt, values: ['5']"), ""),
        (NODES.replace("TERM", "{matchFields: [{key: name, operator: In, values: [b]}]}"), "'name' is not metadata.n"),
        (NODES.replace("TERM", "{matchFields: [{key: metadata.name, operator: In, values: []}]}"), "exactly one value"),
        (NODES.replace("TERM", "{matchFields: [{key: metadata.name, operator: In, values: [b]}]}"), ""),
        (
            PODS.replace(
                "TERM", "{topologyKey: z, labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ['5']}]}}"
            ),
            "operator 'Gt' is not In, NotIn, Exists or DoesNotExist",
        ),
    ],
)
def test_match_expressions(fields: str, message: str) -> None:
    found = find(POD.replace("FIELDS", fields), "labels-valid")
    assert len(found) == bool(message), found
    assert all(message in told for told, _ in found)


@pytest.mark.parametrize(
    "text",
    [
        "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: SELECTOR}}",
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: SELECTOR}}",
        "{apiVersion: v1, kind: PodTemplate, metadata: {name: a}, template: {spec: {volumes: [{x: SELECTOR}]}}}",
    ],
)
def test_selectors_of_labels_everywhere(text: str) -> None:
    found = find(text.replace("SELECTOR", "{matchExpressions: [{key: a, operator: In}]}"), "labels-valid")
    assert [told.endswith(".matchExpressions: a: In needs values") for told, _ in found] == [True]


def stateful_set(fields: str, count: int = 2, name: str = "a", service: str = "peers") -> str:
    text = STATEFUL_SET.replace("FIELDS", fields).replace("COUNT", str(count))
    return text.replace("NAME", name).replace("SERVICE", service)


@pytest.mark.parametrize(
    ("text", "message", "severity"),
    [
        (stateful_set("dnsPolicy: Default"), "dnsPolicy Default does not resolve Services", Severity.warning),
        (stateful_set("hostNetwork: true"), "ClusterFirst means Default", Severity.warning),
        (
            stateful_set("dnsPolicy: None, dnsConfig: {nameservers: [1.1.1.1]}"),
            "without dnsConfig.searches",
            Severity.warning,
        ),
        (
            TF_JOB.replace("FIELDS", "dnsPolicy: Default"),
            "dnsPolicy Default does not resolve Services",
            Severity.warning,
        ),
        (POD.replace("FIELDS", "hostNetwork: true, dnsPolicy: ClusterFirst"), "means Default", Severity.info),
    ],
)
def test_pods_that_cannot_resolve_names_are_found(text: str, message: str, severity: Severity) -> None:
    [(told, found)] = find(text, "peers-resolve")
    assert message in told
    assert found == severity


@pytest.mark.parametrize(
    "text",
    [
        stateful_set(DNS),
        stateful_set("hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet"),
        stateful_set("dnsPolicy: Default", count=1),
        POD.replace("FIELDS", "dnsPolicy: Default"),
        POD.replace("FIELDS", "hostNetwork: true"),
        TF_JOB.replace("FIELDS", "restartPolicy: Never"),
    ],
)
def test_pods_that_resolve_or_need_no_names_are_fine(text: str) -> None:
    assert find(text, "peers-resolve") == []


def test_sets_of_one_pod_under_one_service_are_peers() -> None:
    text = f"{stateful_set('dnsPolicy: Default', 1)}\n---\n{stateful_set('hostPID: false', 1, 'b')}"
    assert [told.split(":")[0] for told, _ in find(text, "peers-resolve")] == ["StatefulSet a"]
