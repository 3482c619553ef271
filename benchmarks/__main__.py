"""Run every benchmark once and write docs/benchmarks.md."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
from pathlib import Path

from benchmarks.generator import ROOT, measure_hundred, measure_one_chart, measure_start
from benchmarks.launcher import measure_launcher
from benchmarks.measure import Row
from benchmarks.peers import measure_peers
from testcluster.programs import find_program
from testcluster.versions import GO_PROGRAMS

PAGE = ROOT / "docs" / "benchmarks.md"
REASONS = {
    "Generate one chart": (
        "A process of trainchart spends its time before the first chart: Python with pydantic's models, ruamel.yaml, "
        "Jinja's compiler and jsonschema are imported and built anew, and helm is one compiled program. "
        "Inside a process that runs already, the same chart takes a fraction of `helm template`."
    ),
    "Start": "Every command's module is imported and its options are declared before help is printed.",
    "A hundred charts": (
        "Of generating, reading the spec with the position of every key (ruamel.yaml, pure Python) takes the largest "
        "part. A check renders a chart several times in Helm, and yamllint reads every output in pure Python."
    ),
    "Launcher": "The launcher is a second Python interpreter beside the program's own.",
}
"""Why a mark is missed, for the sections where one may be; printed only where one is."""


def main() -> None:
    helm = find_program("helm-4")
    sections = {
        "Start": measure_start(),
        "Generate one chart": measure_one_chart(helm),
        "A hundred charts": measure_hundred(),
        "Launcher": measure_launcher(),
        "Beside others": measure_peers(helm),
    }
    lines = [*_head(), *(line for title, rows in sections.items() for line in _section(title, rows))]
    PAGE.write_text("\n".join(lines) + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)}")


def _head() -> list[str]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("trainchart", "pydantic", "typer"))
    load = os.getloadavg()[0]
    return [
        "# Benchmarks",
        "",
        "Written by `make bench`, from one run. Contenders take turns; times are medians of at least five rounds after",
        "one that does not count, and only the sums over a hundred charts are taken once. Ratios say more than times:",
        "the machine may be busy with other things.",
        "",
        f"- {datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {_processor()}, {os.cpu_count()} cores,"
        f" load {load:.1f} at the end",
        f"- Python {platform.python_version()}, {versions}, helm {GO_PROGRAMS['helm-4'].version}",
    ]


def _section(title: str, rows: list[Row]) -> list[str]:
    lines = ["", f"## {title}", "", "| what | measured | mark | |", "|---|---|---|---|"]
    notes = []
    for row in rows:
        if row.what:
            mark = "" if row.mark is None else f"{'≥' if row.lowest else '≤'} {row.mark:g} {row.unit}"
            verdict = "" if row.mark is None else "**missed**" if row.is_missed else "met"
            lines.append(f"| {row.what} | {_shown(row.value)} {row.unit} | {mark} | {verdict or row.note} |")
        else:
            notes.append(row.note)
    if any(row.is_missed for row in rows):
        notes.append(REASONS[title])
    return [*lines, *(line for note in notes for line in ("", note))]


def _shown(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
