"""Packs as archives: library charts for helm, so that every chart repository, registry and mirror takes them."""

from __future__ import annotations

from collections.abc import Mapping

from trainchart.archive.chart_file import CHART_FILE
from trainchart.archive.pack import BuildInfo, ChartArchive, pack_chart
from trainchart.archive.read import parse_packed_chart
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.packs.pack import Pack

_KIND_ANNOTATION = "trainchart/kind"


def pack_archive(pack: Pack, files: Mapping[str, bytes]) -> ChartArchive:
    """Return the archive of `pack`, the same bytes for the same `files`."""
    chart = {
        "apiVersion": "v2",
        "name": pack.name,
        "version": pack.version,
        "type": "library",
        "description": pack.description or f"The pack {pack.name}.",
        "annotations": {_KIND_ANNOTATION: "pack"},
    }
    return pack_chart({**files, CHART_FILE: dump_mapping(chart).encode()}, BuildInfo())


def parse_pack_archive(data: bytes) -> dict[str, bytes]:
    """Return the files of the pack in the .tgz `data`. Raises ToolError for what is damaged or hostile."""
    return {path: content for path, content in parse_packed_chart(data).files.items() if path != CHART_FILE}
