"""The rules about what a chart of ours is like: a whole generated chart, and one fault at a time in it.

The rendering is read from tests/golden, so no Helm engine is needed. What the basic rules find is in test_rules.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from trainchart.check.finding import Case, CheckInput, Finding, Probe, Severity
from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.check.registry import RULES, find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.host.kubernetes_schemas import read_definitions
from trainchart.kubernetes_yaml import parse_documents

GOLDEN = Path(__file__).parent.parent.parent / "golden" / "parameter-server"
CHART = GOLDEN / "chart"
A_VALUE = "envFrom: []  # Secrets or ConfigMaps whose keys all become environment variables."
"""A line of its values.yaml."""
BASIC = {"helm-lint", "renders", "values-schema", "kubernetes-schema", "objects-unique", "no-namespace"}
BASIC |= {
    "entries-unique",
    "names-fit",
    "names-valid",
    "objects-specified",
    "releases-apart",
    "stable-selectors",
    "hosts-match",
    "lock-drift",
    "keys-unique",
}
"""Those that test_rules.py puts to the test."""


@functools.cache
def chart_files() -> dict[str, bytes]:
    return {path.relative_to(CHART).as_posix(): path.read_bytes() for path in CHART.rglob("*") if path.is_file()}


@functools.cache
def kinds() -> tuple[KubernetesSchemas, ...]:
    return tuple(KubernetesSchemas(version, read_definitions(version)) for version in ("1.33", "1.37"))


def parse(text: str) -> Rendering:
    """Return the rendering that a golden file holds: every document stands below the name of its template."""
    manifests = []
    texts: dict[str, str] = {}
    for part in text.split("---\n")[1:]:
        source = part.partition("\n")[0].removeprefix("# ")
        if source != "NOTES.txt":
            manifests += [Manifest(source, document) for document in parse_documents(part)]
            texts[source] = texts.get(source, "") + "---\n" + part
    return Rendering("exp-7", "default", tuple(manifests), texts)


EMPTY_DIR = "emptyDir:\n            sizeLimit: 64Mi"
"""The first one of the golden rendering."""


@functools.cache
def golden_text() -> str:
    """Return the golden rendering without the run controller's Job, so that the first pod is one that trains."""
    parts = (GOLDEN / "manifests.yaml").read_text().split("---\n")
    return "---\n".join(part for part in parts if "\nkind: Job\n" not in part)


def given(rendering: Rendering | None = None, **files: str) -> CheckInput:
    changed = {path.replace("__", "/"): text.encode() for path, text in files.items()}
    cases = (Case("", rendering or parse(golden_text())),)
    return CheckInput(files=chart_files() | changed, cases=cases, kinds=kinds(), values_fit=True)


def objects(old: str, new: str) -> Callable[[], CheckInput]:
    """Return the chart with a change in what it renders to, at the first place only."""

    def change() -> CheckInput:
        assert old in golden_text(), old
        return given(parse(golden_text().replace(old, new, 1)))

    return change


_IMAGE = " image: registry.example.com/ml/parameter-server"
MOVING = objects(f"{_IMAGE}:1.4.0", _IMAGE)
"""A container whose image has no tag."""


def with_controller() -> CheckInput:
    """Return the chart with its run controller's Job, which runs the training image."""
    return given(parse((GOLDEN / "manifests.yaml").read_text()))


def source(path: str, old: str, new: str) -> Callable[[], CheckInput]:
    """Return the chart with a change in one of its files, at the first place only."""

    def change() -> CheckInput:
        text = chart_files()[path].decode()
        assert old in text, old
        return replace(given(), files=chart_files() | {path: text.replace(old, new, 1).encode()})

    return change


def file(path: str, text: str) -> Callable[[], CheckInput]:
    return lambda: replace(given(), files=chart_files() | {path: text.encode()})


def without(path: str) -> Callable[[], CheckInput]:
    return lambda: replace(given(), files={known: text for known, text in chart_files().items() if known != path})


def appended(text: str) -> Callable[[], CheckInput]:
    return lambda: given(parse(golden_text() + "---\n# templates/x.yaml\n" + text))


