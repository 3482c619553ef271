"""Rules about what Helm itself says."""

from __future__ import annotations

from collections.abc import Iterator

from trainchart.archive.chart_file import CHART_FILE
from trainchart.archive.subcharts import open_packed
from trainchart.check.finding import CheckInput, Finding, Severity
from trainchart.check.randomness import find_cluster_questions
from trainchart.check.rule import Rule, Scope
from trainchart.check.sources import chart_file

_NO_ICON = "icon is recommended"
"""The rule chart-about says so, together with what else is not there."""
_NO_TEMPLATES = ("templates", "directory does not exist")


def check_lint(given: CheckInput) -> Iterator[Finding]:
    """Tell every message of `helm lint`; the engine has made errors of warnings where lint is strict."""
    for lint in given.lint:
        for message in lint.messages:
            if message.message == _NO_ICON:
                continue
            # What is about the chart as a whole names the folder it lies in, for an archive one that is gone.
            path = CHART_FILE if message.path.startswith("/") else message.path
            severity = Severity(message.severity)
            if (path.rstrip("/"), message.message) == _NO_TEMPLATES and _needs_no_templates(given):
                severity = Severity.info
            yield Finding(message.message, path=path, severity=severity, values=lint.values)


def _needs_no_templates(given: CheckInput) -> bool:
    """Tell whether the chart installs what its subcharts or its CRDs say, and nothing of its own."""
    return bool(chart_file(given).get("dependencies")) or any(path.startswith("crds/") for path in given.files)


def check_renders(given: CheckInput) -> Iterator[Finding]:
    """Tell why a case does not render."""
    for case in given.cases:
        for problem in case.failure:
            path, _, position = problem.where.partition(":")
            line = position.partition(":")[0]
            yield Finding(
                problem.message,
                path=path,
                line=int(line) if line.isdigit() else 0,
                hint=problem.hint,
                values=case.label,
            )
    # Ours keep what a run has, and are tested on clusters.
    for path, number in () if given.is_generated else find_cluster_questions(open_packed(given.files, mark=".tgz")):
        yield Finding(
            "reads the cluster (lookup): only what it renders for an empty cluster is checked",
            path=path,
            line=number,
            severity=Severity.info,
            hint="read the template, or see what it would render: helm install --dry-run=server",
        )


RULES = (
    Rule(
        "helm-lint",
        "helm lint --strict is the first check that chart repositories require.",
        check_lint,
        "https://helm.sh/docs/helm/helm_lint/",
        scope=Scope.charts,
    ),
    Rule(
        "renders",
        "A chart must install with its own values and with every ci/*-values.yaml.",
        check_renders,
        "https://github.com/helm/chart-testing#configuration",
        scope=Scope.charts,
    ),
)
