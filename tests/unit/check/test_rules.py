"""The rules that every chart must keep, by hand-made charts: silent about a good one, each finds its own fault.

The rules about what makes a chart of ours are in test_generated_chart.py.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from trainchart.archive.lock import Source, build_lock, dump_lock
from trainchart.check.finding import Case, CaseLint, CheckInput, Finding, Severity
from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.errors import Problem
from trainchart.helm.rendering import LintMessage, Manifest, Rendering
from trainchart.host.kubernetes_schemas import find_versions, read_definitions
from trainchart.kubernetes_yaml import parse_documents

SCHEMA = '{"type": "object", "properties": {"image": {"type": "string"}}, "additionalProperties": false}'
FILES = {
    "Chart.yaml": "apiVersion: v2\nname: mnist\nversion: 1.2.3\nannotations: {trainchart/strategy: x}\n",
    "values.yaml": "# image of every pod\nimage: registry.example.com/mnist\n",
    "values.schema.json": SCHEMA,
}
CLUSTER = """
apiVersion: v1
kind: ConfigMap
metadata: {name: RELEASE-cluster, labels: {helm.sh/chart: mnist-1.2.3}}
data:
  cluster.json: |
    {"strategy": "parameter-server", "service": "RELEASE", "port": 2222, "statusPort": 2223,
     "roles": {"worker": {"name": "RELEASE-worker", "replicas": 2}}}
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: RELEASE}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {app: mnist}
  ports: [{name: grpc, port: 2222}, {name: status, port: 2223}]
"""
WORKER = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: RELEASE-worker, annotations: {}}
spec:
  serviceName: RELEASE
  replicas: 2
  selector: {matchLabels: {app: mnist, role: worker}}
  template:
    metadata: {labels: {app: mnist, role: worker}}
    spec:
      containers:
        - name: training
          image: registry.example.com/mnist:1.0
          env: [{name: A, value: a}, {name: B, value: b}]
          ports: [{name: grpc, containerPort: 2222}]
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
  volumeClaimTemplates: []
"""
PDB = "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: RELEASE}}"
TEMPLATES = {"templates/cluster.yaml": CLUSTER, "templates/service.yaml": SERVICE, "templates/worker.yaml": WORKER}
BASIC = (
    "helm-lint",
    "renders",
    "values-schema",
    "kubernetes-schema",
    "objects-unique",
    "no-namespace",
    "entries-unique",
    "names-fit",
    "names-valid",
    "objects-specified",
    "releases-apart",
    "stable-selectors",
    "hosts-match",
    "lock-drift",
    "keys-unique",
)
LONG = tuple("r" * 40 + end for end in "ab")


@functools.cache
def kubernetes() -> tuple[KubernetesSchemas, ...]:
    return tuple(KubernetesSchemas(version, read_definitions(version)) for version in ("1.33", "1.37"))


def render(templates: Mapping[str, str], release: str = "exp") -> Rendering:
    texts = {path: text.replace("RELEASE", release) for path, text in templates.items()}
    manifests = tuple(Manifest(path, document) for path, text in texts.items() for document in parse_documents(text))
    return Rendering(release, "default", manifests, texts)


def chart(*, files: Mapping[str, str] = FILES, templates: Mapping[str, str] = TEMPLATES, **more: Any) -> CheckInput:
    long = tuple(Case("", render(templates, release), has_long_release=True) for release in LONG)
    return CheckInput(
        files={path: text.encode() for path, text in files.items()},
        cases=(Case("", render(templates)), *long, *more.pop("cases", ())),
        kubernetes=kubernetes(),
        **more,
    )


def find(given: CheckInput) -> tuple[Finding, ...]:
    return run_checks(given, find_rules(BASIC)).findings


def edited(path: str, old: str, new: str) -> CheckInput:
    assert old in TEMPLATES[path]
    return chart(templates={**TEMPLATES, path: TEMPLATES[path].replace(old, new)})


cluster = functools.partial(edited, "templates/cluster.yaml")
service = functools.partial(edited, "templates/service.yaml")
worker = functools.partial(edited, "templates/worker.yaml")


def with_file(path: str, text: str) -> CheckInput:
    return chart(files={**FILES, path: text})


