"""Renders a chart given as files, with every set of values that its next version will be compared by."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trainchart.archive.chart_file import parse_chart_file
from trainchart.archive.identity import build_tar
from trainchart.archive.ignore import drop_ignored
from trainchart.compare.chart import SCHEMA_FILE, RenderedVersion
from trainchart.errors import RenderError, ToolError
from trainchart.helm.io.choose import find_engine
from trainchart.helm.io.protocol import HelmEngine
from trainchart.helm.rendering import Rendering, ValueOverrides

VALUES_FILES_LIMIT = 30
"""Files ci/*-values.yaml of a chart that are used: Helm may take minutes with each."""
_RELEASE = "release"


def values_sets(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the YAML of every set of values in the chart's ci folder by its name, and none for its own.

    Raises ToolError for more than VALUES_FILES_LIMIT.
    """
    found = {path: text.decode(errors="replace") for path, text in sorted(files.items()) if is_values_file(path)}
    if len(found) > VALUES_FILES_LIMIT:
        raise ToolError(
            f"the chart has {len(found)} files ci/*-values.yaml, more than {VALUES_FILES_LIMIT}",
            hint="remove some, or join them",
        )
    return {"": "", **found}


def render_version(
    helm: HelmEngine,
    files: Mapping[str, bytes],
    values: Mapping[str, str],
    *,
    validate: bool = True,
    is_upgrade: bool = True,
) -> RenderedVersion:
    """Render a chart with each of `values` (name → YAML). Raises ToolError where `files` are no chart.

    `validate=False` leaves out the schema of the values, which takes longer than all templates: for values that fit.
    """
    chart = parse_chart_file(files)
    packed = {path: content for path, content in drop_ignored(files).items() if validate or path != SCHEMA_FILE}
    renderings: dict[str, Rendering | str] = {}
    with tempfile.TemporaryDirectory(prefix="trainchart-") as folder:
        archive = Path(folder, "chart.tgz")
        archive.write_bytes(gzip.compress(build_tar(chart.name, packed), compresslevel=1, mtime=0))
        for name, text in values.items():
            overrides = ValueOverrides(files=((name, text),) if text else ())
            try:
                renderings[name] = helm.render(archive, release=_RELEASE, overrides=overrides, is_upgrade=is_upgrade)
            except RenderError as error:
                renderings[name] = "; ".join([error.message, *map(str, error.problems)])
    return RenderedVersion(chart.version, files, renderings)


def require_rendering(files: Mapping[str, bytes], engine: str, *, with_install: bool = False) -> Rendering:
    """Return a chart rendered with its own values, as for an upgrade, and `with_install` also as for a first install.

    It then holds the objects of both: a template can render a pod for only one of them.

    Raises RenderError where it does not render with them.
    """
    helm = find_engine(engine)
    rendering = _require_rendered(render_version(helm, files, {"": ""}), "see what is wrong with: trainchart check")
    if not with_install:
        return rendering
    # That the values fit the schema has just been checked.
    install = _require_rendered(
        render_version(helm, files, {"": ""}, validate=False, is_upgrade=False),
        "a first install must render with the chart's own values, or its images are not known; or leave out the check "
        "of images",
    )
    return replace(rendering, manifests=(*rendering.manifests, *install.manifests))


def _require_rendered(version: RenderedVersion, hint: str) -> Rendering:
    found = version.renderings[""]
    if isinstance(found, str):
        raise RenderError(found, hint=hint)
    return found


def is_values_file(path: str) -> bool:
    """Tell whether a file of a chart holds values to try it with."""
    return path.startswith("ci/") and path.endswith("-values.yaml")
