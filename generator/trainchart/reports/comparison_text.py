"""Lays a comparison of runs out as a table: a column per run, in blocks where a terminal is too narrow for all. Pure.

Lines consist of spans with a style, so that a terminal can have colours and a file none. The best of a row has a star,
too: colours alone do not reach everyone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trainchart.reports.comparison import SECONDS, UNIX_TIME, Cell, Comparison, Row, count_rows
from trainchart.reports.text import describe_seconds, describe_time
from trainchart.reports.widths import cut, measure
from trainchart_runtime.run.state import FAILED

HEADING = "heading"
BEST = "best"
BAD = "bad"

_CELL_WIDTH = 32
"""A longer text is cut; JSON has all of it."""
_NAME_WIDTH = 48
_GAP = 2


class Span(NamedTuple):
    """A piece of a line, and how it looks."""

    text: str
    style: str = ""
    """HEADING, BEST or BAD; empty for plain text."""


Line = tuple[Span, ...]


def lay_out(comparison: Comparison, *, shows_all: bool, width: int | None) -> list[Line]:
    """Return the lines of the table; `width` is the terminal's, None for as wide as it needs to be."""
    settings = [row for row in comparison.settings if shows_all or row.differs]
    sections = [("SETTINGS", settings), ("RESULTS", comparison.results), ("METRICS", comparison.metrics)]
    rows = [row for _, part in sections for row in part]
    texts = [[_describe(cell, row.unit) for cell in row.cells] for row in rows]
    titles = [cut(each.title, _CELL_WIDTH) for each in comparison.runs]
    widths = [max(map(measure, (title, *(line[at] for line in texts)))) for at, title in enumerate(titles)]
    names = max((measure(_name(row)) for row in rows), default=0)
    lines: list[Line] = []
    for block in _split(widths, names, width):
        lines += (
            [(), *_draw(sections, titles, widths, names, block)]
            if lines
            else _draw(sections, titles, widths, names, block)
        )
    return [*lines, *((Span(note),) for note in _list_notes(comparison, shows_all=shows_all))]


def _draw(
    sections: Sequence[tuple[str, Sequence[Row]]],
    titles: Sequence[str],
    widths: Sequence[int],
    names: int,
    block: Sequence[int],
) -> Iterator[Line]:
    is_first = True
    for heading, rows in sections:
        if not rows:
            continue
        shown = [Span(titles[at], HEADING) for at in block] if is_first else []
        yield _join([Span(heading, HEADING), *shown], [names, *(widths[at] for at in block)])
        is_first = False
        for row in rows:
            cells = [Span(_describe(row.cells[at], row.unit), _style(row.cells[at])) for at in block]
            yield _join([Span(_name(row)), *cells], [names, *(widths[at] for at in block)])


def _join(spans: Sequence[Span], widths: Sequence[int]) -> Line:
    """Return the spans below those of other lines, without spaces at the end."""
    line: list[Span] = []
    for at, span in enumerate(spans):
        is_last = at == len(spans) - 1
        line.append(span)
        if not is_last:
            line.append(Span(" " * (widths[at] - measure(span.text) + _GAP)))
    return tuple(line)


def _split(widths: Sequence[int], names: int, width: int | None) -> Iterator[list[int]]:
    """Yield which columns go into one block: as many as fit beside the names, and always one."""
    block: list[int] = []
    used = names
    for at, each in enumerate(widths):
        if block and width is not None and used + _GAP + each > width:
            yield block
            block, used = [], names
        block.append(at)
        used += _GAP + each
    if block:
        yield block


def _name(row: Row) -> str:
    return cut(row.name, _NAME_WIDTH)


def _style(cell: Cell) -> str:
    return BEST if cell.is_best else BAD if cell.value == FAILED else ""


def _describe(cell: Cell, unit: str) -> str:
    """Return a cell in words: a question mark for what is not known, and a dash for nothing."""
    if not cell.is_known:
        return "?"
    if cell.value is None:
        return "-"
    if unit == SECONDS:
        return describe_seconds(cell.value)
    if unit == UNIX_TIME:
        return describe_time(cell.value)
    return cut(_say(cell.value), _CELL_WIDTH - 2) + (" *" if cell.is_best else "")


def _say(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False)


def _list_notes(comparison: Comparison, *, shows_all: bool) -> Iterator[str]:
    if any(cell.is_best for row in (*comparison.results, *comparison.metrics) for cell in row.cells):
        yield "* the best of its row"
    alike, unknown = count_rows(comparison.settings)
    words = []
    if alike:
        other = "other " if any(row.differs for row in comparison.settings) else ""
        words.append(f"{alike} {other}{'setting is' if alike == 1 else 'settings are'} the same")
    if unknown:
        words.append(f"{unknown} {'is' if unknown == 1 else 'are'} known of some runs only")
    if words and not shows_all:
        yield f"{', '.join(words)}; --all shows them"
