"""A line of a pod's log, the same for local runs and releases. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class LogLine:
    """One line of one pod."""

    at: str
    """UTC in ISO 8601, so that it sorts as text; empty where it is not known."""
    label: str
    """Short name of the pod, such as worker-1."""
    text: str
