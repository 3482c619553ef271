"""docs/benchmarks.md as text: sections begin with "## ", and those not measured again stay unchanged. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.measure import Row

_HEADING = "## "


def dump_section(title: str, when: str, rows: Sequence[Row], reason: str) -> str:
    """Dump a section; `reason` explains a missed mark, and is left out where all are met."""
    lines = [f"{_HEADING}{title}", "", when, "", "| what | measured | target | |", "|---|---|---|---|"]
    notes = []
    for row in rows:
        if row.what:
            mark = "" if row.mark is None else f"{'≥' if row.lowest else '≤'} {row.mark:g} {row.unit}"
            verdict = "" if row.mark is None else "**missed**" if row.is_missed else "met"
            remarks = "; ".join(part for part in (verdict, row.note) if part)
            lines.append(f"| {row.what} | {_show(row.value)} {row.unit} | {mark} | {remarks} |")
        else:
            notes.append(row.note)
    if reason and any(row.is_missed for row in rows):
        notes.append(reason)
    return "\n".join([*lines, *(line for note in notes for line in ("", note))]) + "\n"


def replace_sections(page: str, head: str, sections: Mapping[str, str], order: Sequence[str]) -> str:
    """Return the page with a new head and new sections by title; others keep their text, in this order of titles."""
    parts = f"\n{page}".split(f"\n{_HEADING}")[1:]
    kept = {part.partition("\n")[0]: f"{_HEADING}{part.rstrip()}\n" for part in parts}
    texts = {**kept, **sections}
    return "\n".join([head, *(texts[title] for title in order if title in texts)])


def _show(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