def probed(probe: Probe, old: str, new: str) -> Callable[[], CheckInput]:
    assert old in golden_text(), old
    return lambda: replace(given(), probes={probe: parse(golden_text().replace(old, new, 1))})


METADATA = (
    "metadata: {name: x, labels: {app.kubernetes.io/name: a, app.kubernetes.io/instance: b, helm.sh/chart: c, "
    "app.kubernetes.io/managed-by: Helm, app.kubernetes.io/component: d}}\n"
)
MONITOR = f"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\n{METADATA}spec: {{}}\n"
ENDPOINTS = f"apiVersion: v1\nkind: Endpoints\n{METADATA}"
OLD_BUDGET = f"apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\n{METADATA}"
SECURITY = "          securityContext:\n            allowPrivilegeEscalation: false\n"

FEW_TASKS = '"replicas":2},"worker":{"name":"exp-7-parameter-server-worker","replicas":2}'
MANY_TASKS = f'"replicas":1000}},"worker":{{"name":"{"w" * 63}","replicas":1000}}'

FAULTS: tuple[tuple[str, Callable[[], CheckInput], str], ...] = (
    (
        "chart-fields",
        source("Chart.yaml", "type: application", "typ: application"),
        "Helm does not know the field 'typ'",
    ),
    ("chart-fields", source("Chart.yaml", "version: 1.2.3", "version: 1.2"), "version: 1.2 has the wrong type"),
    ("chart-fields", source("Chart.yaml", "version: 1.2.3", "version: '1.2'"), "'1.2' is not a SemVer 2 version"),
    (
        "chart-fields",
        source("Chart.yaml", "name: parameter", "name: Parameter"),
        "'Parameter-server' is not a chart name",
    ),
    (
        "chart-fields",
        source("Chart.yaml", "  - name: Digits", "  - nmae: Digits"),
        "maintainers: Helm does not know nmae",
    ),
    ("chart-fields", source("Chart.yaml", "apiVersion: v2", "apiVersion: v3"), "apiVersion 'v3' is neither v2 nor v1"),
    ("chart-fields", file("Chart.yaml", "a: [\ntrainchart/strategy: x\n"), "cannot be read:"),
    ("chart-fields", file("requirements.yaml", "dependencies: []\nversion: 9.9.9\n"), "Helm prefers its key version"),
    ("chart-fields", file("requirements.yaml", "a: ["), "cannot be read:"),
    ("chart-about", source("Chart.yaml", "icon:", "#icon:"), "has no icon"),
    ("archive-clean", file("docs/notes.rej", "x"), "is a leftover that would go into the archive"),
    ("archive-clean", file("tests/a_test.yaml", "a: 1\n"), "is for the chart's authors, not for the archive"),
    ("archive-clean", file(".helmignore", "a**\n"), "Helm does not support **"),
    ("archive-clean", file("big.txt", "x" * 2**20), "the chart holds"),
    ("secrets-absent", file("values.yaml", "env: {DB_PASSWORD: hunter2}\n"), "DB_PASSWORD is given as plain text"),
    ("secrets-absent", file("values.yaml", "args: [--api_key=Zk39vLq0]\n"), "api_key is given as plain text"),
    ("secrets-absent", file("files/KEY.PEM", "x"), "files of this name hold a private key, which everyone who pulls"),
    (
        "secrets-absent",
        file("templates/key.yaml", "# hf_" + "a1" * 17),
        "holds a Hugging Face token, which everyone",
    ),
    ("yaml-style", source("values.yaml", "\nargs: []", "\nargs:   []"), "too many spaces after colon (colons)"),
    ("yaml-style", file("ci/a-values.yaml", "on: yes\n"), "truthy value should be one of"),
    ("rendered-style", objects("    - Ingress\n", "    -   Ingress\n"), "too many spaces after hyphen (hyphens)"),
    ("schema-closed", source("values.schema.json", '"additionalProperties": false,', ""), "takes unknown keys"),
    ("schema-agrees", source("values.yaml", A_VALUE, f"{A_VALUE}\nargz: []"), "argz is not in the schema"),
    ("schema-agrees", source("values.yaml", "\ndnsPolicy: ''", ""), "dnsPolicy is in the schema but has no default"),
    (
        "set-types",
        file("values.schema.json", '{"properties": {"rate": {"type": "number"}}}'),
        "rate is a number, but --set rate=0.5 delivers a string, which the schema refuses",
    ),
    (
        "set-types",
        file("values.schema.json", '{"properties": {"tag": {"type": "string"}}}'),
        "tag is a string, but --set tag=20261121 delivers a number, which the schema refuses",
    ),
    (
        "values-defined",
        source("templates/service.yaml", ".Values.service.port", ".Values.service.prot"),
        ".Values.service.prot is",
    ),
    (
        "repeatable",
        source("templates/service.yaml", "{{ int64 .Values.service.port }}", '{{ printf "}}%s" (randNumeric 4) }}'),
        "randNumeric returns something different for every rendering",
    ),
    ("repeatable", file("templates/x.yaml", "a: {{ now | date `2006` }}"), "now returns something different"),
    (
        "repeatable",
        file("templates/x.yaml", 'a: {{ index .Chart.Annotations "trainchart/git-commit" }}'),
        "reads the build annotations trainchart/",
    ),
    (
        "repeatable",
        file("templates/x.yaml", "a: {{ $.Chart.Metadata.Annotations | toJson }}"),
        "reads the build annotations trainchart/",
    ),
    ("values-used", source("values.yaml", A_VALUE, f"{A_VALUE}\nargz: []"), "argz is used by no template"),
    (
        "values-as-written",
        lambda: replace(given(**{"ci/v-values.yaml": ""}), added_values={"ci/v-values.yaml": "image: {tag: 1.10}"}),
        "image.tag: 1.10 becomes the text 1.1",
    ),
    ("numbers-plain", objects("value: '5'", "value: '2e+06'"), "env[15].value is 2e+06"),
    ("numbers-plain", objects("port: 2222", "port: 2e+06"), "is 2e+06"),
    (
        "numbers-plain",
        probed(Probe.large_numbers, "value: '5'", "value: '2.000005e+06'"),
        "would be 2.000005e+06 with a larger",
    ),
    (
        "numbers-printed",
        source("templates/service.yaml", "int64 .Values.service.port", ".Values.service.port"),
        ".Values.service.port is printed as a float, so a million becomes 1e+06",
    ),
    (
        "values-commented",
        source("values.yaml", A_VALUE, "envFrom: []"),
        "envFrom has no comment",
    ),
    ("readme-agrees", without("README.md"), "there is no README.md"),
    ("readme-agrees", source("README.md", "| `image.tag` |", "| `image.tags` |"), "does not name the value image.tag"),
    (
        "readme-agrees",
        source("README.md", "| `image.tag` |", "| `image.tags` |"),
        "names the value image.tags, which values.yaml",
    ),
    ("api-versions", appended(ENDPOINTS), "Endpoints x: v1 Endpoints has been deprecated since Kubernetes 1.33"),
    ("api-versions", appended(OLD_BUDGET), "there is no PodSecurityPolicy in policy/v1beta1 in Kubernetes 1.33, 1.37"),
    (
        "labels",
        objects("app.kubernetes.io/managed-by: Helm\n", "x: y\n"),
        "lacks the label app.kubernetes.io/managed-by",
    ),
    (
        "selectors-own",
        objects("io/component: chief\n  template", "io/component: x\n  template"),
        "does not select its own pods",
    ),
    (
        "selectors-own",
        objects("      app.kubernetes.io/component: chief\n  template", "  template"),
        "StatefulSet exp-7-parameter-server-chief also selects the pods of StatefulSet exp-7-parameter-server-worker",
    ),
    (
        "labels-valid",
        objects("trainchart/training: 'true'\n", "trainchart/training: 'a b'\n"),
        "'a b' is not a valid label",
    ),
    (
        "fields-valid",
        objects("imagePullPolicy: IfNotPresent", "imagePullPolicy: Sometimes"),
        "is 'Sometimes', not Always",
    ),
    ("pod-security", objects(SECURITY, "          securityContext:\n"), "container training may gain privileges"),
    (
        "pod-security",
        objects("                - ALL\n", "                - CHOWN\n"),
        "container training keeps capabilities",
    ),
    ("pod-security", objects(EMPTY_DIR, "hostPath: {path: /}"), "volume state is of the type hostPath"),
    (
        "pod-security",
        objects("enableServiceLinks: false", "enableServiceLinks: false\n      hostNetwork: true"),
        "set hostNetwork",
    ),
    (
        "pod-security",
        objects("containerPort: 2222", "containerPort: 2222\n              hostPort: 1"),
        "uses port 1 of the node",
    ),
    (
        "token-unused",
        objects(
            "automountServiceAccountToken: false\n      enable", "automountServiceAccountToken: true\n      enable"
        ),
        "get a Kubernetes API token",
    ),
    ("images-pinned", MOVING, "which can change at any time"),
    ("images-pinned", objects("imagePullPolicy: IfNotPresent\n", "stdin: false\n"), "has no imagePullPolicy"),
    (
        "mounts-exist",
        objects("- name: tmp\n          emptyDir", "- name: temp\n          emptyDir"),
        "mounts 'tmp', which is not a pod volume",
    ),
    (
        "references-exist",
        objects("name: exp-7-parameter-server-cluster-ead12b3f", "name: y"),
        "the chart does not render",
    ),
    (
        "variables-ordered",
        objects("value: chief\n", "value: $(TRAINCHART_RUN_ID)\n"),
        "TRAINCHART_TASK_TYPE refers to TRAINCHART_RUN_ID, which is defined after it: $(TRAINCHART_RUN_ID) stays text",
    ),
    (
        "variables-known",
        objects("value: chief\n", "value: $(TASK)\n"),
        "there is no variable TASK for $(TASK) in TRAINCHART_TASK_TYPE",
    ),
    (
        "quantities",
        objects("nvidia.com/gpu: '1'", "nvidia.com/gpu: '1.5'"),
        "nvidia.com/gpu: 1.5 is not a whole number",
    ),
    ("quantities", objects("nvidia.com/gpu: '1'", "gpu: '1'"), "gpu is not a Kubernetes resource"),
    ("quantities", objects("memory: 2Gi", "memory: 2GB"), "resources.requests.memory: '2GB' is not a quantity"),
    ("quantities", objects("memory: 2Gi", "memory: 3Gi"), "requests 3Gi of memory, above its limit 2Gi"),
    ("quantities", objects("storage: 20Gi", "storage: '0'"), "storage '0' is not a valid size"),
    ("quantities", objects("storage: 20Gi", "storage: '5'"), "storage '5' is less than 1Mi"),
    ("quantities", objects("memory: 2Gi", "memory: 200m"), "memory: '200m' is less than 1Mi"),
    (
        "resources-set",
        objects("            limits:\n              cpu: '1'\n", "            limits:\n"),
        "has no limits.cpu",
    ),
    (
        "service-targets",
        objects("trainchart/training: 'true'\n  ports", "trainchart/training: x\n  ports"),
        "selects no pods of the release",
    ),
    (
        "service-targets",
        objects("targetPort: tensorflow", "targetPort: grpc"),
        "no pod that it selects has the port grpc",
    ),
    ("service-names", objects("serviceName: exp-7-parameter-server", "serviceName: other"), "names Service 'other'"),
    (
        "service-names",
        objects("                  name: tensorboard", "                  name: http"),
        "has no port http",
    ),
    (
        "peers-resolve",
        objects("enableServiceLinks: false", "enableServiceLinks: false\n      dnsPolicy: Default"),
        "dnsPolicy Default does not resolve Services",
    ),
    (
        "probe-ports",
        objects("tcpSocket:\n              port: tensorboard", "tcpSocket:\n              port: http"),
        "probes port http",
    ),
    (
        "network-policy",
        objects("  ingress:\n    - from:", "  ingress:\n    - ports: []\n    - from:"),
        "allows traffic from anywhere",
    ),
    ("network-policy", objects("- port: tensorboard", "- port: board"), "names the port board, which no pod"),
    (
        "network-policy",
        objects("      app.kubernetes.io/instance: exp-7\n  policyTypes", "      a: b\n  policyTypes"),
        "selects no pods",
    ),
    ("budget-blocks", objects("maxUnavailable: 1", "maxUnavailable: 0"), "has maxUnavailable 0, so no node"),
    ("budget-blocks", objects("maxUnavailable: 1", "minAvailable: 6"), "has minAvailable 6 of 6 pods"),
    (
        "budget-blocks",
        objects("  unhealthyPodEvictionPolicy: AlwaysAllow\n", ""),
        "protects pods that are not running anyway",
    ),
    ("access-modes", objects("- ReadWriteMany", "- ReadWriteOnce"), "is ReadWriteOnce, but 6 pods mount it"),
    (
        "volume-types",
        objects(EMPTY_DIR, "cephfs: {monitors: [a]}"),
        "is of the type cephfs, removed in Kubernetes 1.31",
    ),
    (
        "resource-policy",
        objects("resource-policy: keep", "resource-policy: kept"),
        "is 'kept', but Helm only knows keep",
    ),
    (
        "immutable-names",
        probed(Probe.more_replicas, '"replicas":1', '"replicas":3'),
        "is immutable, but different values change its content under the same name",
    ),
    ("hooks", objects("helm.sh/hook: test", "helm.sh/hook: tests"), "Helm does not know the hook 'tests'"),
    ("hooks", objects("helm.sh/hook: test", "helm.sh/hook: crd-install"), "does not know the hook 'crd-install'"),
    ("hooks", objects("helm.sh/hook: test", "helm.sh/hook: ' '"), "names no hook, so Helm does not create the object"),
    ("hooks", objects("helm.sh/hook: test", "helm.sh/hook: TEST,,test"), "names no hook, so Helm does not create"),
    (
        "hooks",
        objects("before-hook-creation,hook-succeeded", "hook-succeeded"),
        "the old object is in the way of its next run",
    ),
    (
        "hooks",
        objects("before-hook-creation,hook", "before-hook-creation,hok"),
        "Helm does not know the hook-delete-policy",
    ),
    ("helm-test", objects("helm.sh/hook: test", "x: y"), "has no test for helm test"),
    ("helm-test", objects("helm.sh/hook-delete-policy", "x"), "stays behind after helm test"),
    ("notes", without("templates/NOTES.txt"), "there are no notes"),
    (
        "notes",
        source("templates/NOTES.txt", "Strategy:", "--force"),
        "names --force, which Helm 4 calls --force-replace",
    ),
    ("custom-resources", appended(MONITOR), "needs the API monitoring.coreos.com, which a plain cluster does not have"),
    ("cluster-size", objects('"replicas":2', '"replicas":3000'), "replicas must be at most 1000, not 3000"),
    ("cluster-size", objects(FEW_TASKS, MANY_TASKS), "bytes, but Linux allows 131072"),
    ("cluster-size", probed(Probe.many_pods, FEW_TASKS, MANY_TASKS), "bytes, but Linux allows 131072"),
    (
        "launcher-environment",
        objects("name: TRAINCHART_ORDINAL", "name: ORDINAL"),
        "lacks the variable TRAINCHART_ORDINAL",
    ),
    (
        "launcher-environment",
        objects("value: '30'", "value: '31'"),
        "the launcher has 31 seconds to stop, but the pod has 30",
    ),
    (
        "training-sets",
        objects("podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady"),
        "one after another",
    ),
    ("training-sets", objects("type: OnDelete", "type: RollingUpdate"), "an upgrade restarts its pods"),
    ("training-sets", objects("shareProcessNamespace: true", "shareProcessNamespace: false"), "runs as process 1"),
    ("training-sets", objects("name: NVIDIA_VISIBLE_DEVICES", "name: X"), "requests no GPU but sees those of the node"),
    ("token-image", with_controller, "runs the training image"),
    (
        "claims-kept",
        objects("helm.sh/resource-policy: keep", "x: y"),
        "1 volumes must be kept (checkpoints), but 0 claims",
    ),
)


