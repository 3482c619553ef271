"""What an upgrade may not change: found by its label, or by a rendering of the chart's next version."""

from __future__ import annotations

import pytest

from trainchart.check.finding import Case, CheckInput, Probe, Severity
from trainchart.check.probes import next_version
from trainchart.check.registry import find_rules
from trainchart.check.runner import run_checks
from trainchart.helm.rendering import Manifest, Rendering
from trainchart.kubernetes_yaml import parse_documents, parse_mapping

TEMPLATE = "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: 'a:VERSION'}]}}"
STATEFUL_SET = (
    "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, "
    "spec: {FIELD, updateStrategy: {type: VERSION}, " + TEMPLATE + "}}"
)
JOB = "{apiVersion: batch/v1, kind: Job, metadata: {name: NAME, annotations: {HOOK}}, spec: {FIELD}}"
VERSIONED = "matchExpressions: [{key: v, operator: In, values: [VERSION]}]"


def render(text: str, version: str) -> Rendering:
    documents = parse_documents(text.replace("VERSION", version))
    return Rendering("exp", "default", tuple(Manifest("templates/a.yaml", found) for found in documents), {})


def find(text: str) -> list[tuple[str, Severity]]:
    given = CheckInput(
        {"Chart.yaml": b"name: a\nversion: 1.2.3\n"},
        (Case("", render(text, "1")),),
        probes={Probe.next_version: render(text, "2")},
    )
    found = run_checks(given, find_rules(("stable-selectors",))).findings
    return [(finding.message, finding.severity) for finding in found]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            STATEFUL_SET.replace("FIELD", "selector: {" + VERSIONED + "}"),
            "StatefulSet a: spec.selector.matchExpressions[0].values[0] is immutable, but an upgrade changes 1 to 2",
        ),
        (
            STATEFUL_SET.replace("FIELD", "serviceName: a-VERSION"),
            "StatefulSet a: spec.serviceName is immutable, but an upgrade changes 'a-1' to 'a-2'",
        ),
        (
            STATEFUL_SET.replace("FIELD", "volumeClaimTemplates: [{metadata: {name: d, labels: {v: VERSION}}}]"),
            "StatefulSet a: spec.volumeClaimTemplates[0].metadata.labels.v is immutable, but an upgrade changes 1 to 2",
        ),
        (
            JOB.replace("NAME", "a").replace("HOOK", "").replace("FIELD", TEMPLATE),
            "Job a: spec.template.spec.containers[a].image is immutable, but an upgrade changes 'a:1' to 'a:2'",
        ),
        (
            JOB.replace("NAME", "a")
            .replace("HOOK", "")
            .replace("FIELD", TEMPLATE.replace("a: b", "helm.sh/chart: VERSION")),
            "Job a: the pod template holds helm.sh/chart: 1",
        ),
        (
            "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: VERSION}}",
            "PersistentVolumeClaim a: spec.volumeName is immutable, but an upgrade changes 1 to 2",
        ),
        (
            "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {" + VERSIONED + "}}}",
            "Deployment a: spec.selector.matchExpressions[0].values[0] is immutable, but an upgrade changes 1 to 2",
        ),
    ],
)
def test_an_immutable_field_that_an_upgrade_changes_is_told_once(text: str, message: str) -> None:
    assert find(text) == [(message, Severity.error)]


@pytest.mark.parametrize(
    "text",
    [
        STATEFUL_SET.replace("FIELD", "selector: {matchLabels: {a: b}}"),
        JOB.replace("NAME", "a-VERSION").replace("HOOK", "").replace("FIELD", TEMPLATE),
        JOB.replace("NAME", "a").replace("HOOK", "helm.sh/hook: post-install").replace("FIELD", TEMPLATE),
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {resources: {a: VERSION}}}",
        "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {v: VERSION}}}",
        STATEFUL_SET.replace("FIELD", "selector: {matchLabels: {helm.sh/chart: a, app.kubernetes.io/version: 1.2.3}}"),
    ],
)
def test_what_may_change_or_is_another_object_is_left_alone(text: str) -> None:
    assert find(text) == []


def test_the_next_version_differs_in_versions_and_revision_only() -> None:
    template = "a: {{ $.Release.Revision }} {{ .context.Release.Revision }} {{ .Release.RevisionX }}"
    files = {"Chart.yaml": b"name: a\nversion: 1.2.3\nappVersion: '4'\n", "templates/a.yaml": template.encode()}
    changed = next_version(CheckInput(files))
    assert parse_mapping(changed["Chart.yaml"].decode()) == {"name": "a", "version": "998.0.0", "appVersion": "998.0.0"}
    assert changed["templates/a.yaml"] == b"a: {{ 2 }} {{ 2 }} {{ .Release.RevisionX }}"
