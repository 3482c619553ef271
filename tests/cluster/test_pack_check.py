"""pack check --install: charts of families on a real cluster, with nothing left of them whatever happens."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.testcluster.access import Access
from tests.cluster.testcluster.pods import IMAGE
from trainchart.actions.support.family_installs import LABELS

pytestmark = pytest.mark.cluster

METADATA = """\
metadata:
  name: {{ .Release.Name }}
  labels:
    app.kubernetes.io/name: {{ .Chart.Name | quote }}
    app.kubernetes.io/instance: {{ .Release.Name | quote }}
    app.kubernetes.io/component: words
    app.kubernetes.io/part-of: <%= name %>
    app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
    helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
"""
FILES = {
    "pack.yaml": "apiVersion: trainchart/v1\nkind: Pack\nname: acme\nversion: 0.1.0\n",
    "defaults.yaml": "families:\n  tenant: {namespaceLabels: {acme.example/team: vision}}\n",
    "families/speech/family.yaml": """\
apiVersion: trainchart/v1
kind: Family
description: Says something.
values:
  words: {description: What it says., type: string, pattern: "^[a-z]+$"}
""",
    "families/speech/templates/words.yaml": f"""\
apiVersion: v1
kind: ConfigMap
{METADATA}data:
  words: {{{{ .Values.words | quote }}}}
""",
    "families/speech/templates/tests/words.yaml": f"""\
apiVersion: v1
kind: Pod
{METADATA}  annotations:
    helm.sh/hook: test
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {{runAsNonRoot: true, runAsUser: 1000, seccompProfile: {{type: RuntimeDefault}}}}
  containers:
    - name: words
      image: {IMAGE}
      command: [sh, -c, 'test "$WORDS" = loud || exit 3']
      env: [{{name: WORDS, value: {{{{ .Values.words | quote }}}}}}]
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {{drop: [ALL]}}
      resources:
        requests: {{cpu: 10m, memory: 16Mi, ephemeral-storage: 16Mi}}
        limits: {{cpu: 50m, memory: 32Mi, ephemeral-storage: 16Mi}}
""",
    "families/speech/ci/loud-values.yaml": "words: loud\n",
    "families/speech/tests/hello.yaml": """\
apiVersion: trainchart/v1
kind: Chart
family: speech
name: hello
description: Says hello.
values: {words: hello}
""",
}
CHECK = (sys.executable, "-m", "trainchart", "pack", "check", "packs/acme", "--install", "--format=json")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "trainchart.yaml").write_text("apiVersion: trainchart/v1\nkind: Project\nextends: [packs/acme]\n")
    return tmp_path


def write_pack(project: Path, changed: Mapping[str, str] | None = None) -> None:
    for path, text in {**FILES, **(changed or {})}.items():
        file = project / "packs" / "acme" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def in_project(admin: Access, project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return admin.run(["env", f"--chdir={project}", *words], check=False, timeout_seconds=500)


def find_leftovers(admin: Access) -> list[str]:
    """Return the objects of trials that are still there: their namespaces, and what they made outside of them."""
    kinds = "namespaces,validatingadmissionpolicies,validatingadmissionpolicybindings"
    listed = admin.kubectl("get", kinds, "--output=json")
    found = []
    for each in json.loads(listed)["items"]:
        metadata = each["metadata"]
        labels = metadata.get("labels", {})
        if LABELS.items() <= labels.items() or labels.get("app.kubernetes.io/instance", "").startswith("trial-"):
            found.append(f"{each['kind']} {metadata['name']}")
    return found


def wait_until_nothing_is_left(admin: Access) -> None:
    admin.wait_for(lambda _: not find_leftovers(admin), "nothing is left of the trials", namespace="default")


@pytest.mark.parametrize("helm", ["helm3", "helm4"])
def test_families_are_installed_upgraded_tested_and_removed(
    admin: Access, project: Path, helm: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Of the tenant, Helm keeps the namespace."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "helm").symlink_to(request.getfixturevalue(helm))
    write_pack(project)
    done = in_project(replace(admin, programs=(programs, *admin.programs)), project, *CHECK)
    assert done.returncode == 0, done.stderr
    (pack,) = json.loads(done.stdout)
    assert pack["name"] == "acme"
    assert "installing the chart of packs/acme/families/speech/tests/hello.yaml in the namespace" in done.stderr
    left_out = "tenant/tests/team-a.yaml was not upgraded to ci/everything-values.yaml: this cluster has no LocalQueue"
    assert left_out in done.stderr
    wait_until_nothing_is_left(admin)


SERVICE = f"""\
apiVersion: v1
kind: Service
{METADATA}spec:
  clusterIP: 192.0.2.1
  ports: [{{name: http, port: 80}}]
"""
"""An address that is none of the cluster's."""


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("ci/loud-values.yaml", "words: quiet\n", "cannot be tested: helm test exited with 1"),
        (
            "templates/words.yaml",
            SERVICE,
            "cannot be installed: helm install exited with 1: Error: INSTALLATION FAILED",
        ),
    ],
)
def test_what_a_cluster_refuses_is_a_problem(admin: Access, project: Path, path: str, text: str, message: str) -> None:
    write_pack(project, {"defaults.yaml": "", f"families/speech/{path}": text})
    done = in_project(admin, project, *CHECK)
    assert done.returncode == 3, done.stderr
    error = json.loads(done.stderr[done.stderr.index("{") :])
    (problem,) = error["problems"]
    assert problem["message"].startswith(f"its chart {message}")
    assert problem["where"] == "packs/acme/families/speech/tests/hello.yaml"
    wait_until_nothing_is_left(admin)


def test_a_check_that_is_ended_removes_what_it_installed(admin: Access, project: Path) -> None:
    write_pack(project)
    check = subprocess.Popen(CHECK, cwd=project, env=admin.environment, stderr=subprocess.PIPE, text=True)
    assert check.stderr is not None
    assert "installing" in check.stderr.readline()
    check.send_signal(signal.SIGTERM)
    assert check.wait(timeout=120) == 128 + signal.SIGTERM
    wait_until_nothing_is_left(admin)
