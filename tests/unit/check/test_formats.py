"""What the API server refuses though the schemas of Kubernetes take it: labels, words, names, ports, times."""

from __future__ import annotations

import pytest

from trainchart.check.finding import Case, CheckInput
from trainchart.check.formats import is_label_key, is_label_value, is_port_name, is_schedule
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import parse_documents

CONTAINERS = "containers: [{name: a, image: b}]"


def find(text: str, *rules: str) -> list[str]:
    manifests = tuple(Manifest("a.yaml", document) for document in parse_documents(text))
    given = CheckInput(files={}, cases=(Case("", Rendering("", "default", manifests, {})),))
    return [finding.message for finding in run_checks(given, find_rules(rules)).findings]


def pod(kind: str, spec: str, more: str = "") -> str:
    return f"{{apiVersion: x/v1, kind: {kind}, metadata: {{name: a}}, spec: {{{more}template: {{spec: {{{spec}}}}}}}}}"


def container(fields: str) -> str:
    return pod("Deployment", "containers: [{name: a, image: b, " + fields + "}]")


@pytest.mark.parametrize(
    ("metadata", "spec", "message"),
    [
        ("labels: {'a/b/c': d}", "", "metadata.labels: 'a/b/c' is not a valid label key"),
        ("labels: {'A.b/c': d}", "", "metadata.labels: 'A.b/c' is not a valid label key"),
        ("labels: {a: b-}", "", "metadata.labels.a: 'b-' is not a valid label value"),
        ("annotations: {'a b': c}", "", "metadata.annotations: 'a b' is not a valid annotation key"),
        ("annotations: {'A.b/c': 'any text!'}", "", ""),
        (
            "",
            "template: {metadata: {labels: {a: 'b c'}}}",
            "spec.template.metadata.labels.a: 'b c' is not a valid label",
        ),
        ("", "selector: {matchLabels: {a: 'b c'}}", "spec.selector.matchLabels.a: 'b c' is not a valid label value"),
        ("", "selector: {matchExpressions: [{key: '', operator: Exists}]}", "spec.selector.matchExpressions: '' is no"),
        ("", "template: {spec: {nodeSelector: {a: " + "b" * 64 + "}}}", "is not a valid label value"),
    ],
)
def test_labels_and_annotations(metadata: str, spec: str, message: str) -> None:
    found = find(
        f"{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a, {metadata}}}, spec: {{{spec}}}}}",
        "labels-valid",
    )
    assert len(found) == bool(message)
    assert all(message in text for text in found)


