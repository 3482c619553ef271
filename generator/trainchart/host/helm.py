"""The Helm engine as the rest of trainchart sees it, and the choice between the two there are.

An engine renders and lints exactly as `helm install` and `helm lint` would. The SDK (a Python package that
bundles Helm 4) is an optional extra; a helm 3 or 4 binary is the other way.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Protocol

from trainchart.errors import ToolError
from trainchart.rendering import LintMessage, Rendering, ValueOverrides

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


def find_engine(choice: str = "auto") -> HelmEngine:
    """Return the engine for `choice`: auto (SDK, else helm on PATH), sdk, binary, or a helm program."""
    if choice == "sdk":
        return _sdk(fallback=None)
    if choice == "binary":
        return _binary_on_path()
    if choice != "auto":
        return _binary(Path(choice))
    if importlib.util.find_spec("helm_python") is None:
        return _binary_on_path()
    found = shutil.which("helm")
    return _sdk(fallback=_binary(Path(found)) if found else None)


def _sdk(fallback: HelmEngine | None) -> HelmEngine:
    # Imported when chosen: the library behind it weighs 100 MB.
    from trainchart.host.helm_sdk import SdkEngine

    return SdkEngine(fallback)


def _binary(path: Path) -> HelmEngine:
    from trainchart.host.helm_binary import BinaryEngine

    if shutil.which(path) is None:
        raise ToolError(
            f"there is no helm program at {path}",
            hint="choose the engine auto, sdk or binary, or give the path of an executable helm",
        )
    return BinaryEngine(path)


def _binary_on_path() -> HelmEngine:
    found = shutil.which("helm")
    if found is None:
        raise ToolError("no Helm engine found", hint=INSTALL_HINT)
    return _binary(Path(found))