def locked(change: Mapping[str, str]) -> CheckInput:
    source = Source("models/mnist.yaml", "0" * 64)
    contents = {path: text.encode() for path, text in FILES.items()}
    lock = dump_lock(build_lock(generator="0.1.0", spec=source, family=source, files=contents))
    return chart(files={**FILES, "trainchart.lock.yaml": lock, **change})


FAULTS: dict[str, tuple[Callable[[], CheckInput], str, list[str]]] = {
    "lint": (
        lambda: chart(lint=(CaseLint("", (LintMessage("error", "templates/", "object name does not conform"),)),)),
        "helm-lint",
        ["object name does not conform"],
    ),
    "a case does not render": (
        lambda: chart(cases=(Case("ci/a-values.yaml", failure=(Problem("no claim", where="templates/a.yaml:3:1"),)),)),
        "renders",
        ["no claim"],
    ),
    "values do not fit": (
        lambda: with_file("values.yaml", "image: 7\n"),
        "values-schema",
        ["does not match values.schema.json: image: 7 is not of type 'string'"],
    ),
    "a schema that is none": (
        lambda: with_file("values.schema.json", '{"$defs": {"a": {"type": "objekt"}}}'),
        "values-schema",
        ["is not a JSON schema: $defs.a.type: 'objekt' is not valid under any of the given schemas"],
    ),
    "a schema that is no JSON": (
        lambda: with_file("values.schema.json", "{,}"),
        "values-schema",
        ["is not JSON: Expecting property name enclosed in double quotes"],
    ),
    "values that are no YAML": (
        lambda: with_file("values.yaml", "a: [\n"),
        "values-schema",
        ["cannot be read: did not find expected node content"],
    ),
    "values of two documents": (
        lambda: with_file("values.yaml", "image: a\n---\nimage: b\n"),
        "values-schema",
        ["holds 2 YAML documents: Helm 3 reads only the first, Helm 4 reads all"],
    ),
    "values behind an empty document": (
        lambda: with_file("values.yaml", "---\n---\nimage: b\n"),
        "values-schema",
        ["holds 2 YAML documents: Helm 3 reads only the first, Helm 4 reads all"],
    ),
    "values with a directive": (
        lambda: with_file("values.yaml", "# Values\n\n%YAML 1.1\n---\nimage: b\n"),
        "values-schema",
        ["begins with the directive '%YAML 1.1': Helm 3 follows it, Helm 4 refuses the chart"],
    ),
    "values that Helm reads otherwise": (
        lambda: dataclasses.replace(with_file("values.yaml", "image: b\n1: a\n1.0: b\n"), values_fit=True),
        "values-schema",
        ["cannot be read: two keys that both become '1': YAML readers understand that differently"],
    ),
    "an unknown field": (
        lambda: worker("replicas: 2", "replicas: 2\n  replica: 2"),
        "kubernetes-schema",
        [
            "StatefulSet exp-worker: spec: Additional properties are not allowed ('replica' was unexpected) "
            "(Kubernetes 1.33, 1.37)"
        ],
    ),
    "a wrong type": (
        lambda: worker("value: a}", "value: 1}"),
        "kubernetes-schema",
        [
            "StatefulSet exp-worker: spec.template.spec.containers[0].env[0].value: 1 is not of type 'string' "
            "(Kubernetes 1.33, 1.37)"
        ],
    ),
    "a version that Kubernetes dropped": (
        lambda: chart(
            templates={
                **TEMPLATES,
                "templates/pdb.yaml": PDB,
            }
        ),
        "kubernetes-schema",
        [
            "PodDisruptionBudget exp: there is no PodDisruptionBudget in policy/v1beta1 (Kubernetes 1.33, 1.37)",
        ],
    ),
    "an object twice": (
        lambda: chart(templates={**TEMPLATES, "templates/x.yaml": SERVICE}),
        "objects-unique",
        ["Service exp is rendered twice"],
    ),
    "a namespace": (
        lambda: service("{name: RELEASE}", "{name: RELEASE, namespace: ml}"),
        "no-namespace",
        ["Service exp sets metadata.namespace"],
    ),
    "an environment variable twice": (
        lambda: worker("{name: B, value: b}", "{name: A, value: b}"),
        "entries-unique",
        ["StatefulSet exp-worker: container training has the environment variable A twice"],
    ),
    "a container port twice": (
        lambda: worker("containerPort: 2222}]", "containerPort: 2222}, {name: again, containerPort: 2222}]"),
        "entries-unique",
        ["StatefulSet exp-worker: container training has the port 2222/TCP twice"],
    ),
    "a Service port twice": (
        lambda: service("name: status, port: 2223", "name: grpc, port: 2222"),
        "entries-unique",
        [
            "Service exp: the Service has the port 2222/TCP twice",
            "Service exp: the Service has the port name grpc twice",
        ],
    ),
    "a mount path twice": (
        lambda: worker(
            "[{name: data, mountPath: /data}]", "[{name: data, mountPath: /d}, {name: data, mountPath: /d}]"
        ),
        "entries-unique",
        ["StatefulSet exp-worker: container training has the mount path /d twice"],
    ),
    "a label value that is too long": (
        lambda: worker(
            "{labels: {app: mnist, role: worker}}", "{labels: {app: mnist, role: worker, x: " + "y" * 64 + "}}"
        ),
        "names-fit",
        ["StatefulSet exp-worker: the value of label x has 64 characters, but the limit is 63"],
    ),
    "a Service name that is not a valid DNS label": (
        lambda: chart(
            templates={**TEMPLATES, "templates/x.yaml": SERVICE.replace("{name: RELEASE}", "{name: 1-RELEASE}")}
        ),
        "names-valid",
        ["Service '1-exp' is not a valid name"],
    ),
    "an object without a name": (
        lambda: chart(templates={**TEMPLATES, "templates/x.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {}}"}),
        "names-valid",
        ["ConfigMap (unnamed) has no metadata.name"],
    ),
    "a name with a letter that Kubernetes refuses": (
        lambda: chart(
            templates={
                **TEMPLATES,
                "templates/x.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: RELEASE_x}}",
            }
        ),
        "names-valid",
        ["ConfigMap 'exp_x' is not a valid name"],
    ),
    "a specification that is null": (
        lambda: chart(
            templates={
                **TEMPLATES,
                "templates/x.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: RELEASE-x}, spec: null}",
            }
        ),
        "objects-specified",
        ["Job exp-x: spec is null"],
    ),
    "a pod and a StatefulSet's pod with one host name": (
        lambda: chart(
            templates={
                **TEMPLATES,
                "templates/x.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: RELEASE-worker-1}\n"
                "spec: {containers: [{name: a, image: b}]}\n",
            }
        ),
        "names-fit",
        ["the pod host name exp-worker-1 is also one of StatefulSet exp-worker"],
    ),
    "a name without the release": (
        lambda: chart(
            templates={**TEMPLATES, "templates/x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fixed}\n"}
        ),
        "releases-apart",
        [f"ConfigMap fixed belongs to release exp and to release {LONG[0]}"],
    ),
    "the chart label in a selector": (
        lambda: worker("matchLabels: {app: mnist,", "matchLabels: {helm.sh/chart: x-1.2.3, app: mnist,"),
        "stable-selectors",
        ["StatefulSet exp-worker: spec.selector holds helm.sh/chart: x-1.2.3"],
    ),
    "the chart version in a pod template": (
        lambda: worker("{labels: {app: mnist, role: worker}}", "{labels: {app: mnist, role: worker, c: mnist-1.2.3}}"),
        "stable-selectors",
        ["StatefulSet exp-worker: the pod template holds c: mnist-1.2.3"],
    ),
    "the version in a claim template": (
        lambda: worker(
            "volumeClaimTemplates: []",
            "volumeClaimTemplates: [{metadata: {name: data, labels: "
            "{app.kubernetes.io/version: 1.2.3}}, spec: {accessModes: [ReadWriteOnce]}}]",
        ),
        "stable-selectors",
        ["StatefulSet exp-worker: a volumeClaimTemplate holds app.kubernetes.io/version: 1.2.3"],
    ),
    "more replicas than hosts": (
        lambda: worker("replicas: 2", "replicas: 3"),
        "hosts-match",
        ["cluster.json says 2 replicas of role worker, but StatefulSet exp-worker has 3"],
    ),
    "replicas nowhere": (
        lambda: worker("  replicas: 2\n", ""),
        "hosts-match",
        ["cluster.json says 2 replicas of role worker, but StatefulSet exp-worker has None"],
    ),
    "a host name of nobody": (
        lambda: cluster('"RELEASE-worker"', '"RELEASE-workers"'),
        "hosts-match",
        ["cluster.json says role worker is StatefulSet 'exp-workers', which is not rendered"],
    ),
    "another serviceName": (
        lambda: worker("serviceName: RELEASE", "serviceName: other"),
        "hosts-match",
        ["cluster.json says service 'exp', but StatefulSet exp-worker has serviceName 'other'"],
    ),
    "a Service that is not there": (
        lambda: cluster('"service": "RELEASE"', '"service": "gone"'),
        "hosts-match",
        [
            "cluster.json names Service 'gone', which is not rendered",
            "cluster.json says service 'gone', but StatefulSet exp-worker has serviceName 'exp'",
        ],
    ),
    "a Service that is not headless": (
        lambda: service("  clusterIP: None\n", ""),
        "hosts-match",
        ["Service exp is not headless, so pods have no DNS names"],
    ),
    "a Service that hides starting pods": (
        lambda: service("Addresses: true", "Addresses: false"),
        "hosts-match",
        ["Service exp hides pods that are not ready, but peers must find each other to become ready"],
    ),
    "a Service that selects others": (
        lambda: service("{app: mnist}", "{app: other}"),
        "hosts-match",
        ["Service exp does not select the pods of exp-worker"],
    ),
    "another port": (
        lambda: cluster('"port": 2222', '"port": 2220'),
        "hosts-match",
        ["cluster.json says port 2220, but no container of StatefulSet exp-worker has it"],
    ),
    "ordinals that do not start at 0": (
        lambda: worker("replicas: 2", "replicas: 2\n  ordinals: {start: 1}"),
        "hosts-match",
        ["StatefulSet exp-worker does not count from 0, as cluster.json assumes"],
    ),
    "a cluster description that is no JSON": (
        lambda: cluster('{"strategy"', "{strategy"),
        "hosts-match",
        ["cluster.json is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"],
    ),
    "an edited, a missing and an added file": (
        lambda: locked({"values.yaml": FILES["values.yaml"] + "# mine\n", "notes.txt": "mine"}),
        "lock-drift",
        ["was added by hand", "was changed by hand since it was generated"],
    ),
    "a damaged lock": (
        lambda: locked({"trainchart.lock.yaml": "format: 1\n"}),
        "lock-drift",
        ["trainchart.lock.yaml is damaged: 'generator'"],
    ),
    "a key twice in values": (
        lambda: with_file("values.yaml", "image: a\nimage: b\n"),
        "keys-unique",
        ["the key 'image' occurs twice in one mapping"],
    ),
    "a key twice in an object": (
        lambda: service("  clusterIP: None\n", "  clusterIP: None\n  clusterIP: None\n"),
        "keys-unique",
        ["renders the key 'clusterIP' twice in one mapping"],
    ),
}


