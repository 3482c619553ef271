"""From chart files to the bytes of a .tgz that helm accepts, the same bytes every time.

Only here does build information enter a chart, as annotations of Chart.yaml, so that charts can be checked
in and compared. Gathering that information is not done here.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from trainchart.archive.chart_file import (
    CHART_FILE,
    COMMIT_ANNOTATION,
    CREATED_ANNOTATION,
    GENERATOR_ANNOTATION,
    IDENTITY_ANNOTATION,
    IMAGES_ANNOTATION,
    PACKS_ANNOTATION,
    SPEC_ANNOTATION,
    TEMPLATES_ANNOTATION,
    parse_chart_file,
    stamp_chart_file,
)
from trainchart.archive.identity import build_tar, identity_of_kept
from trainchart.archive.ignore import drop_ignored
from trainchart.archive.lock import Lock
from trainchart.archive.read import parse_archive, parse_packed_chart

_GZIP_LEVEL = 9


@dataclass(frozen=True)
class BuildInfo:
    """Where and when a chart was packed; an empty commit and no time where neither is known."""

    git_commit: str = ""
    is_dirty: bool = False
    """The work tree held changes that the commit does not."""
    created_epoch: int | None = None
    """Seconds since 1970: SOURCE_DATE_EPOCH, else the time of the commit; never the clock."""
    lock: Lock | None = None
    """What the chart was generated from."""
    images: tuple[str, ...] = ()
    """The images that the chart names, by tag and digest; none where they were not asked for."""
    earlier: Mapping[str, str] = field(default_factory=dict)
    """Build annotations of an earlier version that are as true of this one."""


@dataclass(frozen=True)
class ChartArchive:
    """A packed chart: what to call it, its bytes, and the identity of its content."""

    name: str
    version: str
    filename: str
    data: bytes
    identity: str
    paths: tuple[str, ...]
    """The files inside, relative to the chart folder."""
    build: Mapping[str, str]
    """Its build annotations, which take no part in the identity."""


def pack_chart(files: Mapping[str, bytes], build: BuildInfo) -> ChartArchive:
    """Pack `files` (relative path → content) as `helm package` would; ToolError if they are no chart."""
    chart = parse_chart_file(files)
    kept = drop_ignored(files)
    identity = identity_of_kept(chart, kept)
    annotations = _annotations(identity, build)
    stamped = stamp_chart_file(chart, annotations)
    data = _compress(build_tar(chart.name, {**kept, CHART_FILE: stamped.encode()}))
    parse_archive(data)  # refuses names of files that are another path to Helm, or that no reader takes
    return ChartArchive(
        name=chart.name,
        version=chart.version,
        filename=f"{chart.name}-{chart.version}.tgz",
        data=data,
        identity=identity,
        paths=tuple(sorted({*kept, CHART_FILE})),
        build=annotations,
    )


def open_archive(data: bytes) -> ChartArchive:
    """Return the chart that the .tgz `data` holds, its bytes as they are; ToolError if it holds none."""
    files = parse_packed_chart(data).files
    chart = parse_chart_file(files)
    return ChartArchive(
        name=chart.name,
        version=chart.version,
        filename=f"{chart.name}-{chart.version}.tgz",
        data=data,
        identity=identity_of_kept(chart, files),
        paths=tuple(files),
        build=chart.build,
    )


def _annotations(identity: str, build: BuildInfo) -> dict[str, str]:
    annotations = {**build.earlier, IDENTITY_ANNOTATION: identity}
    if build.git_commit:
        annotations[COMMIT_ANNOTATION] = build.git_commit + ("-dirty" if build.is_dirty else "")
    if build.created_epoch is not None:
        created = datetime.fromtimestamp(build.created_epoch, UTC)
        annotations[CREATED_ANNOTATION] = created.strftime("%Y-%m-%dT%H:%M:%SZ")
    if build.lock is not None:
        annotations[GENERATOR_ANNOTATION] = build.lock.generator
        annotations[SPEC_ANNOTATION] = build.lock.spec.sha256
        annotations[TEMPLATES_ANNOTATION] = build.lock.family.sha256
        if build.lock.layers:
            annotations[PACKS_ANNOTATION] = " ".join(f"{pack.name}={pack.sha256}" for pack in build.lock.layers)
    if build.images:
        annotations[IMAGES_ANNOTATION] = " ".join(build.images)
    return annotations


def _compress(tar: bytes) -> bytes:
    buffer = io.BytesIO()
    # No file name and no time in the header: both would differ from run to run.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=_GZIP_LEVEL, fileobj=buffer, mtime=0) as stream:
        stream.write(tar)
    return buffer.getvalue()
