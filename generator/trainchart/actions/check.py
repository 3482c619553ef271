"""Check charts and manifests: render in several cases, lint, and hand everything to the rules."""

from __future__ import annotations

import functools
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from trainchart.actions.support.chart_input import read_chart_files
from trainchart.actions.support.check_input import STANDARD_INPUT, read_manifests
from trainchart.actions.support.check_probes import render_probes
from trainchart.actions.support.parallel import FEW, map_parallel
from trainchart.actions.support.project import find_project
from trainchart.actions.support.rendered_version import VALUES_FILES_LIMIT, is_values_file
from trainchart.check.finding import Case, CaseLint, CheckInput, Finding, Severity
from trainchart.check.kubernetes_schemas import KubernetesSchemas
from trainchart.check.registry import RULES, find_rules
from trainchart.check.rule import Rule
from trainchart.check.runner import run_checks
from trainchart.check.sources import chart_file, read_source
from trainchart.check.unknown_kinds import UnknownKind, find_unknown_kinds
from trainchart.check.waivers import Waived
from trainchart.errors import Problem, RenderError, ToolError, TrainchartError
from trainchart.helm.io.choose import engine_program, find_engine
from trainchart.helm.io.inputs import RELEASE_NAME_LIMIT
from trainchart.helm.io.protocol import HelmEngine
from trainchart.helm.rendering import LintMessage, ValueOverrides
from trainchart.host.clock import utc_today
from trainchart.host.files import is_given_open, read_bytes, read_tree
from trainchart.host.kubernetes_schemas import find_versions, read_definitions
from trainchart.host.result_cache import ResultCache, hash_inputs, hash_listing
from trainchart.host.time_limit import TookTooLong, time_limit
from trainchart.kubernetes_yaml import find_unprintable

if TYPE_CHECKING:
    from trainchart.packs.pack import Pack

OLDEST_KUBERNETES = "1.33"
_RELEASE = "check"
# They differ in the last character only: the one that careless truncation drops.
_LONG_RELEASES = ("r" * (RELEASE_NAME_LIMIT - 1) + "a", "r" * (RELEASE_NAME_LIMIT - 1) + "b")
_VERSION = re.compile(r"v?(\d+\.\d+)(?:\.\d+)?(?:[-+].*)?")
_THREADS = 2


RULE_SECONDS = 30.0
CHART_SECONDS = 120.0
"""Processor time; the charts of this project take a second."""
_LEAST_SECONDS = 0.5


@dataclass(frozen=True)
class CheckedChart:
    """What was found in one chart, or in some manifests."""

    chart: Path
    findings: tuple[Finding, ...]
    waived: tuple[Waived, ...] = ()
    unknown_kinds: tuple[UnknownKind, ...] = ()
    """Of their objects, only some fields are checked."""
    is_chart: bool = True

    def count(self, severity: Severity) -> int:
        return sum(found.severity is severity for found in self.findings)


@dataclass(frozen=True)
class _Setting:
    """One way of installing that is to be rendered."""

    case: Case
    release: str
    overrides: ValueOverrides
    is_validated: bool = False
    """An earlier rendering compared these values with the schema."""


@dataclass
class _Budget:
    """The processor time that one chart has, of which no rule may take all: third-party charts hold anything."""

    left_seconds: float = CHART_SECONDS

    def ask(self, rule: Rule, given: CheckInput) -> Iterator[Finding]:
        """Yield what a rule finds, or that it has given up."""
        start = time.process_time()
        limit = max(min(RULE_SECONDS, self.left_seconds), _LEAST_SECONDS)
        try:
            with time_limit(limit):
                found = tuple(rule.check(given))
        except TookTooLong:
            hint = "look for something very large or deeply nested, or a pattern such as ^(a+)+$"
            what = f"the rule {rule.id} did not finish within {limit:.0f} s"
            found = (Finding(what, hint=hint, is_own_fault=True),)
        self.left_seconds -= time.process_time() - start
        yield from found