def find(chart: CheckInput, *ids: str) -> tuple[Finding, ...]:
    return run_checks(chart, find_rules(ids) if ids else RULES).findings


def test_a_generated_chart_has_no_findings() -> None:
    assert find(given()) == ()


def test_value_shown_only_in_a_comment_needs_no_default() -> None:
    unset = source("values.yaml", "  depth: '18'", "  # depth: unset; the program decides")()
    assert find(unset) == ()


@pytest.mark.parametrize(("rule", "change", "message"), FAULTS, ids=[f"{rule}: {text}" for rule, _, text in FAULTS])
def test_a_fault_is_found_by_its_rule(rule: str, change: Callable[[], CheckInput], message: str) -> None:
    found = find(change(), rule)
    assert any(message in finding.message for finding in found), found
    assert all(finding.rule == rule for finding in found)
    assert all(finding.path or rule == "archive-clean" for finding in found)


@pytest.mark.parametrize(
    "text",
    [
        "{{- /* uuidv4, or now */}}",
        "now: {{ .Values.now }}",
        '{{ printf "now %s" $now }}',
        "{{ `now` }}",
        "{{ nowhere }}",
        "# htpasswd",
        '{{ index .Chart.Annotations "category" }}{{ .Chart.Annotations.category }}{{ .Chart.AnnotationsX }}',
    ],
)
def test_what_only_sounds_random_is_left_alone(text: str) -> None:
    assert find(file("templates/x.yaml", text)(), "repeatable") == ()


