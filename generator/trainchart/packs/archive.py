"""Packs as archives: library charts for helm, so that every chart repository, registry and mirror takes them."""

from __future__ import annotations

from collections.abc import Mapping

from trainchart.archive.chart_file import CHART_FILE
from trainchart.archive.pack import BuildInfo, ChartArchive, pack_chart
from trainchart.archive.read import parse_packed_chart
from trainchart.kubernetes_yaml import dump_mapping
from trainchart.packs.pack import Pack
from trainchart.packs.templates import TEMPLATES

_KIND_ANNOTATION = "trainchart/kind"
_OF_HELM = f"{TEMPLATES}/"
_OF_PACK = f"pack/{TEMPLATES}/"
"""Where an archive has templates: Helm would read those in templates/ as its own, and they are not."""


def pack_archive(pack: Pack, files: Mapping[str, bytes]) -> ChartArchive:
    """Return the archive of `pack`, the same bytes for the same `files`. Raises ToolError where it cannot be read."""
    chart = {
        "apiVersion": "v2",
        "name": pack.name,
        "version": pack.version,
        "type": "library",
        "description": pack.description or f"The pack {pack.name}.",
        "annotations": {_KIND_ANNOTATION: "pack"},
    }
    renamed = {_rename(path, _OF_HELM, _OF_PACK): content for path, content in files.items()}
    archive = pack_chart({**renamed, CHART_FILE: dump_mapping(chart).encode()}, BuildInfo())
    # What cannot be read again must reach neither a repository nor the cache.
    parse_pack_archive(archive.data)
    return archive


def parse_pack_archive(data: bytes) -> dict[str, bytes]:
    """Return the files of the pack in the .tgz `data`. Raises ToolError for what is damaged or hostile."""
    found = parse_packed_chart(data).files
    return {_rename(path, _OF_PACK, _OF_HELM): content for path, content in found.items() if path != CHART_FILE}


def _rename(path: str, before: str, after: str) -> str:
    return after + path.removeprefix(before) if path.startswith(before) else path
