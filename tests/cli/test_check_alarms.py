"""What `check` says about charts that are fine: constant labels, umbrella charts, and random values behind `lookup`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from trainchart.actions.check import check_chart
from trainchart.check.finding import Severity

CHART_FILE = 'apiVersion: v2\nname: web\nversion: 1.2.3\nappVersion: "4.5"\n'
WORKLOAD = """
apiVersion: apps/v1
kind: KIND
metadata: {name: "{{ .Release.Name }}-web"}
spec:
  selector: {matchLabels: {app: web, LABEL}}
  template:
    metadata: {labels: {app: web, LABEL}}
    spec: {containers: [{name: web, image: "registry.example.com/web:1"}]}
"""
SECRET = """
{{- $old := LOOKUP }}
{{- $ca := genCA "web" 365 }}
{{- $cert := genSignedCert "web" nil (list "web") 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-tls"}
immutable: true
data:
  tls.crt: {{ if $old }}{{ index $old.data "tls.crt" }}{{ else }}{{ $cert.Cert | b64enc }}{{ end }}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: "{{ .Release.Name }}-job"}
spec:
  template:
    metadata: {annotations: {checksum/password: '{{ include "web.password" . | sha256sum }}'}}
    spec: {restartPolicy: Never, containers: [{name: web, image: "registry.example.com/web:1"}]}
"""
HELPERS = """
{{- define "web.old" -}}{{- with LOOKUP }}{{ index .data "p" }}{{ end }}{{- end -}}
{{- define "web.new" -}}{{ randAlphaNum 16 }}{{- end -}}
{{- define "web.password" -}}{{ include "web.old" . | default (include "web.new" .) }}{{- end -}}
"""
LOOKUP = '(lookup "v1" "Secret" .Release.Namespace "tls")'


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def found(chart: Path, *rules: str) -> list[tuple[str, str, Severity]]:
    findings = check_chart(chart, engine="sdk").findings
    return [(one.rule, one.message, one.severity) for one in findings if one.rule in rules]


@pytest.mark.parametrize("kind", ["StatefulSet", "Deployment"])
@pytest.mark.parametrize(
    ("label", "is_found"),
    [
        ("helm.sh/chart: web", False),
        ("app.kubernetes.io/version: stable", False),
        ("app.kubernetes.io/version: '1.2.3'", False),
        ("helm.sh/chart: '{{ .Chart.Name }}'", False),
        ("helm.sh/chart: '{{ .Chart.Name }}-{{ .Chart.Version }}'", True),
        ("app.kubernetes.io/version: '{{ .Chart.AppVersion }}'", True),
        ('helm.sh/chart: \'{{ .Chart.Name }}-{{ .Chart.Version | replace "." "_" }}\'', True),
    ],
)
def test_only_labels_that_change_with_the_version_are_found(
    tmp_path: Path, kind: str, label: str, *, is_found: bool
) -> None:
    template = WORKLOAD.replace("KIND", kind).replace("LABEL", label)
    chart = write(tmp_path, {"Chart.yaml": CHART_FILE, "templates/web.yaml": template})
    errors = [message for _, message, severity in found(chart, "stable-selectors") if severity is Severity.error]
    assert [": spec.selector holds " in message for message in errors] == [True] * is_found


@pytest.mark.parametrize("engine", ["sdk", "helm4"])
@pytest.mark.parametrize(
    ("files", "severity"),
    [
        ({"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n"}, Severity.info),
        ({"crds/x.yaml": "kind: CustomResourceDefinition\n"}, Severity.info),
        ({"files/x.txt": "nothing to install\n"}, Severity.error),
    ],
)
def test_chart_without_templates_is_a_note_if_it_has_objects(
    tmp_path: Path, request: pytest.FixtureRequest, engine: str, files: Mapping[str, str], severity: Severity
) -> None:
    chart_file = CHART_FILE + "dependencies: [{name: sub, version: 1.0.0}]\n" * any("sub" in name for name in files)
    chart = write(tmp_path / "web", {"Chart.yaml": chart_file, "values.yaml": "{}\n", **files})
    program = engine if engine == "sdk" else str(request.getfixturevalue(engine))
    findings = check_chart(chart, engine=program).findings
    assert [one.severity for one in findings if "directory does not exist" in one.message] == [severity]


def test_random_values_behind_lookup_are_notes(tmp_path: Path) -> None:
    files = {"Chart.yaml": CHART_FILE, "templates/tls.yaml": SECRET, "templates/job.yaml": JOB}
    files |= {"templates/_helpers.tpl": HELPERS}
    rules = ("repeatable", "immutable-names", "stable-selectors")
    guarded = write(tmp_path / "guarded", {name: text.replace("LOOKUP", LOOKUP) for name, text in files.items()})
    assert {(rule, severity) for rule, _, severity in found(guarded, *rules)} == {("repeatable", Severity.info)}
    assert len(found(guarded, *rules)) == 3
    bare = write(tmp_path / "bare", {name: text.replace("LOOKUP", "dict") for name, text in files.items()})
    assert {(rule, severity) for rule, _, severity in found(bare, *rules)} == {
        ("repeatable", Severity.warning),
        ("immutable-names", Severity.error),
        ("stable-selectors", Severity.error),
    }


def test_a_random_value_that_lookup_does_not_reach_is_found(tmp_path: Path) -> None:
    helpers = HELPERS.replace("LOOKUP", LOOKUP) + '{{- define "web.other" -}}{{ randAlphaNum 8 }}{{- end -}}\n'
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '{{ include \"web.other\" . }}'}\n"
    files = {"Chart.yaml": CHART_FILE, "templates/_helpers.tpl": helpers, "templates/c.yaml": config}
    chart = write(tmp_path, {**files, "templates/job.yaml": JOB})
    assert [severity for _, _, severity in found(chart, "repeatable")] == [Severity.warning, Severity.info]


PASSWORD = """
---
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-password"}
data: {p: {{ randAlphaNum 10 | b64enc }}}
"""


def test_lookup_guards_only_what_uses_it(tmp_path: Path) -> None:
    files = {"Chart.yaml": CHART_FILE, "templates/tls.yaml": SECRET.replace("LOOKUP", LOOKUP) + PASSWORD}
    chart = write(tmp_path / "two", files)
    assert {(message.split()[0], severity) for _, message, severity in found(chart, "repeatable")} == {
        ("genCA", Severity.info),
        ("genSignedCert", Severity.info),
        ("randAlphaNum", Severity.warning),
    }
    unused = write(tmp_path / "unused", {**files, "templates/tls.yaml": f"{{{{- $x := {LOOKUP} }}}}{PASSWORD}"})
    assert [severity for _, _, severity in found(unused, "repeatable")] == [Severity.warning]
    used = PASSWORD.replace("randAlphaNum 10", "dig `data` `p` (randAlphaNum 10) $x")
    write(unused, {"templates/tls.yaml": f"{{{{- $x := {LOOKUP} }}}}{used}"})
    assert [severity for _, _, severity in found(unused, "repeatable")] == [Severity.info]


@pytest.mark.parametrize("folder", ["", "charts/sub/"])
def test_lookup_hides_no_change_that_is_not_random(tmp_path: Path, folder: str) -> None:
    template = WORKLOAD.replace("KIND", "Deployment").replace("LABEL", "revision: 'r{{ .Release.Revision }}'")
    files = {
        "Chart.yaml": CHART_FILE,
        f"{folder}templates/all.yaml": f"{SECRET}---{template}".replace("LOOKUP", LOOKUP),
    }
    if folder:
        files[f"{folder}Chart.yaml"] = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
    chart = write(tmp_path / "web", files)
    [(_, message, severity)] = found(chart, "stable-selectors")
    assert "spec.selector.matchLabels.revision is immutable, but an upgrade changes 'r1' to 'r2'" in message
    assert severity is Severity.error
    assert not found(chart, "immutable-names")


def test_an_upgrade_is_tried_of_packed_subcharts_too(tmp_path: Path, helm4: Path) -> None:
    template = WORKLOAD.replace("KIND", "Deployment").replace("LABEL", "revision: 'r{{ .Release.Revision }}'")
    sub = write(tmp_path / "sub", {"Chart.yaml": CHART_FILE.replace("web", "sub"), "templates/web.yaml": template})
    chart = write(tmp_path / "web", {"Chart.yaml": CHART_FILE, "charts/.helmignore": ""})
    subprocess.run([helm4, "package", sub, "-d", chart / "charts"], check=True, capture_output=True)
    [(_, message, _)] = found(chart, "stable-selectors")
    assert "spec.selector.matchLabels.revision is immutable, but an upgrade changes 'r1' to 'r2'" in message


def test_lookup_hides_no_immutable_object_that_values_change(tmp_path: Path) -> None:
    config = (
        "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\nimmutable: true\ndata: {a: '{{ .Values.a }}'}\n"
    )
    files = {"Chart.yaml": CHART_FILE, "values.yaml": "a: b\n", "ci/other-values.yaml": "a: c\n"}
    chart = write(tmp_path / "web", {**files, "templates/all.yaml": SECRET.replace("LOOKUP", LOOKUP) + config})
    messages = [message for _, message, _ in found(chart, "immutable-names")]
    assert messages == ["ConfigMap web is immutable, but different values change its content under the same name"]