def test_randomness_has_its_line_and_only_warns_in_others_charts() -> None:
    files = {"Chart.yaml": b"name: a\n", "templates/x.yaml": b"{{- /* a\nb */}}\na: {{\n  genCA 1 2 }}\n"}
    [found] = find(CheckInput(files=files), "repeatable")
    assert (found.line, found.severity) == (4, Severity.warning)


def test_every_rule_is_put_to_the_test() -> None:
    assert BASIC | {rule for rule, _, _ in FAULTS} | {"waivers", "pack-policy"} == {rule.id for rule in RULES}
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_every_rule_says_why_and_where_that_is_written() -> None:
    for rule in RULES:
        assert rule.why.endswith("."), rule.id
        assert rule.source.startswith("https://") or (GOLDEN.parents[2] / rule.source).is_file(), rule.id
        assert rule.check.__doc__, rule.id
        # What is only our style is never worse in a chart of somebody else's.
        assert rule.others.rank >= rule.severity.rank, rule.id


def test_somebody_elses_chart_is_judged_milder() -> None:
    insecure = objects(SECURITY, "          securityContext:\n")()
    assert {finding.severity for finding in find(insecure, "pod-security")} == {Severity.error}
    files = {
        **insecure.files,
        "Chart.yaml": insecure.files["Chart.yaml"].replace(b"trainchart/strategy", b"x/strategy"),
    }
    assert {finding.severity for finding in find(replace(insecure, files=files), "pod-security")} == {Severity.info}