def test_a_good_chart_has_no_findings() -> None:
    assert find(chart()) == ()
    assert find(locked({})) == ()
    assert find(locked({".trainchart-check.yaml": "waivers: []\n"})) == ()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_by_its_rule_and_told_once(fault: str) -> None:
    given, rule, messages = FAULTS[fault]
    found = find(given())
    assert sorted((finding.rule, finding.message) for finding in found) == [(rule, message) for message in messages]
    assert {finding.severity for finding in found} == {Severity.error}
    assert all(finding.path for finding in found)


@pytest.mark.parametrize(
    ("kind", "name", "is_valid"),
    [
        ("v1 ConfigMap", "a.b-c.1", True),
        ("v1 ConfigMap", "a..b", False),
        ("v1 ConfigMap", "a." * 126 + "a", True),
        ("v1 ConfigMap", "a." * 127 + "a", False),
        ("v1 ConfigMap", "-a", False),
        ("v1 Namespace", "a.b", False),
        ("v1 Namespace", "a" * 64, False),
        ("v1 Service", "a.b", False),
        ("rbac.authorization.k8s.io/v1 ClusterRole", "system:A_b", True),
        ("rbac.authorization.k8s.io/v1 ClusterRole", "a/b", False),
        ("user.openshift.io/v1 User", "system:admin", True),
        ("user.openshift.io/v1 User", "a/b", False),
        ("gateway.networking.k8s.io/v1 Gateway", "a:b", False),
        ("authorization.k8s.io/v1 SelfSubjectAccessReview", "", True),
        ("authentication.k8s.io/v1 TokenReview", "", True),
        ("v1 ConfigMap", "", False),
    ],
)
def test_names_by_kind(kind: str, name: str, is_valid: bool) -> None:
    version, _, plain = kind.partition(" ")
    document = {"apiVersion": version, "kind": plain, "metadata": {"name": name}}
    given = CheckInput(files={}, cases=(Case("", Rendering("", "default", (Manifest("a.yaml", document),), {})),))
    assert (run_checks(given, find_rules(("names-valid",))).findings == ()) is is_valid


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{apiVersion: v1, kind: Pod, metadata: {name: a}}", "Pod a: spec is missing"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: []}}",
            "Pod a: its pods have no containers",
        ),
        (
            "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {}}}",
            "Job a: its pods have no spec",
        ),
        ("{apiVersion: v1, kind: Service, metadata: {name: a}}", "Service a: spec is missing"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: null}", "ConfigMap (unnamed): metadata is null"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}", ""),
    ],
)
def test_what_an_object_lacks(text: str, message: str) -> None:
    manifests = tuple(Manifest("a.yaml", document) for document in parse_documents(text))
    given = CheckInput(files={}, cases=(Case("", Rendering("", "default", manifests, {})),))
    found = run_checks(given, find_rules(("objects-specified",))).findings
    assert [finding.message for finding in found] == [message] * bool(message)


