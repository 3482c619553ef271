"""Charts within a chart, in folders or packed, as `helm dependency build` leaves them in charts/. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from trainchart.archive.chart_keys import find_mistaken_key
from trainchart.archive.read import parse_archive
from trainchart.archive.values_file import require_one_document
from trainchart.errors import ToolError
from trainchart.kubernetes_yaml import YamlError, parse_mapping

_CHART = "Chart.yaml"
_REQUIREMENTS = "requirements.yaml"
_VALUES = "values.yaml"
_BOM = b"\xef\xbb\xbf"
"""Helm drops it from every file, archives included."""
_PACKED = re.compile(r"charts/[^/._][^/]*\.tgz")
_PACKED_BELOW = re.compile(rf"(?:charts/[^/._][^/]*/)*{_PACKED.pattern}")
_INSIDE = re.compile(r"charts/([^/._][^/]*)/(.+)", re.DOTALL)
_NESTED_LIMIT = 5
"""Charts within each other: more are refused where names are compared, and stay packed elsewhere."""
_SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes that are unpacked of the charts in one folder; those beyond stay packed."""
_PACKED_LIMIT = 500
"""Packed charts in a chart, those within each other included."""
_WHOLE_LIMIT = 512 * 1024 * 1024
"""Bytes that all of them unpack to."""


class Unpacker:
    """Unpacks the packed charts in one chart: a few kilobytes can hold ten thousand million within each other."""

    def __init__(self) -> None:
        self._number = 0
        self._size = 0

    def unpack(self, archive: bytes) -> dict[str, bytes]:
        """Return the files of a packed chart. Raises ToolError where it cannot be read, or is one too many."""
        self._number += 1
        if self._number > _PACKED_LIMIT or self._size > _WHOLE_LIMIT:
            raise ToolError(
                f"the chart holds more than {_PACKED_LIMIT} packed charts, or {_WHOLE_LIMIT // 1024**2} MiB in them",
                hint="unpack them in charts/, and remove those that are not needed",
            )
        files = dict(parse_archive(archive.removeprefix(_BOM)).files)
        self._size += sum(map(len, files.values()))
        return files


def open_packed(files: Mapping[str, bytes], *, mark: str = "") -> dict[str, bytes]:
    """Return the files of a chart (path → content) with packed subcharts as folders, as far as they can be read.

    The folder has the archive's name without .tgz, and `mark` behind it.
    """
    return _open_packed(files, mark, _NESTED_LIMIT, Unpacker())


def is_packed(path: str) -> bool:
    """Tell whether a file of a chart is a packed subchart; with open_packed, one that stayed packed."""
    return _PACKED_BELOW.fullmatch(path) is not None


def _open_packed(files: Mapping[str, bytes], mark: str, depth: int, unpacker: Unpacker) -> dict[str, bytes]:
    opened: dict[str, bytes] = {}
    size = 0
    for path, content in files.items():
        try:
            inner = unpacker.unpack(content) if depth and is_packed(path) else {}
        except ToolError:
            inner = {}
        inner_size = sum(map(len, inner.values()))
        inner = inner if size + inner_size <= _SIZE_LIMIT else {}
        size += inner_size if inner else 0
        folder = path.removesuffix(".tgz") + mark
        below = _open_packed(inner, mark, depth - 1, unpacker) if inner else {}
        opened |= {f"{folder}/{name}": each for name, each in below.items()} or {path: content}
    return opened


def require_unambiguous(files: Mapping[str, bytes]) -> None:
    """Refuse subcharts of one name, in a chart or in one in it, and those whose names Helm may read differently.

    Helm loads them in an order that changes from run to run, and takes the first. A subchart goes by the name in its
    own Chart.yaml, or by the alias that a dependency gives it. A values.yaml of several documents is refused, too,
    in the chart and in those in it.

    Raises:
        ToolError: there are such subcharts or values, or some that cannot be read.
    """
    _require_unambiguous(files, "", _NESTED_LIMIT, Unpacker())