def test_rules_for_charts_and_trainings_skip_plain_manifests() -> None:
    rendering = parse(golden_text().replace("podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady"))
    plain = CheckInput(files={"a.yaml": b""}, cases=(Case("", replace(rendering, release="")),), kinds=kinds())
    assert [finding for finding in find(plain) if finding.severity is not Severity.info] == []


def test_a_finding_in_values_has_its_line() -> None:
    [found] = find(source("values.yaml", A_VALUE, f"{A_VALUE}\nargz: []")(), "values-used")
    lines = chart_files()["values.yaml"].decode().splitlines()
    assert (found.path, found.line) == ("values.yaml", lines.index(A_VALUE) + 2)


WAIVED = "# trainchart: ignore[values-used] read by the operator's own templates"


@pytest.mark.parametrize(
    "text",
    [f"{A_VALUE}\n{WAIVED}\nargz: []", f"{A_VALUE}\nargz: []  {WAIVED}"],
    ids=["on the line above", "on the line"],
)
def test_a_waiver_in_a_file_silences_its_line(text: str) -> None:
    result = run_checks(source("values.yaml", A_VALUE, text)(), find_rules(("values-used", "waivers")))
    assert result.findings == ()
    assert [entry.waiver.reason for entry in result.waived] == ["read by the operator's own templates"]


