"""The table of `top`: what each pod uses, beside what it requests and holds. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trainchart.name_order import natural_key
from trainchart.reports.report import PodReport, TrainingKey
from trainchart.reports.text import clean_lines, describe_bytes, describe_gpus, make_table

METRICS_API = "metrics-api"
LAUNCHER = "launcher"
_HEADINGS = ("POD", "ROLE", "CPU", "CPU-REQUEST", "MEMORY", "MEMORY-LIMIT", "GPU-USE", "GPUS")
_REASONS_SHOWN = 5
_SOURCES = {
    METRICS_API: "the metrics API (all containers of a pod)",
    LAUNCHER: "the pods' launchers (the training container alone)",
}


@dataclass(frozen=True)
class GpuUse:
    """One GPU; None is not known."""

    memory_bytes: float | None = None
    total_bytes: float | None = None
    utilization: float | None = None
    """Per cent of the time in which it worked."""


@dataclass(frozen=True)
class Use:
    """What a pod uses; None is not known."""

    cpu: float | None = None
    memory_bytes: float | None = None
    gpus: tuple[GpuUse, ...] = ()
    source: str = ""
    """METRICS_API or LAUNCHER: of CPU and memory. GPUs are always the launcher's."""


UNKNOWN_USE = Use()


@dataclass(frozen=True)
class Amounts:
    """What a pod requests of CPU, and its limit of memory; None without one."""

    cpu_request: float | None = None
    memory_limit: float | None = None


@dataclass(frozen=True)
class PodLine:
    """One pod of the table."""

    key: TrainingKey
    pod: PodReport
    amounts: Amounts
    use: Use = UNKNOWN_USE


@dataclass(frozen=True)
class TopReport:
    """The pods, and why figures are missing."""

    pods: tuple[PodLine, ...] = ()
    notes: tuple[str, ...] = ()


def top_lines(report: TopReport, *, with_namespace: bool) -> list[str]:
    """Return the table and its footnotes."""
    headings = ("NAMESPACE", *_HEADINGS) if with_namespace else _HEADINGS
    lines = sorted(report.pods, key=_sort_key)
    rows = [(line.key.namespace, *_row(line))[0 if with_namespace else 1 :] for line in lines]
    return clean_lines([*make_table(headings, rows), *(f"note: {note}" for note in find_notes(report))])


def find_notes(report: TopReport) -> list[str]:
    """Return where the figures come from, and why some are missing."""
    used = dict.fromkeys(line.use.source for line in report.pods if line.use.source)
    from_where = [f"CPU and memory from {' and '.join(_SOURCES[source] for source in used)}"] if used else []
    if any(line.use.gpus for line in report.pods):
        from_where.append("GPUs from the pods' launchers")
    notes = [*(["; ".join(from_where)] if from_where else []), *report.notes[:_REASONS_SHOWN]]
    more = len(report.notes) - _REASONS_SHOWN
    return [*notes, *([f"{more} more pods could not be queried"] if more > 0 else [])]


def describe_top(report: TopReport) -> dict[str, Any]:
    """Return the report as a JSON document: CPUs in cores, memory in bytes; what is not known is null."""
    pods = [_describe(line) for line in sorted(report.pods, key=_sort_key)]
    return {"pods": pods, "notes": find_notes(report)}


def _describe(line: PodLine) -> dict[str, Any]:
    return {
        "namespace": line.key.namespace,
        "release": line.key.release,
        "model": line.key.chart,
        "pod": line.pod.name,
        "role": line.pod.role,
        "state": line.pod.state,
        "node": line.pod.node or None,
        "source": line.use.source or None,
        "cpu": line.use.cpu,
        "cpuRequest": line.amounts.cpu_request,
        "memoryBytes": line.use.memory_bytes,
        "memoryLimitBytes": line.amounts.memory_limit,
        "gpuUse": [
            {"memoryBytes": gpu.memory_bytes, "memoryTotalBytes": gpu.total_bytes, "utilization": gpu.utilization}
            for gpu in line.use.gpus
        ],
        "gpus": dict(line.pod.gpus),
    }


def _sort_key(line: PodLine) -> tuple[str, list[tuple[int, str]]]:
    return line.key.namespace, natural_key(line.pod.name)


def _row(line: PodLine) -> Sequence[str]:
    use, amounts = line.use, line.amounts
    return (
        line.pod.name,
        line.pod.role,
        _cores(use.cpu),
        _cores(amounts.cpu_request),
        _size(use.memory_bytes),
        _size(amounts.memory_limit),
        ", ".join(_gpus(use.gpus)) or "-",
        describe_gpus(line.pod.gpus) if line.pod.gpus else "-",
    )


def _gpus(gpus: Iterable[GpuUse]) -> Iterable[str]:
    for gpu in gpus:
        busy = "-" if gpu.utilization is None else f"{gpu.utilization:.0f} %"
        yield f"{busy} {_size(gpu.memory_bytes)}/{_size(gpu.total_bytes)}"


def _cores(cpu: float | None) -> str:
    return "-" if cpu is None else f"{cpu:.2f}"


def _size(size: float | None) -> str:
    return "-" if size is None else describe_bytes(size)