def test_a_field_that_is_null_is_a_field_that_is_missing() -> None:
    [found] = find(worker("  selector: {matchLabels: {app: mnist, role: worker}}\n", "  selector: null\n"))[:1]
    assert found.message.startswith("StatefulSet exp-worker: spec: 'selector' is a required property")


def test_kubernetes_schemas_restrict_only_version_and_kind() -> None:
    """What check/kubernetes_schemas.py takes for granted when it compares shapes."""
    known = {"type", "required", "additionalProperties", "items", "$ref", "format", "oneOf", "enum", "properties"}
    told = {"description", "$schema", "default"}
    for version in find_versions():
        pending: list[tuple[str, Any]] = list(read_definitions(version).items())
        while pending:
            name, schema = pending.pop()
            keywords = {keyword for keyword in schema if not keyword.startswith("x-")}
            assert keywords <= known | told, (version, name, keywords)
            assert "enum" not in schema or name in ("apiVersion", "kind"), (version, name)
            pending += schema.get("properties", {}).items()
            pending += [(name, entry) for entry in schema.get("oneOf", ())]
            below = (schema.get(keyword) for keyword in ("items", "additionalProperties"))
            pending += [(name, found) for found in below if isinstance(found, dict)]


def test_a_wrong_entry_among_right_ones_is_found() -> None:
    given = worker("{name: A, value: a}, {name: B, value: b}", "{name: A, value: a}, {name: B, value: 7}")
    assert [finding.message for finding in find(given)] == [
        "StatefulSet exp-worker: spec.template.spec.containers[0].env[1].value: 7 is not of type 'string' "
        "(Kubernetes 1.33, 1.37)"
    ]
    assert find(chart()) == ()


