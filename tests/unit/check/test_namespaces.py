"""Objects of two namespaces do not meet: equal names and labels there are no fault, and one cannot serve the other."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from trainchart.check.finding import Case, CheckInput
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import parse_documents

WORKLOAD = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: 2
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      containers: [{name: web, image: "web:1", ports: [{name: http, containerPort: 80}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
"""
BESIDE = {
    "service": "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: NAMESPACE}\n"
    "spec: {selector: {app: web}, ports: [{port: 80}]}\n",
    "account": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: NAMESPACE}\n"
    "automountServiceAccountToken: false\n",
    "policy": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web, namespace: NAMESPACE}\n"
    "spec: {podSelector: {matchLabels: {app: web}}}\n",
    "budget": "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: NAMESPACE}\n"
    "spec: {selector: {matchLabels: {app: web}}, minAvailable: 2}\n",
    "claim": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: NAMESPACE}\n"
    "spec: {accessModes: [ReadWriteOnce]}\n",
}


CHART = {"Chart.yaml": b"name: a\n"}


def find(rule: str, *texts: str, files: Mapping[str, bytes] | None = None) -> list[str]:
    manifests = tuple(Manifest("a.yaml", document) for text in texts for document in parse_documents(text))
    given = CheckInput(files=files or {}, cases=(Case("", Rendering("", "default", manifests, {})),))
    return [finding.message for finding in run_checks(given, find_rules((rule,))).findings]


def inside(namespace: str, text: str = WORKLOAD) -> str:
    return text.replace("NAMESPACE", namespace)


@pytest.mark.parametrize("rule", ["selectors-own", "names-fit", "objects-unique"])
def test_equal_names_and_labels_in_two_namespaces_are_no_fault(rule: str) -> None:
    assert find(rule, inside("one"), inside("two")) == []
    assert find(rule, inside("one"), inside("one")) != []


@pytest.mark.parametrize("rule", ["names-fit", "objects-unique"])
def test_no_namespace_is_the_one_of_the_release(rule: str) -> None:
    assert find(rule, inside("default"), inside("''")) != []


@pytest.mark.parametrize(
    ("rule", "beside"),
    [
        ("service-targets", "service"),
        ("service-names", "service"),
        ("token-unused", "account"),
        ("network-policy", "policy"),
    ],
)
def test_what_serves_pods_stands_in_their_namespace(rule: str, beside: str) -> None:
    assert find(rule, inside("one"), inside("one", BESIDE[beside])) == []
    assert find(rule, inside("one"), inside("two", BESIDE[beside])) != []


@pytest.mark.parametrize(("rule", "beside"), [("budget-blocks", "budget"), ("access-modes", "claim")])
def test_what_blocks_pods_stands_in_their_namespace(rule: str, beside: str) -> None:
    assert find(rule, inside("one"), inside("one", BESIDE[beside])) != []
    assert [m for m in find(rule, inside("one"), inside("two", BESIDE[beside])) if "selects no pods" not in m] == []


def test_an_account_is_granted_rights_in_its_own_namespace() -> None:
    binding = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: web, namespace: two}\n"
        "subjects: [{kind: ServiceAccount, name: web, namespace: NAMESPACE}]\n"
    )
    assert find("token-unused", inside("one"), inside("one", binding)) == []
    assert find("token-unused", inside("one"), inside("two", binding)) != []


@pytest.mark.parametrize("beside", ["service", "policy", "budget"])
def test_plain_manifests_are_no_release(beside: str) -> None:
    rules = {"service": "service-targets", "policy": "network-policy", "budget": "budget-blocks"}
    [found] = find(rules[beside], inside("two"), inside("one", BESIDE[beside]))
    assert found.endswith("selects no pods of these manifests")


NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
ROLE = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: NAMESPACE}\nrules: []\n"
EMPTY_POLICY = (
    "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: web, namespace: NAMESPACE}\n"
    "spec: {podSelector: {}}\n"
)


def test_a_chart_may_fill_a_namespace_that_it_makes() -> None:
    found = ["Role r sets metadata.namespace"]
    assert find("no-namespace", NAMESPACE, inside("team", ROLE), files=CHART) == []
    assert find("no-namespace", NAMESPACE, inside("other", ROLE), files=CHART) == found
    assert find("no-namespace", inside("team", ROLE), files=CHART) == found


def test_a_policy_of_a_new_namespace_is_for_pods_of_others() -> None:
    assert find("network-policy", NAMESPACE, inside("team", EMPTY_POLICY)) == []
    assert find("network-policy", inside("team", EMPTY_POLICY)) == [
        "NetworkPolicy web selects no pods of these manifests"
    ]


def test_releases_may_use_one_name_in_namespaces_of_their_own() -> None:
    def find_shared(*namespaces: str) -> list[str]:
        cases = tuple(
            Case("", Rendering(release, "default", tuple(Manifest("a.yaml", each) for each in documents), {}))
            for release, namespace in zip(("one", "two"), namespaces, strict=True)
            for documents in [parse_documents(inside(namespace, ROLE))]
        )
        return [
            found.message
            for found in run_checks(CheckInput(files=CHART, cases=cases), find_rules(("releases-apart",))).findings
        ]

    assert find_shared("one", "two") == []
    assert find_shared("team", "team") == ["Role r belongs to release one and to release two"]
