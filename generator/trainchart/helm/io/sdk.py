"""The Helm engine of the PyPI package helm-python-sdk, the one owner of `helm_python`.

The package bundles Helm 4 but leaves out what the helm program checks before it renders: declared but
missing subcharts, library charts and other versions of Kubernetes are refused here. Integers reach templates
as floats, as they do from a values file; `--set` of the helm program alone makes them int64.
"""

from __future__ import annotations

import functools
import gzip
import os
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trainchart.archive.identity import build_tar
from trainchart.archive.ignore import drop_ignored
from trainchart.archive.read import parse_archive
from trainchart.errors import Problem, RenderError, ToolError, UsageError
from trainchart.helm.errors import clean_lint_message, explain_comma, render_error
from trainchart.helm.io import inputs
from trainchart.helm.io.inputs import (
    DEFAULT_KUBE_VERSION,
    chart_label,
    describe_request,
    read_kube_version,
    require_chart,
    require_own_schemas,
    require_release_name,
    require_whole_values,
)
from trainchart.helm.io.protocol import INSTALL_HINT, HelmEngine
from trainchart.helm.manifests import parse_manifests, separate_as_helm
from trainchart.helm.rendering import LintMessage, Rendering, ValueOverrides, merge_maps
from trainchart.helm.values import SetParser, merge_set
from trainchart.host.deadline import run_within
from trainchart.host.files import read_bytes, read_tree
from trainchart.host.library_output import silence_library
from trainchart.json_documents import parse_json

