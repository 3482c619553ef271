"""Check charts: render each in several cases, lint it, and hand everything to the rules."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainchart.actions.chart_input import read_chart_files
from trainchart.check.finding import Case, CaseLint, CheckInput, Finding, Severity
from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.check.runner import run_checks
from trainchart.errors import Problem, RenderError
from trainchart.host.files import read_text
from trainchart.host.helm import HelmEngine, find_engine
from trainchart.host.helm_input import RELEASE_NAME_LIMIT
from trainchart.host.kubernetes_schemas import find_versions, read_definitions
from trainchart.rendering import LintMessage, ValueOverrides

OLDEST_KUBERNETES = "1.33"
_RELEASE = "check"
# They differ in the last character only: the one that careless truncation drops.
_LONG_RELEASES = ("r" * (RELEASE_NAME_LIMIT - 1) + "a", "r" * (RELEASE_NAME_LIMIT - 1) + "b")
_LONG = f"a release name of {RELEASE_NAME_LIMIT} characters"


@dataclass(frozen=True)
class CheckedChart:
    """What was found in one chart."""

    chart: Path
    findings: tuple[Finding, ...]

    def count(self, severity: Severity) -> int:
        return sum(found.severity is severity for found in self.findings)


def check_chart(
    chart: Path, *, values: tuple[Path, ...] = (), engine: str = "auto", kube_versions: tuple[str, ...] = ()
) -> CheckedChart:
    """Check the chart at `chart`, with its own values, every ci/*-values.yaml and every file in `values`.

    Raises ToolError where chart, engine or values file is missing; what is wrong in the chart is a finding.
    """
    files = read_chart_files(chart)
    versions = kube_versions or (OLDEST_KUBERNETES, find_versions()[-1])
    helm = find_engine(engine)
    overrides = _value_sets(files, values)
    given = CheckInput(
        files=files,
        cases=_render_cases(helm, chart, overrides),
        lint=tuple(
            CaseLint(name, _lint(helm, chart, chosen, version))
            for version in versions
            for name, chosen in overrides.items()
        ),
        kubernetes=tuple(_schemas(version) for version in versions),
    )
    return CheckedChart(chart, run_checks(given))


def _value_sets(files: Mapping[str, bytes], values: tuple[Path, ...]) -> dict[str, ValueOverrides]:
    """Return what to install with, by the name in findings; the chart's own values have none."""
    texts = {
        path: content.decode(errors="replace")
        for path, content in files.items()
        if path.startswith("ci/") and path.endswith("-values.yaml")
    }
    texts |= {str(path): read_text(path) for path in values}
    return {"": ValueOverrides()} | {name: ValueOverrides(files=((name, text),)) for name, text in texts.items()}


def _render_cases(helm: HelmEngine, chart: Path, overrides: Mapping[str, ValueOverrides]) -> tuple[Case, ...]:
    cases = [_render_case(helm, chart, name, _RELEASE, chosen) for name, chosen in overrides.items()]
    for case, chosen in zip(tuple(cases), overrides.values(), strict=True):
        # Where a case fails with a short name it fails with a long one, and once is enough to say so.
        if case.rendering is not None:
            name = f"{case.values} and {_LONG}" if case.values else _LONG
            cases += [_render_case(helm, chart, name, release, chosen) for release in _LONG_RELEASES]
    return tuple(cases)


def _render_case(helm: HelmEngine, chart: Path, name: str, release: str, overrides: ValueOverrides) -> Case:
    try:
        return Case(name, rendering=helm.render(chart, release=release, overrides=overrides))
    except RenderError as error:
        return Case(name, failure=error.problems or (Problem(error.message, hint=error.hint),))


def _lint(helm: HelmEngine, chart: Path, overrides: ValueOverrides, kube_version: str) -> tuple[LintMessage, ...]:
    try:
        return helm.lint(chart, overrides=overrides, kube_version=kube_version)
    except RenderError:
        # The rendering of the same case fails too, and tells why.
        return ()


@functools.cache
def _schemas(version: str) -> KubernetesSchemas:
    return KubernetesSchemas(version, read_definitions(version))
