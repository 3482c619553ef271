"""The Helm engine that runs a helm 3 or 4 program.

Value files reach it through a private temporary folder that is gone when the call returns. Notes are not
part of `helm template`, so renderings of this engine have none.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trainchart.errors import ToolError
from trainchart.helm.asked import Asked
from trainchart.helm.errors import clean_lint_message, render_error
from trainchart.helm.io import inputs
from trainchart.helm.io.inputs import (
    DEFAULT_KUBE_VERSION,
    chart_label,
    describe_request,
    require_chart,
    require_own_schemas,
    require_release_name,
    require_whole_values,
)
from trainchart.helm.manifests import parse_manifests, sections, split_by_source
from trainchart.helm.rendering import LintMessage, Rendering, ValueOverrides

_LINT_LINE = re.compile(r"^\[(?P<severity>INFO|WARNING|ERROR)\] (?P<path>[^:\n]*): ", re.MULTILINE)
_LINT_SUMMARY = re.compile(r"^(?:==> Linting|\d+ chart\(s\) linted).*$", re.MULTILINE)


@dataclass(frozen=True)
class BinaryEngine:
    """Runs the helm program at `path`."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

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
        require_own_schemas(chart)
        require_release_name(release)
        require_whole_values(overrides)
        with _value_options(overrides) as (options, names):
            # The version is always said: helm's own default depends on how the program was built.
            argv = ["template", release, _absolute(chart), "--namespace", namespace, "--include-crds"]
            argv += ["--kube-version", kube_version or DEFAULT_KUBE_VERSION, *options]
            argv += [f"--api-versions={version}" for version in api_versions]
            if is_upgrade:
                argv.append("--is-upgrade")
            if not validate:
                argv.append("--skip-schema-validation")
            done = self._run(argv, chart)
            if done.returncode != 0:
                raise render_error(_named(done.stderr, names), chart_label(chart), describe_request(chart, overrides))
        texts: dict[str, str] = {}
        for source, text in sorted(split_by_source(done.stdout).items()):
            # A file of crds/ is printed as it is, and may name sources of its own: none of them may hide another.
            path = source.partition("/")[2]
            texts[path] = f"{texts[path]}---\n{text}" if path in texts else text
        return Rendering(release, namespace, parse_manifests(texts, chart_label(chart)), texts)

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
        require_own_schemas(chart)
        require_whole_values(overrides)
        with _value_options(overrides) as (options, names):
            version = kube_version or DEFAULT_KUBE_VERSION
            if not validate:
                options.append("--skip-schema-validation")
            done = self._run(["lint", _absolute(chart), "--strict", "--kube-version", version, *options], chart)
            messages = _parse_lint(_named(done.stdout, names), strict, describe_request(chart, overrides))
            if done.returncode != 0 and not any(message.severity != "info" for message in messages):
                raise render_error(_named(done.stderr, names), chart_label(chart), describe_request(chart, overrides))
        return messages

    def _run(self, argv: list[str], chart: Path) -> subprocess.CompletedProcess[str]:
        # HELM_DEBUG, HELM_NAMESPACE and the like would change the result behind the caller's back.
        environment = {key: value for key, value in os.environ.items() if not key.startswith("HELM_")}
        try:
            return run_helm(self.path, argv, environment, inputs.RENDER_SECONDS)
        except ToolError as error:
            if isinstance(error.__cause__, subprocess.TimeoutExpired):
                raise inputs.endless_chart(chart) from error
            raise


def run_helm(
    program: Path, argv: Sequence[str], environment: Mapping[str, str], timeout_seconds: float, *, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a helm program to its end, with `given` as its standard input; one that fails has said why in stderr.

    Raises:
        ToolError: it cannot be started, does not end in time, or fails without an error message.
    """
    try:
        done = subprocess.run(
            [str(program), *argv],
            env=environment,
            input=given.encode(),
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{program} {argv[0]} did not end within {timeout_seconds:.0f} seconds") from error
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot run {program}: {error}", hint="is this a helm 3 or 4 program?") from error
    if done.returncode != 0 and not done.stderr.strip():
        code = done.returncode
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise ToolError(
            f"{program} {argv[0]} ended with {how} without printing an error", hint="is this a helm 3 or 4 program?"
        )
    # Not as text: Python would make a newline of a carriage return, which Helm prints and Kubernetes reads.
    out, err = (each.decode("utf-8", errors="replace") for each in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@contextmanager
def _value_options(overrides: ValueOverrides) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the options for `overrides` and what to call the temporary files in messages."""
    with tempfile.TemporaryDirectory(prefix="trainchart-values-") as folder:
        options: list[str] = []
        names: dict[str, str] = {}
        for number, (name, text) in enumerate(overrides.files):
            path = Path(folder, f"{number}.yaml")
            # Some helm versions ignore a one-line file of exactly n * 4096 bytes: helm/helm#32506.
            path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
            options += ["--values", str(path)]
            names[str(path)] = name
        for flag, expressions in (
            ("--set-json", overrides.set_jsons),
            ("--set", overrides.sets),
            ("--set-string", overrides.set_strings),
        ):
            for expression in expressions:
                options += [flag, expression]
        yield options, names


def _named(text: str, names: dict[str, str]) -> str:
    for path, name in names.items():
        text = text.replace(path, name)
    return text


def _absolute(chart: Path) -> str:
    # A relative path could be taken for a chart of a repository, or for an option.
    return str(chart.absolute())


def _parse_lint(stdout: str, strict: bool, asked: Asked) -> tuple[LintMessage, ...]:
    messages: list[LintMessage] = []
    for mark, text in sections(_LINT_LINE, _LINT_SUMMARY.sub("", stdout)):
        severity = mark["severity"].lower()
        if strict and severity == "warning":
            severity = "error"
        messages.append(LintMessage(severity, mark["path"], clean_lint_message(text, asked)))
    return tuple(messages)
