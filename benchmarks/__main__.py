"""Run benchmarks, all of them or the named sections, and write what they measured into docs/benchmarks.md."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.console import measure_console
from benchmarks.generator import ROOT, measure_fleet, measure_hundred, measure_one_chart, measure_start
from benchmarks.launcher import measure_launcher
from benchmarks.library import measure_library
from benchmarks.lifecycle import measure_lifecycle
from benchmarks.measure import Row
from benchmarks.page import dump_section, replace_sections
from benchmarks.peers import measure_peers
from benchmarks.publishing import measure_publishing
from benchmarks.scale import measure_scale
from benchmarks.serving import measure_serving
from benchmarks.storage import measure_storage
from tests.cluster.testcluster.machine import find_obstacle
from tests.cluster.testcluster.programs import find_program
from tests.cluster.testcluster.versions import GO_PROGRAMS

PAGE = ROOT / "docs" / "benchmarks.md"
HEAD = """\
# Benchmarks

Written by `make bench`; `python -m benchmarks SECTION…` updates only the named sections. Contenders take turns;
times are medians of at least five rounds after one that does not count, unless a line says otherwise, and the sums over
a hundred charts are measured once. Ratios and differences say more than times, because the machine may be busy.

`python -m benchmarks.gpu` prints what can only be measured on GPUs, with no tool but TensorFlow: `mirrored` on one
and on several, memory growth and mixed precision. Where TensorFlow sees no GPU it says so, with exit code 69.
"""


@dataclass(frozen=True)
class Bench:
    """What one section of the page is made from."""

    title: str
    measure: Callable[[int], list[Row]]
    """From the number of rounds, for the benchmarks that take long."""
    reason: str = ""
    """Why a mark is missed, printed only where one is."""
    needs_cluster: bool = False


BENCHES = {
    "start": Bench(
        "Start",
        lambda _: measure_start(),
        "Every command's module is imported and its options are declared before help is printed.",
    ),
    "chart": Bench(
        "Generate one chart",
        lambda _: measure_one_chart(find_program("helm-4")),
        "A process of trainchart spends its time before the first chart: Python with pydantic's models, Jinja's "
        "compiler and jsonschema are imported and built again, and helm is one compiled program.",
    ),
    "hundred": Bench(
        "A hundred charts",
        lambda _: measure_hundred(),
        "Generating one chart takes about 13 ms of Python, plus the time to write 36 files. A check renders "
        "a chart some ten times in Helm, which alone takes half of its time, and two cores check two charts at a time.",
    ),
    "fleet": Bench(
        "Two hundred charts and a changed pack",
        lambda _: measure_fleet(find_program("helm-4")),
        "Each chart is generated again, and the old and the new one are rendered in Helm and compared.",
    ),
    "launcher": Bench(
        "Launcher",
        lambda _: measure_launcher(),
        "The launcher is a second Python interpreter beside the program's own.",
    ),
    "library": Bench("The training library", lambda _: measure_library()),
    "serving": Bench(
        "The model server",
        lambda _: measure_serving(),
        "Each request is read, queued, answered and written in Python, which costs more than a small network does, and "
        "the client takes its share of the same cores. The more a request computes, the less that counts.",
    ),
    "peers": Bench("Compared with other tools", lambda _: measure_peers(find_program("helm-4"))),
    "publishing": Bench("Publish into a large index", lambda _: measure_publishing(find_program("helm-4"))),
    "console": Bench(
        "The console with many runs",
        lambda _: measure_console(),
        "All runs are read before the first page is sent, and the API server of the releases is a Python program that "
        "needs the same cores.",
    ),
    "lifecycle": Bench(
        "The life of a run",
        measure_lifecycle,
        "When everything is stopped at once, parameter servers and workers continue for `saveWaitSeconds` at most, "
        "until the chief has saved. `status` is a Python program: it starts Python with "
        "typer and pydantic before it asks the API, and kubectl is one compiled program.",
        needs_cluster=True,
    ),
    "scale": Bench("Scale", measure_scale, needs_cluster=True),
    "storage": Bench("Checkpoints on storage servers", measure_storage, needs_cluster=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(BENCHES)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of the benchmarks on a cluster")
    parser.add_argument("--page", type=Path, default=PAGE, help="page to renew, docs/benchmarks.md unless named")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.sections if name not in BENCHES]
    if unknown:
        parser.error(f"no such section: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    # What was started ends in `finally` blocks.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for name in _choose(arguments.sections):
        bench = BENCHES[name]
        rows = bench.measure(arguments.rounds)
        section = dump_section(bench.title, _describe_surroundings(), rows, bench.reason)
        _renew(arguments.page, bench.title, section)
        print(f"{section}wrote {arguments.page}", flush=True)


def _choose(named: Iterable[str]) -> list[str]:
    """Return the benchmarks to run, and say why others are left out."""
    chosen = list(named) or list(BENCHES)
    obstacle = find_obstacle()
    left_out = [name for name in chosen if BENCHES[name].needs_cluster] if obstacle else []
    if left_out:
        print(f"left out: {', '.join(left_out)}: {obstacle.partition(';')[0]}", file=sys.stderr)
    return [name for name in chosen if name not in left_out]


def _renew(page: Path, title: str, section: str) -> None:
    text = page.read_text() if page.exists() else ""
    page.write_text(replace_sections(text, HEAD, {title: section}, [bench.title for bench in BENCHES.values()]))


def _describe_surroundings() -> str:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("trainchart", "pydantic", "typer"))
    return (
        f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {_read_processor()}, {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f} at the end; Python {platform.python_version()}, {versions},"
        f" helm {GO_PROGRAMS['helm-4'].version}"
    )


def _read_processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