def _require_unambiguous(files: Mapping[str, bytes], where: str, depth: int, unpacker: Unpacker) -> str:
    """Return the name of the chart with the path `where`, once all below it are checked."""
    chart = _read(files, where)
    require_one_document(files.get(_VALUES, b""), f"{where}{_VALUES}")
    called, declared = _list_declared(chart.get("dependencies"), where)
    names: list[str] = []
    # One at a time: together, unpacked charts may be larger than the memory.
    for path, each in _list_subcharts(files, where, unpacker):
        if not depth:
            raise ToolError(
                f"{path}: more than {_NESTED_LIMIT} charts are nested in each other",
                hint="move the inner ones into the charts/ of one further out",
            )
        names.append(_require_unambiguous(each, f"{path}/", depth - 1, unpacker))
    for listed in (names, (*called, *({*names} - declared))):
        for name, count in Counter(listed).items():
            if count > 1:
                raise ToolError(
                    f"two subcharts are called {name!r}, and Helm picks one at random",
                    hint=f"the name is that in each {_CHART}, or an alias in dependencies: give one of them an alias",
                )
    return _require_text("name", chart.get("name"), f"{where}{_CHART}: the name") if where else ""


def _list_declared(dependencies: object, where: str) -> tuple[list[str], set[str]]:
    """Return what dependencies are called, and the names of their charts."""
    called: list[str] = []
    declared: set[str] = set()
    for entry in dependencies if isinstance(dependencies, list) else ():
        if isinstance(entry, dict):
            _require_known(entry, ("alias", "name"), f"{where}{_CHART}")
            names = {key: entry[key] for key in ("name", "alias") if entry.get(key) not in (None, "")}
            for key, value in names.items():
                _require_text(key, value, f"{where}{_CHART}: the {key}", " in dependencies")
            declared.add(names.get("name", ""))
            called.append(names.get("alias") or names.get("name", ""))
    return called, declared


def _require_text(key: str, value: object, what: str, place: str = "") -> str:
    if value is None:
        raise ToolError(f"{what} is missing", hint=f"write {key}: TEXT")
    if not isinstance(value, str):
        raise ToolError(
            f"{what} {value!r}{place} is not a string: Helm would read it as a different value",
            hint=f'write {key}: "TEXT"',
        )
    # Helm drops some characters, and which ones depends on the version of Unicode.
    if not value.isascii() or not value.isprintable():
        raise ToolError(f"{what} {value!a}{place} is not plain ASCII", hint="use letters, digits and dashes")
    return value


def _require_known(data: Mapping[str, Any], known: tuple[str, ...], path: str) -> None:
    mistaken = find_mistaken_key(data, known)
    if mistaken is not None:
        raise ToolError(f"{path}: {mistaken}", hint=f"write {mistaken.meant}, or leave it out")


def _list_subcharts(
    files: Mapping[str, bytes], where: str, unpacker: Unpacker
) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield path and files of each subchart that Helm loads. Raises ToolError for an archive that cannot be read."""
    folders: dict[str, dict[str, bytes]] = {}
    for path, content in files.items():
        if _PACKED.fullmatch(path):
            try:
                unpacked = unpacker.unpack(content)
            except ToolError as error:
                hint = error.hint or "package the subchart again, or unpack it in charts/"
                raise ToolError(f"{where}{path} cannot be read: {error.message}", hint=hint) from error
            yield where + path, unpacked
        elif found := _INSIDE.fullmatch(path):
            folders.setdefault(found[1], {})[found[2]] = content
    yield from ((f"{where}charts/{name}", each) for name, each in folders.items() if _CHART in each)


def _read(files: Mapping[str, bytes], where: str) -> dict[str, Any]:
    """Return what Helm takes for the Chart.yaml of a chart. Raises ToolError where it may take something else."""
    chart: dict[str, Any] = {}
    for name in (_CHART, _REQUIREMENTS):
        path = where + name
        try:
            data = parse_mapping(files.get(name, b"").decode("utf-8-sig"))
        except (UnicodeDecodeError, YamlError) as error:
            line = f"line {error.line}: " if isinstance(error, YamlError) and error.line else ""
            raise ToolError(f"{path} cannot be read: {line}{error}", hint="correct it, or remove the chart") from error
        _require_known(data, ("dependencies", "name"), path)
        if chart.get("dependencies") and data.get("dependencies"):
            raise ToolError(
                f"{path}: dependencies are in {where}{_CHART}, too, and Helm mixes both",
                hint=f"keep those in {_CHART}",
            )
        chart |= data
    return chart
