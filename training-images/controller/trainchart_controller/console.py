"""The controller's log: one line for each decision, and for each kind of trouble once."""

from __future__ import annotations

import sys

from trainchart_runtime.log_text import clean

PREFIX = "trainchart-controller: "


def print_line(text: str) -> None:
    """Write one line to stderr, fit for a terminal; a log that is gone is no reason to fail."""
    try:
        sys.stderr.write(PREFIX + clean(text.replace("\n", " ")) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


class TroubleLog:
    """Says that something does not work when it stops working, not at every try."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._kind = ""

    def fail(self, error: Exception) -> bool:
        """Note that a try has failed; return whether that is news."""
        kind = f"{type(error).__name__} {getattr(error, 'status', '')}"
        is_new = kind != self._kind
        if is_new:
            self._kind = kind
            print_line(f"{self._subject}: {error}; trying again")
        return is_new

    def succeed(self) -> None:
        if self._kind:
            self._kind = ""
            print_line(f"{self._subject}: works again")
