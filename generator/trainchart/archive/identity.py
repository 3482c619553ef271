"""The content identity of a chart: two charts with the same identity install the same.

Except for templates that read our build annotations (.Chart.Annotations), which generated charts do not.

It is the sha256 of the canonical uncompressed tar. Compression differs between zlib versions and Chart.yaml
is re-written by `helm package`, so neither the gzip bytes nor the text of Chart.yaml take part: Chart.yaml
enters as sorted JSON without our build annotations.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import replace

from trainchart.archive.chart_file import CHART_FILE, ChartFile, parse_chart_file
from trainchart.archive.ignore import drop_ignored

CHANGELOG_FILE = "CHANGELOG.md"
CHANGES_ANNOTATION = "artifacthub.io/changes"
"""What changed in a version, which Artifact Hub shows."""


def compute_identity(files: Mapping[str, bytes]) -> str:
    """Return the identity (64 hexadecimal digits) of a chart. Raises ToolError if `files` are none."""
    chart = parse_chart_file(files)
    return identity_of_kept(chart, drop_ignored(files))


def compute_released_identity(files: Mapping[str, bytes]) -> str:
    """Return the identity of a chart without what a release adds: version and list of changes.

    Two versions that differ in nothing else need not both be published.
    """
    chart = parse_chart_file(files)
    data = {key: value for key, value in chart.plain_data.items() if key != "version"}
    annotations = {key: value for key, value in chart.annotations.items() if key != CHANGES_ANNOTATION}
    kept = {path: content for path, content in drop_ignored(files).items() if path != CHANGELOG_FILE}
    return identity_of_kept(replace(chart, data={**data, "annotations": annotations}), kept)


def identity_of_kept(chart: ChartFile, kept: Mapping[str, bytes]) -> str:
    """Return the identity of files that .helmignore has been applied to."""
    canonical = json.dumps(chart.plain_data, sort_keys=True, ensure_ascii=False, default=str).encode()
    return hashlib.sha256(build_tar(chart.name, {**kept, CHART_FILE: canonical})).hexdigest()


def build_tar(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Return the tar of `files` below `folder`: sorted, mode 0644, owner 0, time 0."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in sorted(files.items()):
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size = len(content)
            entry.mode = 0o644
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