def choose_rules(select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Return the rules to ask. Raises KeyError for an id that there is not, with a suggestion."""
    ignored = {rule.id for rule in find_rules(ignore)}
    return tuple(rule for rule in (find_rules(select) if select else RULES) if rule.id not in ignored)


def check_charts(
    charts: Sequence[Path],
    *,
    values: tuple[tuple[str, str], ...] = (),
    engine: str = "auto",
    kube_versions: tuple[str, ...] = (),
    rules: tuple[Rule, ...] = RULES,
    use_cache: bool = True,
) -> Iterator[CheckedChart | TrainchartError]:
    """Yield what is found in each chart, in order, or why it cannot be checked. More than FEW charts use all cores."""
    check_one = functools.partial(
        check_known_chart if use_cache else check_chart,
        values=values,
        engine=engine,
        kube_versions=kube_versions,
        rules=rules,
    )
    # Standard input and other pipes are open in this process only.
    is_open_here = any(chart == STANDARD_INPUT or is_given_open(chart) for chart in charts)
    work = functools.partial(_try_checking, check_one)
    yield from map_parallel(work, charts, are_many=len(charts) > FEW and not is_open_here)


def _try_checking(check_one: Callable[[Path], CheckedChart], chart: Path) -> CheckedChart | TrainchartError:
    try:
        return check_one(chart)
    except TrainchartError as error:
        return error


def check_known_chart(
    chart: Path,
    *,
    values: tuple[tuple[str, str], ...] = (),
    engine: str = "auto",
    kube_versions: tuple[str, ...] = (),
    rules: tuple[Rule, ...] = RULES,
) -> CheckedChart:
    """Do what `check_chart` does, or return what it found in the same bytes before, on the same day."""
    packs = _read_packs()
    asked = (engine, *kube_versions, *(rule.id for rule in rules), *(pack.sha256 for pack in packs))
    inputs = _hash_inputs(chart, values, asked)
    cache = ResultCache("checks", CheckedChart)
    subject = "\0".join((str(chart.absolute()), *(name for name, _ in values), *asked))
    known = cache.recall(subject)
    if inputs and known is not None and known[0] == inputs:
        return known[1]
    listing = hash_listing(chart) if chart.is_dir() else ""
    checked = check_chart(chart, values=values, engine=engine, kube_versions=kube_versions, rules=rules, packs=packs)
    # What changed meanwhile may have been checked in part; a rule that gave up or failed may do better next time.
    is_still = inputs == _hash_inputs(chart, values, asked) and (
        not chart.is_dir() or listing == hash_listing(chart) != ""
    )
    if inputs and is_still and not any(finding.is_own_fault for finding in checked.findings):
        cache.remember(subject, inputs, checked)
    return checked


def _hash_inputs(chart: Path, values: tuple[tuple[str, str], ...], asked: tuple[str, ...]) -> str:
    """Return one hash of all that a check looks at; empty where that cannot be read twice, or not at all."""
    if chart == STANDARD_INPUT:
        return ""
    try:
        if chart.is_dir():
            files = [part for path, content in read_tree(chart).items() for part in (path, content)]
        elif chart.is_file():
            files = [read_bytes(chart)]
        else:
            return ""
    except ToolError:
        return ""
    files += [part for value in values for part in value]
    helm = Path(shutil.which(engine_program(asked[0])) or "/")
    day = utc_today().isoformat()
    return hash_inputs(day, str(chart), str(helm), str(helm.stat().st_mtime_ns), *asked, *files)


def check_chart(
    chart: Path,
    *,
    values: tuple[tuple[str, str], ...] = (),
    engine: str = "auto",
    kube_versions: tuple[str, ...] = (),
    rules: tuple[Rule, ...] = RULES,
    packs: tuple[Pack, ...] | None = None,
    today: date | None = None,
) -> CheckedChart:
    """Check the chart at `chart`, with its own values, every ci/*-values.yaml and every file in `values`: (path, text).

    What is no chart (a YAML file, a folder without Chart.yaml, `-` for standard input) is checked as manifests. The
    rules of `packs` are checked, too: those of the project that this folder is in, unless given.

    Raises:
        ToolError: chart, engine, values file or pack is missing; what is wrong in the chart is a finding.
        SpecError: a pack is not valid.
    """
    wanted = tuple(dict.fromkeys(map(_minor_version, kube_versions)))
    kubernetes = tuple(_schemas(version) for version in wanted or (OLDEST_KUBERNETES, find_versions()[-1]))
    kinds = kubernetes if kube_versions else tuple(map(_schemas, _supported_versions()))
    day = today or utc_today()
    manifests = read_manifests(chart)
    if manifests is not None:
        given = manifests
    else:
        given = _render_chart(chart, values, find_engine(engine), max(kinds, key=_age).version)
    demands = tuple(rule for pack in (_read_packs() if packs is None else packs) for rule in pack.policy.rules)
    given = replace(given, kubernetes=kubernetes, kinds=kinds, today=day, pack_rules=demands)
    budget = _Budget()
    result = run_checks(given, tuple(replace(rule, check=functools.partial(budget.ask, rule)) for rule in rules))
    return CheckedChart(chart, result.findings, result.waived, find_unknown_kinds(given), given.is_chart)


def _read_packs() -> tuple[Pack, ...]:
    project = find_project()
    if project.file is None:
        return ()
    # Imported where it is needed: most projects have no packs.
    from trainchart.actions.support.packs import read_packs

    return read_packs(project)


def _render_chart(chart: Path, values: tuple[tuple[str, str], ...], helm: HelmEngine, newest: str) -> CheckInput:
    files = read_chart_files(chart)
    plain = CheckInput(files=files)
    if chart_file(plain).get("type") == "library":
        return replace(plain, lint=(CaseLint("", _lint(helm, chart, newest)),))  # Helm does not render it.
    overrides = _value_sets(files, values)
    # The engine works outside of Python, so two renderings at a time are faster even with the lock.
    with ThreadPoolExecutor(_THREADS) as pool:
        linting = pool.submit(_lint, helm, chart, newest)
        first = pool.map(
            functools.partial(_render_case, helm, chart),
            [_Setting(Case(name), _RELEASE, chosen) for name, chosen in overrides.items()],
        )
        cases = list(first)
        rendered = {case.values for case in cases if case.rendering is not None}
        # What fails with a short name fails with a long one, and once is enough to say so.
        more = [setting for setting in _further_settings(plain, overrides) if setting.case.values in rendered]
        cases += pool.map(functools.partial(_render_case, helm, chart), more)
        probes = (
            render_probes(helm, chart, plain, release=_RELEASE, long_release=_LONG_RELEASES[0], pool=pool)
            if rendered
            else {}
        )
        lint = (CaseLint("", linting.result()),)
    added = dict(file for chosen in overrides.values() for file in chosen.files)
    cases += _too_many_values_files(files)
    return replace(plain, added_values=added, cases=tuple(cases), lint=lint, probes=probes, values_fit="" in rendered)


def _further_settings(given: CheckInput, overrides: Mapping[str, ValueOverrides]) -> Iterable[_Setting]:
    for name, chosen in overrides.items():
        # The second long one is only there to be compared with the first, under the chart's own values.
        for release in _LONG_RELEASES[:1] if name else _LONG_RELEASES:
            yield _Setting(Case(name, has_long_release=True), release, chosen, is_validated=True)


def _value_sets(files: Mapping[str, bytes], values: tuple[tuple[str, str], ...]) -> dict[str, ValueOverrides]:
    """Return what to install with, by the name in findings; the chart's own values have none."""
    given = CheckInput(files=files)
    own = sorted(filter(is_values_file, files))[:VALUES_FILES_LIMIT]
    texts = {path: read_source(given, path) for path in own}
    for path, text in values:
        # The chart's own trials may have that name, and rules may pass over them.
        texts[f"./{path}" if path.startswith("ci/") else path] = text
    return {"": ValueOverrides()} | {name: ValueOverrides(files=((name, text),)) for name, text in texts.items()}


def _too_many_values_files(files: Mapping[str, bytes]) -> Iterator[Case]:
    """Yield a case that says that not every file ci/*-values.yaml was used."""
    found = sum(map(is_values_file, files))
    if found > VALUES_FILES_LIMIT:
        message = f"the chart has {found} files ci/*-values.yaml: only the first {VALUES_FILES_LIMIT} are checked"
        yield Case("", failure=(Problem(message, "ci", "remove some, or join them"),))


def _render_case(helm: HelmEngine, chart: Path, setting: _Setting) -> Case:
    for name, text in setting.overrides.files:
        line = find_unprintable(text)
        if line:  # Helm's library reads up to the first zero byte and is content.
            return replace(setting.case, failure=(Problem("holds a character that YAML forbids", f"{name}:{line}"),))
    try:
        rendering = helm.render(
            chart, release=setting.release, overrides=setting.overrides, validate=not setting.is_validated
        )
    except RenderError as error:
        return replace(setting.case, failure=error.problems or (Problem(error.message, hint=error.hint),))
    return replace(setting.case, rendering=rendering)


def _lint(helm: HelmEngine, chart: Path, kube_version: str) -> tuple[LintMessage, ...]:
    try:
        # The newest version deprecates whatever an older one does, so one lint tells both.
        return helm.lint(chart, kube_version=kube_version, validate=False)
    except RenderError:
        # The rendering of the same case fails too, and tells why.
        return ()


def _supported_versions() -> tuple[str, ...]:
    known = find_versions()
    return known[known.index(OLDEST_KUBERNETES) :]


def _minor_version(version: str) -> str:
    """Return 1.34 of v1.34.2, and whatever is no version as it is."""
    match = _VERSION.fullmatch(version)
    return match[1] if match else version


def _age(schemas: KubernetesSchemas) -> int:
    return find_versions().index(schemas.version)


@functools.cache
def _schemas(version: str) -> KubernetesSchemas:
    return KubernetesSchemas(version, read_definitions(version))
