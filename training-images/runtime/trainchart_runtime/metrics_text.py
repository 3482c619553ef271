"""Prometheus' text format, version 0.0.4: families of samples as lines. Pure."""

from __future__ import annotations

from typing import Mapping, NamedTuple, Sequence, Tuple

CONTENT_TYPE = "text/plain; version=0.0.4"

Samples = Sequence[Tuple[Mapping[str, str], float]]
"""Labels and value of each sample."""


class Family(NamedTuple):
    """All samples of one metric."""

    name: str
    kind: str
    """gauge or counter."""
    text: str
    samples: Samples


def dump_families(families: Sequence[Family], common: Mapping[str, str]) -> str:
    """Return the families as text, every sample with the labels `common` too; a family without samples is left out."""
    lines = []
    for name, kind, text, samples in families:
        if samples:
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels({**common, **labels})} {float(value)!r}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items()) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
