"""A line of a pod's log, the same for local runs and releases. Pure."""

from __future__ import annotations

from dataclasses import dataclass

LINE_LIMIT = 2000
"""Characters kept of a line where part of a log is shown or searched; programs print megabytes without a newline."""


@dataclass(frozen=True, order=True)
class LogLine:
    """One line of one pod."""

    at: str
    """UTC in ISO 8601, so that it sorts as text; empty where it is not known."""
    label: str
    """Short name of the pod, such as worker-1."""
    text: str


def cut_line(text: str) -> str:
    """Return a line of at most LINE_LIMIT characters, with "…" in place of the middle of a longer one.

    An error says its name first, and a progress bar shows its newest state last.
    """
    half = LINE_LIMIT // 2
    return text if len(text) <= LINE_LIMIT else f"{text[: half - 1]}…{text[-half:]}"
