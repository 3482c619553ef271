"""Check charts: render each in several cases, lint it, and hand everything to the rules."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    kubernetes = tuple(_schemas(version) for version in kube_versions or (OLDEST_KUBERNETES, find_versions()[-1]))
    newest = max((schemas.version for schemas in kubernetes), key=find_versions().index)
    helm = find_engine(engine)
    overrides = _value_sets(files, values)
    given = CheckInput(
        files=files,
        cases=_render_cases(helm, chart, overrides),
        # The newest version deprecates whatever an older one does, so one lint tells both.
        lint=tuple(CaseLint(name, _lint(helm, chart, chosen, newest)) for name, chosen in overrides.items()),
        kubernetes=kubernetes,
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
    cases: list[Case] = []
    for name, chosen in overrides.items():
        plain = _render_case(helm, chart, Case(name), _RELEASE, chosen)
        cases.append(plain)
        # What fails with a short name fails with a long one, and once is enough to say so.
        if plain.rendering is not None:
            long = Case(name, has_long_release=True)
            # The second one is only there to be compared with the first, under the chart's own values.
            releases = _LONG_RELEASES[:1] if name else _LONG_RELEASES
            cases += [_render_case(helm, chart, long, release, chosen) for release in releases]
    return tuple(cases)


def _render_case(helm: HelmEngine, chart: Path, case: Case, release: str, overrides: ValueOverrides) -> Case:
    try:
        return replace(case, rendering=helm.render(chart, release=release, overrides=overrides))
    except RenderError as error:
        return replace(case, failure=error.problems or (Problem(error.message, hint=error.hint),))


def _lint(helm: HelmEngine, chart: Path, overrides: ValueOverrides, kube_version: str) -> tuple[LintMessage, ...]:
    try:
        return helm.lint(chart, overrides=overrides, kube_version=kube_version)
    except RenderError:
        # The rendering of the same case fails too, and tells why.
        return ()


@functools.cache
def _schemas(version: str) -> KubernetesSchemas:
    return KubernetesSchemas(version, read_definitions(version))
