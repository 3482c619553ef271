"""Render more than the user asked for: the probes of check/probes.py, each of which a chart may refuse."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

from trainchart.archive.identity import build_tar
from trainchart.archive.ignore import drop_ignored
from trainchart.archive.subcharts import open_packed
from trainchart.check.finding import CheckInput, Probe
from trainchart.check.probes import large_numbers, many_pods, more_replicas, next_version
from trainchart.check.randomness import makes_random
from trainchart.check.sources import SCHEMA_FILE
from trainchart.errors import TrainchartError
from trainchart.helm.io.protocol import HelmEngine
from trainchart.helm.rendering import Rendering, ValueOverrides


def render_probes(
    helm: HelmEngine, chart: Path, given: CheckInput, *, release: str, long_release: str, pool: Executor
) -> dict[Probe, Rendering]:
    """Return the renderings of all probes that the chart does not refuse."""

    def render(probe: Probe, text: str) -> Rendering:
        overrides = ValueOverrides(files=((str(probe), text),))
        # The longest name makes the longest TF_CONFIG.
        name = long_release if probe is Probe.many_pods else release
        return helm.render(chart, release=name, overrides=overrides, validate=False)

    wanted: dict[Probe, Callable[[], Rendering]] = {
        probe: lambda probe=probe, text=text: render(probe, text)  # type: ignore[misc]
        for probe, text in _values(given).items()
        if text
    }
    if makes_random(given):
        wanted[Probe.again] = lambda: helm.render(chart, release=release, validate=False)
    wanted[Probe.next_version] = lambda: _render_next_version(helm, given, release)
    found = zip(wanted, pool.map(_try, wanted.values()), strict=True)
    return {probe: rendering for probe, rendering in found if rendering is not None}


def _values(given: CheckInput) -> dict[Probe, str]:
    values = {Probe.large_numbers: large_numbers(given)}
    if given.is_generated:
        values |= {Probe.more_replicas: more_replicas(given), Probe.many_pods: many_pods(given)}
    return values


def _render_next_version(helm: HelmEngine, given: CheckInput, release: str) -> Rendering:
    opened = replace(given, files=open_packed(given.files))
    files = drop_ignored({**opened.files, **next_version(opened)})
    # The values are compared with it already, and packing it takes longer than rendering.
    files.pop(SCHEMA_FILE, None)
    with tempfile.TemporaryDirectory(prefix="trainchart-") as folder:
        archive = Path(folder, "chart.tgz")
        archive.write_bytes(gzip.compress(build_tar("chart", files), compresslevel=1, mtime=0))
        return helm.render(archive, release=release, is_upgrade=True)


def _try(render: Callable[[], Rendering]) -> Rendering | None:
    try:
        return render()
    except TrainchartError:
        return None
