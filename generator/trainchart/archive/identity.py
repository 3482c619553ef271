"""The content identity of a chart: two charts with the same identity install the same.

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


def compute_identity(files: Mapping[str, bytes]) -> str:
    """Return the identity (64 hexadecimal digits) of a chart. Raises ToolError if `files` are none."""
    chart = parse_chart_file(files)
    return identity_of_kept(chart, drop_ignored(files))


def compute_identity_without_version(files: Mapping[str, bytes]) -> str:
    """Return what tells whether two versions of a chart differ in anything but their version."""
    chart = parse_chart_file(files)
    unversioned = replace(chart, data={**chart.data, "version": ""})
    return identity_of_kept(unversioned, drop_ignored(files))


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
