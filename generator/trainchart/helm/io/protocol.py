"""The Helm engine as the rest of trainchart sees it: it renders and lints exactly as `helm install` and `helm lint`."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from trainchart.helm.rendering import LintMessage, Rendering, ValueOverrides

NO_OVERRIDES = ValueOverrides()
INSTALL_HINT = (
    "pip install helm-python-sdk==0.2.2, or install helm 3 or 4 (https://helm.sh/docs/intro/install)"
    " so that it is on PATH"
)


class HelmEngine(Protocol):
    """Renders and lints charts: a chart folder or .tgz archive, subcharts included."""

    @property
    def name(self) -> str:
        """Say which engine this is, for messages and results."""

    def render(
        self,
        chart: Path,
        *,
        release: str,
        namespace: str = "default",
        overrides: ValueOverrides = NO_OVERRIDES,
        kube_version: str | None = None,
        api_versions: tuple[str, ...] = (),
        is_upgrade: bool = False,
        validate: bool = True,
    ) -> Rendering:
        """Return what `helm install` would create, hooks included; manifests sorted by source, kind and name.

        `validate=False` leaves out values.schema.json, which costs more than all templates together: for values
        that an earlier rendering has validated. A subchart that lies packed in charts/ may validate nevertheless.
        Raises RenderError where chart and values do not fit, ToolError where chart or engine is missing.
        """

    def lint(
        self,
        chart: Path,
        *,
        overrides: ValueOverrides = NO_OVERRIDES,
        strict: bool = True,
        kube_version: str | None = None,
        validate: bool = True,
    ) -> tuple[LintMessage, ...]:
        """Return the messages of `helm lint`; `strict` makes warnings errors, `validate` as in render."""
