"""Charts within a chart, in folders or packed, as `helm dependency build` leaves them in charts/. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.archive.read import parse_archive
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, parse_mapping

_PACKED = re.compile(r"charts/[^/._][^/]*\.tgz")
_INSIDE = re.compile(r"charts/([^/._][^/]*)/(.+)", re.DOTALL)
_NESTED_LIMIT = 3
"""Charts within each other that are unpacked; others stay as they are."""
_SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes that are unpacked of the charts in one folder; those beyond stay packed."""


def open_packed(files: Mapping[str, bytes], *, mark: str = "", depth: int = _NESTED_LIMIT) -> dict[str, bytes]:
    """Return the files of a chart (path → content) with packed subcharts as folders, as far as they can be read.

    The folder has the archive's name without .tgz, and `mark` behind it.
    """
    opened: dict[str, bytes] = {}
    size = 0
    for path, content in files.items():
        try:
            inner = parse_archive(content).files if depth and _PACKED.fullmatch(path) else {}
        except ToolError:
            inner = {}
        size += sum(map(len, inner.values()))
        inner = inner if size <= _SIZE_LIMIT else {}
        folder = path.removesuffix(".tgz") + mark
        below = open_packed(inner, mark=mark, depth=depth - 1) if inner else {}
        opened |= {f"{folder}/{name}": each for name, each in below.items()} or {path: content}
    return opened


def find_repeated_subchart(files: Mapping[str, bytes]) -> str:
    """Return the name that two subcharts of a chart, or of one in it, go by; "" where there is none.

    Helm loads them in an order that changes from run to run, and takes the first. A subchart goes by the name in its
    own Chart.yaml, or by the alias that a dependency gives it.
    """
    return next(_find_repeated(files, _NESTED_LIMIT), "")


def _find_repeated(files: Mapping[str, bytes], depth: int) -> Iterator[str]:
    names: list[str] = []
    # One at a time: together, unpacked charts may be larger than the memory.
    for each in _list_subcharts(files) if depth else ():
        names.append(str(_read(each).get("name")))
        yield from _find_repeated(each, depth - 1)
    yield from (name for name, count in Counter(names).items() if count > 1)
    dependencies = _read(files).get("dependencies")
    entries = [each for each in dependencies if isinstance(each, dict)] if isinstance(dependencies, list) else []
    called = [str(each.get("alias") or each.get("name")) for each in entries]
    undeclared = {*names} - {str(each.get("name")) for each in entries}
    yield from (name for name, count in Counter((*called, *undeclared)).items() if count > 1)


def _list_subcharts(files: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Yield the files of each subchart that Helm loads, as far as they can be read."""
    folders: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        if _PACKED.fullmatch(path):
            try:
                yield dict(parse_archive(content).files)
            except ToolError:
                continue
        elif found := _INSIDE.fullmatch(path):
            folders.setdefault(found[1], {})[found[2]] = content
    yield from (each for each in folders.values() if "Chart.yaml" in each)


def _read(files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return what Helm takes for the Chart.yaml of a chart; empty where it cannot be read."""
    try:
        texts = (files.get(name, b"").decode("utf-8-sig") for name in ("Chart.yaml", "requirements.yaml"))
        return {key: value for text in texts for key, value in parse_mapping(text).items()}
    except (UnicodeDecodeError, YamlError):
        return {}