def test_every_rule_has_a_fault_that_only_it_finds() -> None:
    assert {rule for _, rule, _ in FAULTS.values()} == set(BASIC)


@pytest.mark.parametrize(("length", "fits"), [(51, True), (52, True), (53, False)])
def test_the_limit_of_a_stateful_set_name(length: int, fits: bool) -> None:
    release = "r" * (length - len("-worker"))
    found = find(CheckInput(files={}, cases=(Case("", render(TEMPLATES, release)),)))
    names = [finding.message for finding in found if finding.rule == "names-fit"]
    expected = f"StatefulSet {release}-worker: the name {release}-worker has {length} characters, but the limit is 52"
    assert names == ([] if fits else [expected])


@pytest.mark.parametrize(("length", "fits"), [(61, True), (62, False)])
def test_the_limit_of_a_pod_host_name(length: int, fits: bool) -> None:
    stateful_set = WORKER.replace("RELEASE-worker", "w" * length).replace("replicas: 2", "replicas: 1")
    rendering = render({**TEMPLATES, "templates/worker.yaml": stateful_set})
    found = [finding.message for finding in find(CheckInput(files={}, cases=(Case("", rendering),)))]
    assert any("pod host name" in message for message in found) is not fits


@pytest.mark.parametrize("replicas", [0, 1, 3, 12])
def test_wanted_replicas_may_stand_in_the_annotation(replicas: int) -> None:
    stateful_set = WORKER.replace("  replicas: 2\n", "").replace(
        "annotations: {}", f'annotations: {{trainchart/replicas: "{replicas}"}}'
    )
    described = CLUSTER.replace('"replicas": 2', f'"replicas": {replicas}')
    templates = {**TEMPLATES, "templates/worker.yaml": stateful_set, "templates/cluster.yaml": described}
    assert find(chart(templates=templates)) == ()


