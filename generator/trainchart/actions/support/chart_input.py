"""The files of a chart given on the command line, whether it is a folder or an archive."""

from __future__ import annotations

from pathlib import Path

from trainchart.archive.read import parse_archive, parse_packed_chart
from trainchart.errors import ToolError
from trainchart.helm.io.inputs import require_chart
from trainchart.host.files import read_bytes, read_tree


def read_chart_files(chart: Path, *, is_compared: bool = False) -> dict[str, bytes]:
    """Return the files of the chart at `chart` by relative path. Raises ToolError where it is no chart.

    An archive whose content `is_compared` must not hold files that its .helmignore leaves out.
    """
    require_chart(chart)
    if chart.is_dir():
        return read_tree(chart)
    try:
        parse = parse_packed_chart if is_compared else parse_archive
        return dict(parse(read_bytes(chart)).files)
    except ToolError as error:
        raise ToolError(f"{chart}: {error.message}", hint=error.hint) from error