def test_service_selectors_are_labels_and_other_kinds_are_free() -> None:
    service = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {a: 'b c'}}}"
    assert find(service, "labels-valid") == ["Service a: spec.selector.a: 'b c' is not a valid label value"]
    other = "{apiVersion: x.io/v1, kind: X, metadata: {name: a}, spec: {matchLabels: {a: 'b c'}}}"
    assert find(other, "labels-valid") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: A_b}}",
            "metadata.namespace 'A_b' is not a valid DNS",
        ),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a/b: c}}", "'a/b' cannot be the name of"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {..b: c}}", "'..b' cannot be the name of"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '%'}, binaryData: {b: YQ==}}", ""),
        ("{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: pass word}}", "data.a is not base64"),
        ('{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: "YW\\nJj"}, stringData: {b: "%"}}', ""),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: Cluster, clusterIP: None}}",
            "spec.type is 'Cluster', not",
        ),
        ("{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {a: b}}}", "spec.ports is empty"),
        ("{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None}}", ""),
        ("{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: b}}", ""),
        (
            "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 1}, {port: 2, name: b}]}}",
            "one of several ports has no name",
        ),
        ("{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 70000}]}}", "port 70000 is not"),
        (
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: []}}",
            "spec.accessModes is empty",
        ),
        (
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [RWO]}}",
            "spec.accessModes[0] is 'RWO', not",
        ),
        (
            pod(
                "StatefulSet",
                CONTAINERS + ", volumes: [{name: s, ephemeral: {volumeClaimTemplate: {spec: {accessModes: []}}}}]",
            ),
            "volume s: ephemeral.volumeClaimTemplate.spec.accessModes is empty",
        ),
        (
            pod(
                "Deployment",
                CONTAINERS + ", volumes: [{name: s, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [RWO]}}}}]",
            ),
            "volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes[0] is 'RWO', not",
        ),
        (
            "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, "
            "spec: {rules: [{http: {paths: [{pathType: prefix}]}}]}}",
            "spec.rules[0].http.paths[0].pathType is 'prefix', not",
        ),
        (container("imagePullPolicy: always"), "imagePullPolicy is 'always', not Always or"),
        (container("ports: [{containerPort: 0}]"), "containerPort 0 is not between 1 and 65535"),
        (container("ports: [{containerPort: 1, protocol: tcp}]"), "ports[0].protocol is 'tcp', not TCP or"),
        (container("ports: [{containerPort: 1, name: sixteen-letters-x}]"), "invalid port name 'sixteen-letters-x'"),
        (container("env: [{name: ''}]"), "an environment variable cannot be named ''"),
        (container("env: [{name: a=b}]"), "an environment variable cannot be named 'a=b'"),
        (container("env: [{name: a.b-c}]"), ""),
        (pod("Deployment", "containers: [{name: A_b, image: c}]"), "container A_b: its name is not a valid DNS label"),
        (pod("Deployment", CONTAINERS + ", restartPolicy: Never"), "restartPolicy is 'Never', not Always"),
        (pod("StatefulSet", CONTAINERS + ", restartPolicy: OnFailure"), "restartPolicy is 'OnFailure', not Always"),
        (pod("Job", CONTAINERS), "restartPolicy is missing"),
        (pod("Job", CONTAINERS + ", restartPolicy: Always"), "restartPolicy is 'Always', not OnFailure or Never"),
        (pod("Job", CONTAINERS + ", restartPolicy: Never"), ""),
        (
            "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: 0 25 * * *, "
            "jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}}}",
            "spec.schedule '0 25 * * *' is not a valid cron schedule",
        ),
        (
            "{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {concurrencyPolicy: allow, "
            "jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}}}",
            "spec.concurrencyPolicy is 'allow', not Allow or",
        ),
    ],
)
def test_fields(text: str, message: str) -> None:
    found = find(text, "fields-valid")
    assert len(found) == bool(message), found
    assert all(message in told for told in found)


@pytest.mark.parametrize(("request_", "is_fine"), [("", True), ("requests: {hugepages-2Mi: 2Mi}, ", False)])
def test_huge_pages_are_requested_as_they_are_limited(request_: str, is_fine: bool) -> None:
    found = find(container("resources: {" + request_ + "limits: {hugepages-2Mi: 4Mi}}"), "quantities")
    assert (found == []) is is_fine
    assert find(container("resources: {requests: {hugepages-2Mi: 4Mi}}"), "quantities") != []


def test_two_containers_of_one_name_are_found() -> None:
    found = find(pod("Deployment", "containers: [{name: a, image: b}, {name: a, image: b}]"), "entries-unique")
    assert found == ["Deployment a: the pod has the container a twice"]


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("0 3 * * 1-5", True),
        ("*/15 0-6,12 1 jan-mar SUN", True),
        ("@daily", True),
        ("@every 1h30m", True),
        ("5/10 * * * ?", True),
        ("0 3 * *", False),
        ("60 * * * *", False),
        ("* * 0 * *", False),
        ("* * * * 7", False),
        ("*/0 * * * *", False),
        ("5-1 * * * *", False),
        ("@sometimes", False),
        ("TZ=UTC 0 3 * * *", False),
        ("1-2-3 * * * *", False),
        ("", False),
    ],
)
def test_schedules(text: str, is_valid: bool) -> None:
    assert is_schedule(text) is is_valid


@pytest.mark.parametrize("key", ["a", "A_b.c-d", "example.com/a", "a" * 63, "b." * 100 + "c/a"])
def test_keys_of_labels(key: str) -> None:
    assert is_label_key(key)
    assert not any(map(is_label_key, (f"/{key}", f"{key}/", f"-{key}", f"{key}-", f"{key}{'x' * 63}", "")))


def test_values_of_labels_and_names_of_ports() -> None:
    assert all(map(is_label_value, ("", "a", "A.b_c-1", "a" * 63)))
    assert not any(map(is_label_value, ("-a", "a-", "a b", "a/b", "a" * 64)))
    assert all(map(is_port_name, ("http", "a-1", "1a", "fifteen-letters")))
    assert not any(map(is_port_name, ("", "80", "Http", "a--b", "-a", "a-", "sixteen-letters-")))
