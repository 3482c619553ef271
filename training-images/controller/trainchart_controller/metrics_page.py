"""Answer GET /metrics from the last state that the controller has shown.

The run never waits for it: showing a state is an assignment, and a port that cannot be used is a line in the log.
"""

from __future__ import annotations

from typing import Optional, Tuple

from trainchart_controller.console import print_line
from trainchart_controller.metrics import RunView, follow_run, render_metrics
from trainchart_runtime.metrics_text import CONTENT_TYPE
from trainchart_runtime.pages import serve_pages
from trainchart_runtime.run_state import RunState


class MetricsPage:
    """The page of one run; it opens with the first state that is shown."""

    def __init__(self, release: str, address: Optional[Tuple[str, int]]) -> None:
        self._release = release
        self._address = address
        self._view: Optional[RunView] = None

    def show(self, state: RunState) -> None:
        """Answer with `state` from now on."""
        before = self._view
        if before is None or state is not before.state:
            self._view = follow_run(before, state)
        if before is None and self._address is not None:
            self._open(*self._address)

    def _open(self, host: str, port: int) -> None:
        try:
            serve_pages(host, port, {"/metrics": (CONTENT_TYPE, self._render)})
        except OSError as err:
            print_line(f"no metrics, port {port} cannot be used: {err}")

    def _render(self, query: str) -> str:
        assert self._view is not None
        return render_metrics(self._release, self._view)