def test_a_waiver_reaches_no_further_than_its_line() -> None:
    found = find(source("values.yaml", A_VALUE, f"{A_VALUE}\n{WAIVED}\n\n\nargz: []")(), "values-used", "waivers")
    assert [finding.rule for finding in found] == ["values-used", "waivers"]


def test_waiver_on_first_lines_or_in_a_template_covers_the_file() -> None:
    first = source("values.yaml", A_VALUE, f"{A_VALUE}\nargz: []")()
    text = b"# trainchart: ignore[values-used] not ours\n" + first.files["values.yaml"]
    assert find(replace(first, files={**first.files, "values.yaml": text}), "values-used", "waivers") == ()
    moving = MOVING()
    path = "templates/statefulset.yaml"
    text = b"{{- /* trainchart: ignore[images-pinned] rebuilt every night */}}\n" + moving.files[path]
    assert find(replace(moving, files={**moving.files, path: text}), "images-pinned", "waivers") == ()


CHART_WAIVER = """
waivers:
  - rule: images-pinned
    path: templates/state*.yaml
    reason: rebuilt every night
    until: 2027-01-31
"""


@pytest.mark.parametrize(
    ("text", "today", "rules"),
    [
        (CHART_WAIVER, date(2027, 1, 31), []),
        (CHART_WAIVER, date(2027, 2, 1), ["images-pinned", "waivers"]),
        (CHART_WAIVER.replace("state*", "other"), date(2027, 1, 1), ["images-pinned", "waivers"]),
        (CHART_WAIVER.replace("    reason: rebuilt every night\n", ""), date(2027, 1, 1), ["images-pinned", "waivers"]),
        (CHART_WAIVER.replace("images-pinned", "images"), date(2027, 1, 1), ["images-pinned", "waivers"]),
        (CHART_WAIVER.replace("2027-01-31", "soon"), date(2027, 1, 1), ["images-pinned", "waivers"]),
        (CHART_WAIVER.replace("path:", "file:"), date(2027, 1, 1), ["images-pinned", "waivers"]),
        ("waivers: {}", date(2027, 1, 1), ["images-pinned", "waivers"]),
        ("waivers: [", date(2027, 1, 1), ["images-pinned", "waivers"]),
    ],
    ids=["in force", "expired", "useless", "no reason", "no such rule", "no date", "unknown key", "no list", "no YAML"],
)
def test_a_waiver_for_a_chart(text: str, today: date, rules: list[str]) -> None:
    moving = MOVING()
    files = {**moving.files, ".trainchart-check.yaml": text.encode()}
    found = find(replace(moving, files=files, today=today), "images-pinned", "waivers")
    assert sorted(finding.rule for finding in found) == rules


