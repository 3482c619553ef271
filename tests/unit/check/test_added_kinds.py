"""Objects of kinds that Kubernetes does not define: names, labels and the pod templates of well-known kinds."""

from __future__ import annotations

import functools

import pytest

from trainchart.check.finding import Case, CheckInput
from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.check.objects import find_images, find_pods
from trainchart.check.registry import RULES, find_rules
from trainchart.check.runner import run_checks
from trainchart.check.unknown_kinds import UnknownKind, find_unknown_kinds
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.kubernetes_yaml import parse_documents

POD = "{spec: {containers: [{name: main, image: 'example.com/a:1', resources: {limits: {nvidia.com/gpu: 0.5}}}]}}"
KINDS = {
    "kubeflow.org/v1 TFJob": ("tfReplicaSpecs: {Worker: {replicas: 3, template: POD}}", 3),
    "kubeflow.org/v1 PyTorchJob": ("pytorchReplicaSpecs: {Master: {template: POD}}", 1),
    "kubeflow.org/v2beta1 MPIJob": ("mpiReplicaSpecs: {Launcher: {template: POD}}", 1),
    "kubeflow.org/v1 Notebook": ("template: POD", 1),
    "trainer.kubeflow.org/v1alpha1 TrainingRuntime": (
        "template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: POD}}}]}}",
        1,
    ),
    "jobset.x-k8s.io/v1alpha2 JobSet": ("replicatedJobs: [{name: a, template: {spec: {template: POD}}}]", 1),
    "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet": ("leaderWorkerTemplate: {size: 4, workerTemplate: POD}", 1),
    "batch.volcano.sh/v1alpha1 Job": ("tasks: [{name: a, replicas: 2, template: POD}]", 2),
    "ray.io/v1 RayCluster": ("workerGroupSpecs: [{groupName: a, replicas: 2, template: POD}]", 2),
    "ray.io/v1 RayJob": ("rayClusterSpec: {headGroupSpec: {template: POD}}", 1),
    "argoproj.io/v1alpha1 Rollout": ("replicas: 2, template: POD", 2),
    "apps.kruise.io/v1beta1 StatefulSet": ("replicas: 2, template: POD", 2),
    "keda.sh/v1alpha1 ScaledJob": ("jobTargetRef: {template: POD}", 1),
    "serving.knative.dev/v1 Service": ("template: POD", 1),
}


@functools.cache
def kubernetes() -> KubernetesSchemas:
    return KubernetesSchemas("1.33", read_definitions("1.33"))


def given(text: str) -> CheckInput:
    manifests = tuple(Manifest("a.yaml", document) for document in parse_documents(text))
    rendering = Rendering("", "default", manifests, {})
    return CheckInput(files={}, cases=(Case("", rendering),), kubernetes=(kubernetes(),))


def find(text: str, *rules: str) -> list[str]:
    return [found.message for found in run_checks(given(text), find_rules(rules) if rules else RULES).findings]


def tf_job(template: str, name: str = "mnist") -> str:
    spec = f"tfReplicaSpecs: {{PS: {{template: {template}}}, Worker: {{template: {POD}}}}}"
    return f"{{apiVersion: kubeflow.org/v1, kind: TFJob, metadata: {{name: {name}}}, spec: {{{spec}}}}}"


@pytest.mark.parametrize("kind", KINDS)
def test_pods_of_well_known_kinds_are_checked_as_pods(kind: str) -> None:
    api_version, plain = kind.split()
    spec, number = KINDS[kind]
    text = f"{{apiVersion: {api_version}, kind: {plain}, metadata: {{name: a}}, spec: {{{spec.replace('POD', POD)}}}}}"
    [message] = find(text, "quantities", "objects-specified", "fields-valid", "kubernetes-schema")
    assert message.startswith(f"{plain} a: spec.")
    assert message.endswith("emplate: container main: nvidia.com/gpu: 0.5 is not a whole number")
    [case] = given(text).cases
    assert case.rendering is not None
    assert [pods.replicas for pods in find_pods(case.rendering)] == [number]
    assert find_images(case.rendering) == ("example.com/a:1",)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{spec: {containers: [{name: a, image: b, imag: c}]}}", "PS.template.spec.containers[0]: Additional propert"),
        ("{spec: {containers: []}}", "PS.template: its pods have no containers"),
        ("{}", "PS.template: its pods have no spec"),
        (
            "{metadata: {labels: {a: 'b c'}}, spec: {containers: [{name: a, image: b}]}}",
            "'b c' is not a valid label value",
        ),
        (
            "{spec: {containers: [{name: a, image: b, env: [{name: A}, {name: A}]}]}}",
            "PS.template: container a has the environment variable A twice",
        ),
        (
            "{spec: {containers: [{name: a, image: b, volumeMounts: [{name: x, mountPath: /x}]}]}}",
            "PS.template: container a mounts 'x', which is not a pod volume",
        ),
        ("{spec: {restartPolicy: never, containers: [{name: a, image: b}]}}", "PS.template: restartPolicy is 'never'"),
    ],
)
def test_each_fault_of_a_pod_template_is_found(template: str, message: str) -> None:
    rules = ("kubernetes-schema", "objects-specified", "labels-valid", "entries-unique", "mounts-exist", "fields-valid")
    found = find(tf_job(template), *rules)
    assert found
    assert all(message in text for text in found)