def test_a_role_without_pods_needs_no_stateful_set() -> None:
    described = CLUSTER.replace('"replicas": 2', '"replicas": 0')
    templates = {"templates/cluster.yaml": described, "templates/service.yaml": SERVICE}
    assert find(chart(templates=templates)) == ()


def test_kinds_of_other_api_groups_are_not_judged() -> None:
    monitor = "apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: RELEASE}\nspec: {x: 1}\n"
    assert find(chart(templates={**TEMPLATES, "templates/x.yaml": monitor})) == ()


def test_finding_names_values_file_only_if_the_defaults_are_fine() -> None:
    broken = {**TEMPLATES, "templates/service.yaml": SERVICE.replace("  clusterIP: None\n", "")}
    only_there = chart(cases=(Case("ci/a-values.yaml", render(broken)),))
    assert [finding.values for finding in find(only_there)] == ["ci/a-values.yaml"]
    both = (Case("ci/a-values.yaml", render(broken)), Case("", render(broken)))
    assert [finding.values for finding in find(CheckInput(files=only_there.files, cases=both))] == [""]
    everywhere = chart(templates=broken, cases=(Case("ci/a-values.yaml", render(broken)),))
    assert [finding.values for finding in find(everywhere)] == [""]


def test_names_from_a_values_file_are_that_files_business() -> None:
    fixed = {**TEMPLATES, "templates/x.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}}"}
    renderings = [render(fixed, release) for release in ("exp", LONG[0])]
    given = chart(cases=tuple(Case("ci/a-values.yaml", rendering) for rendering in renderings))
    assert find(given) == ()


def test_findings_are_sorted_worst_first() -> None:
    files = {path: text for path, text in FILES.items() if path != "values.schema.json"}
    files["values.yaml"] = "image: a\nimage: b\nimage: c\n"
    lint = (CaseLint("", (LintMessage("info", "Chart.yaml", "something is recommended"),)),)
    found = find(chart(files=files, lint=lint))
    assert [(finding.severity, finding.path, finding.line) for finding in found] == [
        (Severity.error, "values.yaml", 2),
        (Severity.error, "values.yaml", 3),
        (Severity.warning, "values.schema.json", 0),
        (Severity.info, "Chart.yaml", 0),
    ]


def test_a_missing_icon_is_reported_once() -> None:
    lint = (CaseLint("", (LintMessage("info", "Chart.yaml", "icon is recommended"),)),)
    assert find(chart(lint=lint)) == ()


def test_the_position_of_a_render_problem_becomes_path_and_line() -> None:
    given = chart(cases=(Case("ci/a-values.yaml", failure=(Problem("no claim", where="templates/a.yaml:3:1"),)),))
    [found] = find(given)
    assert (found.path, found.line, found.values) == ("templates/a.yaml", 3, "ci/a-values.yaml")


def test_absurd_pod_counts_are_not_counted_one_by_one() -> None:
    rendering = render({"templates/worker.yaml": WORKER.replace("replicas: 2", "replicas: 50000000")})
    given = CheckInput(files={}, cases=(Case("", rendering),))
    assert run_checks(given, find_rules(("names-fit",))).findings == ()


def test_an_api_that_is_gone_is_told_with_what_took_its_place() -> None:
    [found] = find(chart(templates={**TEMPLATES, "templates/pdb.yaml": PDB}))
    assert found.hint == "apiVersion: policy/v1"


def test_lint_of_a_folder_that_is_gone_is_about_the_chart() -> None:
    [found] = find(chart(lint=(CaseLint("", (LintMessage("error", "/tmp/helm-lint1/c", "lacks a chart"),)),)))
    assert (found.path, found.message) == ("Chart.yaml", "lacks a chart")