def test_a_waiver_of_a_rule_that_is_not_asked_is_left_alone() -> None:
    waived = source("values.yaml", A_VALUE, f"{A_VALUE}\nargz: []  {WAIVED}")()
    assert find(waived, "images-pinned", "waivers") == ()


@pytest.mark.parametrize(("wanted", "suggestion"), [("name-fit", "names-fit"), ("hostmatch", "hosts-match")])
def test_an_unknown_rule_is_refused_with_a_suggestion(wanted: str, suggestion: str) -> None:
    with pytest.raises(KeyError, match=f"there is no rule '{wanted}'; did you mean .*{suggestion}"):
        find_rules((wanted,))


def test_randomness_behind_a_lookup_is_only_a_note() -> None:
    guarded = '{{ $old := lookup "v1" "Secret" "a" "b" }}{{ if $old }}{{ else }}{{ randAlphaNum 8 }}{{ end }}'
    [found] = find(file("templates/x.yaml", guarded)(), "repeatable")
    assert (found.severity, found.message) == (
        Severity.info,
        "randAlphaNum returns something different each time helm template runs, where lookup finds nothing",
    )
    [found] = find(file("templates/x.yaml", guarded.replace("lookup", "list"))(), "repeatable")
    assert found.severity is Severity.error


@pytest.mark.parametrize(
    ("file", "rule"),
    [("values.yaml", "values-schema"), ("values.schema.json", "values-schema"), ("Chart.yaml", "chart-fields")],
)
def test_unreadable_file_gives_no_other_findings(file: str, rule: str) -> None:
    broken = {**chart_files(), file: chart_files()[file] + b"\nx\n"}
    found = run_checks(CheckInput(files=broken, cases=())).findings
    assert {finding.rule for finding in found} == {rule}