@pytest.mark.parametrize(
    ("kind", "metadata", "message"),
    [
        ("kubeflow.org/v1 TFJob", "name: Bad_Name", "TFJob 'Bad_Name' is not a valid name"),
        ("kubeflow.org/v1 TFJob", "name: 1st", "TFJob '1st' is not a valid name"),
        ("kubeflow.org/v1 TFJob", "name: mnist-1", ""),
        ("jobset.x-k8s.io/v1alpha2 JobSet", "name: a.b", "JobSet 'a.b' is not a valid name"),
        ("cert-manager.io/v1 Certificate", "name: '*.example.com'", "Certificate '*.example.com' is not a valid name"),
        ("cert-manager.io/v1 Certificate", "name: www.example.com", ""),
        ("x.io/v1 X", "generateName: Run_", "X: metadata.generateName 'Run_' does not begin a valid name"),
        ("x.io/v1 X", "generateName: run-", ""),
        ("v1 ConfigMap", "generateName: run_", "ConfigMap: metadata.generateName 'run_' does not begin a valid name"),
        ("x.io/v1 X", "labels: {a: b}", "X (unnamed) has no metadata.name"),
        ("x.io/v1 TokenReview", "labels: {a: b}", "TokenReview (unnamed) has no metadata.name"),
        ("x.io/v1 X", "{name: a, labels: {a: 1}}", "metadata.labels.a: 1 is not of type 'string' (Kubernetes 1.33)"),
        ("x.io/v1 X", "{name: a, annotations: {a: true}}", "metadata.annotations.a: True is not of type 'string'"),
        ("x.io/v1 X", "{name: a, label: {a: b}}", "metadata: Additional properties are not allowed ('label' was"),
        ("x.io/v1 X", "{name: a, labels: {a b: c}}", "metadata.labels: 'a b' is not a valid label key"),
    ],
)
def test_names_and_labels_of_every_kind(kind: str, metadata: str, message: str) -> None:
    api_version, plain = kind.split()
    metadata = metadata if metadata.startswith("{") else f"{{{metadata}}}"
    found = find(
        f"{{apiVersion: {api_version}, kind: {plain}, metadata: {metadata}}}",
        *("names-valid", "labels-valid", "kubernetes-schema"),
    )
    assert len(found) == bool(message), found
    assert all(message in text for text in found)


