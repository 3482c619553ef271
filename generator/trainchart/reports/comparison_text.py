"""Lays a comparison of runs out as a table: a column per run, in blocks where a terminal is too narrow for all. Pure.

Lines consist of spans with a style, so that a terminal can have colours and a file none. The best of a row has a star,
too: colours alone do not reach everyone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trainchart.reports.comparison import SECONDS, UNIX_TIME, Cell, Comparison, count_rows
from trainchart.reports.text import describe_seconds, describe_time
from trainchart.reports.widths import cut, cut_alike, measure
from trainchart_runtime.run.state import FAILED

HEADING = "heading"
BEST = "best"
BAD = "bad"

_CELL_WIDTH = 32
"""A longer text is cut; JSON has all of it."""
_NAME_WIDTH = 48
_GAP = 2
_STAR = " *"


class Span(NamedTuple):
    """A piece of a line, and how it looks."""

    text: str
    style: str = ""
    """HEADING, BEST or BAD; empty for plain text."""


Line = tuple[Span, ...]


def lay_out(comparison: Comparison, *, shows_all: bool, width: int | None) -> list[Line]:
    """Return the lines of the table; `width` is the terminal's, None for as wide as it needs to be."""
    grid = list(_fill_grid(comparison, shows_all=shows_all))
    widths = [max(measure(span.text) for span in column) for column in zip(*grid, strict=True)]
    lines: list[Line] = []
    for block in _split(widths, width):
        lines += [()] if lines else []
        lines += (_join([line[at] for at in block], [widths[at] for at in block]) for line in grid)
    return [*lines, *((Span(note),) for note in _list_notes(comparison, shows_all=shows_all))]


def _fill_grid(comparison: Comparison, *, shows_all: bool) -> Iterator[Line]:
    """Yield the rows of the whole table: the name of what they hold, and a span per run."""
    titles = [Span(title, HEADING) for title in cut_alike([run.title for run in comparison.runs], _CELL_WIDTH)]
    settings = [row for row in comparison.settings if shows_all or row.differs]
    for heading, rows in (("SETTINGS", settings), ("RESULTS", comparison.results), ("METRICS", comparison.metrics)):
        if rows:
            yield Span(heading, HEADING), *titles
            titles = [Span("")] * len(titles)  # once is enough
        for row in rows:
            texts = cut_alike([describe_cell(cell, row.unit) for cell in row.cells], _CELL_WIDTH - len(_STAR))
            spans = (Span(f"{text}{_STAR}", BEST) if cell.is_best else Span(text, BAD if cell.value == FAILED else "")
                     for text, cell in zip(texts, row.cells, strict=True))  # fmt: skip
            yield Span(cut(row.name, _NAME_WIDTH)), *spans


def _join(spans: Sequence[Span], widths: Sequence[int]) -> Line:
    """Return the spans below those of other lines, without spaces at the end."""
    last = max(at for at, span in enumerate(spans) if span.text or not at)
    line: list[Span] = []
    for span, width in zip(spans[:last], widths, strict=False):
        line += [span, Span(" " * (width - measure(span.text) + _GAP))]
    return (*line, spans[last])


def _split(widths: Sequence[int], width: int | None) -> Iterator[list[int]]:
    """Yield which columns go into one block: the names, and as many runs as fit beside them, but always one."""
    block, used = [0], widths[0]
    for at, each in enumerate(widths[1:], 1):
        if len(block) > 1 and width is not None and used + _GAP + each > width:
            yield block
            block, used = [0], widths[0]
        block.append(at)
        used += _GAP + each
    yield block


def describe_cell(cell: Cell, unit: str) -> str:
    """Return a cell in words: a question mark for what is not known, and a dash for nothing."""
    if not cell.is_known:
        return "?"
    if cell.value is None:
        return "-"
    if unit == SECONDS:
        return describe_seconds(cell.value)
    if unit == UNIX_TIME:
        return describe_time(cell.value)
    return _say(cell.value)


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
        words.append(f"{unknown} {'is' if unknown == 1 else 'are'} known only for some runs")
    if words and not shows_all:
        yield f"{', '.join(words)}; --all shows them"