_GARBAGE = "GOGC"
_AT_LEAST = re.compile(r">= ?v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-0)?")
"""A range of Kubernetes versions that is understood here. About any other, a helm program is asked if there is one."""


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Let the library collect garbage less often: it takes a quarter of the time, and a chart needs little memory.

    Go reads the variable when the library loads; programs that are started later do not get it.
    """
    is_set = _GARBAGE in os.environ
    os.environ.setdefault(_GARBAGE, "400")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[_GARBAGE]


try:
    with _rare_collections():
        import helm_python
except ImportError as error:
    # Only where it is not there does installing it help: it may also not load, for want of memory say.
    raise ToolError(
        f"the Helm engine helm-python-sdk cannot be loaded: {error}",
        hint=INSTALL_HINT if isinstance(error, ModuleNotFoundError) else "choose another: --engine binary",
    ) from error

Result = TypeVar("Result")

_SEVERITIES = {1: "info", 2: "warning", 3: "error"}
_NOTES = "templates/NOTES.txt"
_SCHEMA = re.compile(r"(charts/[^/]+/)*values\.schema\.json")


@dataclass(frozen=True)
class SdkEngine:
    """Renders in this process; hands on to `fallback` what the SDK cannot do."""

    fallback: HelmEngine | None = None

    @property
    def name(self) -> str:
        return f"helm-python-sdk {helm_python.__version__}"

    def render(
        self,
        chart: Path,
        *,
        release: str,
        namespace: str = "default",
        overrides: ValueOverrides = ValueOverrides(),  # noqa: B008 - frozen
        kube_version: str | None = None,
        api_versions: tuple[str, ...] = (),
        is_upgrade: bool = False,
        validate: bool = True,
    ) -> Rendering:
        require_chart(chart)
        is_beyond_library = self.fallback is not None and not _AT_LEAST.fullmatch(read_kube_version(chart) or ">=0")
        if kube_version is not None or api_versions or is_beyond_library:
            return self._capable_engine().render(
                chart,
                release=release,
                namespace=namespace,
                overrides=overrides,
                kube_version=kube_version,
                api_versions=api_versions,
                is_upgrade=is_upgrade,
                validate=validate,
            )
        _require_unicode(chart)
        require_own_schemas(chart)
        require_release_name(release)
        require_whole_values(overrides)
        label = chart_label(chart)

        def load_and_render() -> tuple[dict[str, str], list[dict[str, str]]]:
            # Loaded again for every rendering: rendering changes the values that a loaded chart holds.
            with _load(chart, validate) as loaded:
                _require_installable(loaded, label, chart)
                rendered = loaded.render(
                    merge_overrides(overrides),
                    name=release,
                    namespace=namespace,
                    is_install=not is_upgrade,
                    is_upgrade=is_upgrade,
                )
                return rendered, loaded.crds

        rendered, definitions = _ask(load_and_render, chart, overrides)
        texts = {path.partition("/")[2]: text for path, text in rendered.items()}
        notes = texts.get(_NOTES, "")
        objects = {
            path: separate_as_helm(text)
            for path, text in texts.items()
            if text.strip() and not path.endswith(_NOTES.partition("/")[2])
        }
        crds = {definition["filename"].partition("/")[2]: definition["data"] for definition in definitions}
        objects |= {path: text for path, text in crds.items() if text.strip()}
        objects = dict(sorted(objects.items()))
        return Rendering(release, namespace, parse_manifests(objects, label), objects, notes)

    def lint(
        self,
        chart: Path,
        *,
        overrides: ValueOverrides = ValueOverrides(),  # noqa: B008 - frozen
        strict: bool = True,
        kube_version: str | None = None,
        validate: bool = True,
    ) -> tuple[LintMessage, ...]:
        require_chart(chart)
        _require_unicode(chart)
        require_own_schemas(chart)
        require_whole_values(overrides)

        def lint() -> dict[str, Any]:
            return helm_python.lint(
                chart,
                merge_overrides(overrides),
                strict=True,
                kube_version=kube_version,
                skip_schema_validation=not validate,
            )

        report = _ask(lint, chart, overrides)
        messages = []
        for found in report["messages"]:
            severity = _SEVERITIES.get(found["severity"], "warning")
            if strict and severity == "warning":
                severity = "error"
            messages.append(
                LintMessage(
                    severity, found["path"], clean_lint_message(found["error"], describe_request(chart, overrides))
                )
            )
        return tuple(messages)

    def _capable_engine(self) -> HelmEngine:
        if self.fallback is None:
            raise ToolError(
                "this Helm engine cannot render for another Kubernetes version or other API versions",
                hint="install helm 3 or 4, and choose it with --engine binary or --engine PATH",
            )
        return self.fallback


def merge_overrides(overrides: ValueOverrides) -> dict[str, Any]:
    """Return the values that `overrides` stand for, in Helm's order.

    Raises:
        RenderError: a file does not parse.
        UsageError: an option does not parse.
    """
    values: dict[str, Any] = {}
    for name, text in overrides.files:
        try:
            values = merge_maps(values, helm_python.values_from_yaml(text))
        except helm_python.HelmError as error:
            raise RenderError(f"cannot read the values in {name}", problems=_problems(error)) from error
    for expression in overrides.set_jsons:
        values = _apply(values, "--set-json", expression, _parse_set_json)
    for expression in overrides.sets:
        values = _apply(values, "--set", expression, helm_python.parse_set_string)
    for expression in overrides.set_strings:
        values = _apply(values, "--set-string", expression, helm_python.parse_set_string_values)
    return values


def _apply(values: dict[str, Any], option: str, expression: str, parse: SetParser) -> dict[str, Any]:
    try:
        if option == "--set-json" and expression.lstrip().startswith("{"):
            return merge_maps(values, parse_json(expression))
        return merge_set(values, expression, parse, is_json=option == "--set-json")
    except (helm_python.HelmError, ValueError) as error:
        hint = explain_comma(str(error)) if "," in expression else ""
        raise UsageError(f"cannot read {option} {expression!r}", hint=hint, problems=_problems(error)) from error


def _parse_set_json(expression: str) -> dict[str, Any]:
    return helm_python.parse_set_json(expression)


def _problems(error: Exception) -> tuple[Problem, ...]:
    return render_error(str(error), "").problems or (Problem(str(error)),)


def _ask(call: Callable[[], Result], chart: Path, overrides: ValueOverrides) -> Result:
    """Return what a call of the library returns. Raises RenderError: it refuses the chart, or does not end in time."""
    try:
        with silence_library():
            return run_within(inputs.RENDER_SECONDS, lambda _: call())
    except helm_python.HelmError as error:
        raise render_error(str(error), chart_label(chart), describe_request(chart, overrides)) from error
    except TimeoutError as error:
        raise inputs.endless_chart(chart) from error


def _require_unicode(chart: Path) -> None:
    """Refuse a path that the library cannot be given. Raises ToolError."""
    try:
        str(chart).encode()
    except UnicodeEncodeError as error:
        what = f"the path {str(chart)!a} is not Unicode, which helm-python-sdk needs"
        raise ToolError(what, hint="rename it, or choose a helm program with --engine binary") from error


def _load(chart: Path, validate: bool) -> helm_python.Chart:
    if validate:
        return helm_python.Chart.load(chart)
    # The SDK has no switch for it, but a chart without a schema is not validated.
    return helm_python.Chart.load_archive(_pack_without_schema(chart))


def _pack_without_schema(chart: Path) -> bytes:
    files = drop_ignored(read_tree(chart)) if chart.is_dir() else parse_archive(read_bytes(chart)).files
    return _pack(tuple((path, content) for path, content in files.items() if not _SCHEMA.fullmatch(path)))


@functools.lru_cache(maxsize=4)
def _pack(files: tuple[tuple[str, bytes], ...]) -> bytes:
    # A check renders the same chart several times.
    return gzip.compress(build_tar("chart", dict(files)), compresslevel=1, mtime=0)


def _require_installable(loaded: helm_python.Chart, label: str, chart: Path) -> None:
    metadata = loaded.metadata
    if metadata.get("type") == "library":
        raise RenderError(f"chart {label} is a library chart, which cannot be installed")
    wanted = str(metadata.get("kubeVersion") or "")
    least = _AT_LEAST.fullmatch(wanted)
    if least and [int(part or 0) for part in least.groups()] > list(map(int, DEFAULT_KUBE_VERSION.split("."))):
        what = f"requires kubeVersion: {wanted}, which is incompatible with Kubernetes v{DEFAULT_KUBE_VERSION}"
        raise RenderError(f"chart {label} {what}")
    declared = [str(dependency.get("name")) for dependency in metadata.get("dependencies") or ()]
    present = {str(dependency.get("name")) for dependency in loaded.dependencies}
    missing = sorted(set(declared) - present)
    if missing:
        raise RenderError(
            f"chart {label} lacks subcharts that its Chart.yaml names: {', '.join(missing)}",
            hint=f"run: helm dependency build {shlex.quote(str(chart))}",
        )