@pytest.mark.parametrize(
    ("kind", "spec", "limit"),
    [
        ("kubeflow.org/v1 TFJob", "tfReplicaSpecs: {Worker: {replicas: 11}}", 63 - len("-worker-10")),
        ("kubeflow.org/v1 PyTorchJob", "pytorchReplicaSpecs: {Master: {replicas: 1}}", 63 - len("-master-0")),
        (
            "kubeflow.org/v2beta1 MPIJob",
            "mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 2}}",
            63 - len("-worker-1"),
        ),
        ("jobset.x-k8s.io/v1alpha2 JobSet", "replicatedJobs: [{name: rj, replicas: 101}]", 63 - len("-rj-100")),
        (
            "jobset.x-k8s.io/v1alpha2 JobSet",
            "replicatedJobs: [{name: rj, template: {spec: {completions: 1}}}]",
            63 - len("-rj-0-0-abcde"),
        ),
        ("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", "replicas: 3, leaderWorkerTemplate: {size: 4}", 50),
        ("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", "leaderWorkerTemplate: {size: 1}", 52),
        ("batch.volcano.sh/v1alpha1 Job", "tasks: [{name: a}]", 59),
        ("ray.io/v1 RayCluster", "a: b", 53),
        ("ray.io/v1 RayJob", "a: b", 47),
        ("apps.kruise.io/v1beta1 StatefulSet", "a: b", 52),
        ("trainer.kubeflow.org/v1alpha1 TrainJob", "a: b", 63),
        ("serving.knative.dev/v1 Service", "a: b", 63),
        ("kueue.x-k8s.io/v1beta1 LocalQueue", "a: b", 253),
        ("example.com/v1 Job", "a: b", 253),
    ],
)
def test_names_of_added_kinds_have_the_length_that_works(kind: str, spec: str, limit: int) -> None:
    api_version, plain = kind.split()
    text = f"{{apiVersion: {api_version}, kind: {plain}, metadata: {{name: NAME}}, spec: {{{spec}}}}}"
    rules = ("names-valid", "names-fit")
    assert find(text.replace("NAME", "a" * limit), *rules) == []
    assert find(text.replace("NAME", "a" * (limit + 1)), *rules)


@pytest.mark.parametrize("kind", ["kubeflow.org/v1 TFJob", "ray.io/v1 RayCluster", "x.io/v1 X", "v1 Service"])
def test_no_name_is_longer_than_any_api_server_takes(kind: str) -> None:
    api_version, plain = kind.split()
    text = f"{{apiVersion: {api_version}, kind: {plain}, metadata: {{name: {'a' * 254}}}, spec: {{a: b}}}}"
    [found] = run_checks(given(text), find_rules(("names-valid",))).findings
    assert found.message.endswith("is not a valid name")
    assert found.hint.endswith("; at most 253 characters")


def test_malformed_added_objects_are_no_reason_to_fail() -> None:
    for kind, spec in (
        ("jobset.x-k8s.io/v1alpha2 JobSet", "{replicatedJobs: [a, {replicas: x, template: {spec: 1}}]}"),
        ("kubeflow.org/v1 TFJob", "{tfReplicaSpecs: {Worker: 3, 7: {replicas: '2'}}}"),
        ("leaderworkerset.x-k8s.io/v1 LeaderWorkerSet", "{leaderWorkerTemplate: 3}"),
        ("batch.volcano.sh/v1alpha1 Job", "3"),
    ):
        api_version, plain = kind.split()
        text = f"{{apiVersion: {api_version}, kind: {plain}, metadata: {{name: a}}, spec: {spec}}}"
        assert find(text, "names-valid", "names-fit") == []


def test_custom_resource_definition_has_plural_and_group_as_name() -> None:
    text = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: NAME}, "
    text += "spec: {group: x.io, names: {plural: xs}}}"
    assert find(text.replace("NAME", "xs.x.io"), "names-valid") == []
    [message] = find(text.replace("NAME", "x.x.io"), "names-valid")
    assert "must have the name xs.x.io" in message


def test_a_kind_of_another_group_is_not_the_kind_of_kubernetes() -> None:
    text = (
        "{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: a}, spec: {selector: all()}}\n---\n"
    )
    text += "{apiVersion: x.io/v1, kind: Service, metadata: {name: 1-a}, spec: {selector: {a: b}}}\n---\n"
    text += "{apiVersion: x.io/v1, kind: StatefulSet, metadata: {name: " + "a" * 60 + "}}\n---\n"
    text += (
        "{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {a: c}}, spec: {containers: [{name: a, image: b}]}}"
    )
    assert find(text, "names-valid", "names-fit", "network-policy", "service-targets", "objects-specified") == []


def test_the_kinds_that_no_schema_describes_are_listed() -> None:
    text = (
        f"{tf_job(POD)}\n---\n{tf_job(POD, 'b')}\n---\n{{apiVersion: x.io/v1, kind: X, metadata: {{name: x}}}}\n---\n"
    )
    text += "{apiVersion: v1, kind: Secret, metadata: {name: s}}"
    assert find_unknown_kinds(given(text)) == (
        UnknownKind("kubeflow.org/v1", "TFJob", ("mnist", "b"), has_pods=True),
        UnknownKind("x.io/v1", "X", ("x",), has_pods=False),
    )
