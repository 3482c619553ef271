"""One more version in an index of ten thousand: `trainchart publish` beside `helm repo index --merge`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.generator import ROOT
from benchmarks.measure import Row, time_by_turns
from trainchart.archive.pack import BuildInfo, pack_chart
from trainchart.host.files import read_tree
from trainchart.kubernetes_yaml import dump_mapping, parse_mapping

CHARTS = 100
VERSIONS = 100
"""Of each chart: ten thousand entries in all."""
REPEATS = 5
MARK_SECONDS = 2.0
MARK_MIB = 200.0
_PARSE = """
import sys
from trainchart.kubernetes_yaml import parse_mapping
parse_mapping(open(sys.argv[1]).read(), node_limit=10**9)
"""


def measure_publishing(helm: Path) -> list[Row]:
    """Measure whole processes; the index lies in a folder, so that no network is in between."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = pack_chart(read_tree(ROOT / "charts" / "mnist"), BuildInfo())
        (folder / "new").mkdir()
        (folder / "new" / archive.filename).write_bytes(archive.data)
        full = folder / "full.yaml"
        full.write_text(_make_index())
        repository = folder / "repository"
        repository.mkdir()
        publish: list[str | Path] = [sys.executable, "-m", "trainchart", "publish", folder / "new" / archive.filename]
        # The example's image is in no registry, and helm would not ask for it.
        publish += ["--skip-image-check", "--to"]
        commands: dict[str, list[str | Path]] = {
            "trainchart publish": [*publish, repository],
            "helm repo index --merge": [helm, "repo", "index", folder / "new", "--merge", full],
            "parsing alone": [sys.executable, "-c", _PARSE, full],
        }
        most: dict[str, float] = {}

        def contender(what: str) -> None:
            shutil.rmtree(repository)
            repository.mkdir()
            shutil.copy(full, repository / "index.yaml")
            most[what] = max(most.get(what, 0.0), _run(commands[what]))

        start = time.perf_counter()
        shutil.copy(full, folder / "copy.yaml")
        copying = time.perf_counter() - start
        taken = time_by_turns({what: lambda what=what: contender(what) for what in commands}, REPEATS)  # type: ignore[misc]
        size = full.stat().st_size / 1e6
    rows = [
        Row(f"`{what}`, {CHARTS * VERSIONS} versions, {size:.0f} MB", seconds - copying, "s")
        for what, seconds in taken.items()
    ]
    # No more than the marks beyond what reading the index as YAML costs.
    rows[0] = Row(rows[0].what, rows[0].value, "s", round(MARK_SECONDS + taken["parsing alone"] - copying, 1))
    mark = round(MARK_MIB + most["parsing alone"])
    rows += [
        Row(f"`{what}`, memory at most", mib, "MiB", mark if what == "trainchart publish" else None)
        for what, mib in most.items()
    ]
    return rows


def _make_index() -> str:
    chart = parse_mapping((ROOT / "charts" / "mnist" / "Chart.yaml").read_text())
    lines = ["apiVersion: v1", "entries:"]
    for number in range(CHARTS):
        lines.append(f"  model-{number:03}:")
        for patch in range(VERSIONS):
            entry = {**chart, "name": f"model-{number:03}", "version": f"1.0.{patch}", "digest": "0" * 64}
            entry |= {"created": "2026-01-01T00:00:00Z", "urls": [f"model-{number:03}-1.0.{patch}.tgz"]}
            first, *rest = dump_mapping(entry).splitlines()
            lines += [f"  - {first}", *(f"    {line}" for line in rest)]
    return "\n".join([*lines, 'generated: "2026-01-01T00:00:00Z"', ""])


def _run(argv: Sequence[str | Path]) -> float:
    """Run a program to its end; return the most memory that it held, in MiB."""
    process = subprocess.Popen([str(part) for part in argv], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, [str(part) for part in argv])
    return usage.ru_maxrss / 1024
