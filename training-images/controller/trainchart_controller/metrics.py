"""What a run reports to Prometheus, and the page that answers with it: text format, version 0.0.4.

The run never waits for the page: showing a state is an assignment, and a port that cannot be used is a line in the log.
docs/monitoring.md lists the names, and alerts depend on them.
"""

from __future__ import annotations

from typing import Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from trainchart_controller.console import print_line
from trainchart_runtime.io.pages import serve_pages
from trainchart_runtime.metrics_text import CONTENT_TYPE, Family, Samples, dump_families
from trainchart_runtime.run.state import PHASES, Incident, RunState


class RunView(NamedTuple):
    """A run as its controller knows it. Replaced as a whole, so that readers never see half a change."""

    state: RunState
    incidents: Mapping[str, int] = {}
    """By cause, since this controller began to look; the record itself keeps a few and forgets."""


def follow_run(before: Optional[RunView], state: RunState) -> RunView:
    """Return the view of `state`, with the incidents counted that were not in the view before."""
    if before is None or before.state.run_id != state.run_id:
        return RunView(state, _count({}, state.incidents))
    known = set(before.state.incidents)
    new = [incident for incident in state.incidents if incident not in known]
    return RunView(state, _count(before.incidents, new))


def render_metrics(release: str, view: RunView) -> str:
    """Return the run in Prometheus' text format."""
    state = view.state
    common = {"release": release, "run_id": state.run_id}
    families = [
        Family("trainchart_run_phase", "gauge", "1 for the current phase.", _phases(state)),
        Family(
            "trainchart_run_phase_since_seconds", "gauge", "Unix time of the last phase change.", [({}, state.since)]
        ),
        Family("trainchart_run_attempt", "gauge", "Times that the pods were started together.", [({}, state.attempt)]),
        Family("trainchart_run_pods", "gauge", "Pods of a role: wanted, and running.", _pods(state)),
        Family(
            "trainchart_run_failures_total",
            "counter",
            "Exits of the role's containers without a termination message.",
            [({"role": name}, role.failures) for name, role in state.roles.items()],
        ),
        Family(
            "trainchart_run_problem",
            "gauge",
            "What keeps a pod from running.",
            [
                ({"pod": pod, "cause": cause}, 1)
                for pod, cause in sorted({(p.subject, p.cause) for p in state.problems})
            ],
        ),
        Family(
            "trainchart_run_incidents_total",
            "counter",
            "What ended pods since this controller started.",
            [({"cause": cause}, number) for cause, number in sorted(view.incidents.items())],
        ),
    ]
    if state.progress is not None and state.progress.step is not None:
        families.append(
            Family("trainchart_run_step", "gauge", "Last step of the leading task.", [({}, state.progress.step)])
        )
    if state.verdict is not None:
        verdict = {"result": state.verdict.result, "cause": state.verdict.cause}
        families.append(Family("trainchart_run_verdict", "gauge", "How the run ended.", [(verdict, 1)]))
    return dump_families(families, common)


def _phases(state: RunState) -> Samples:
    return [({"phase": phase}, phase == state.phase) for phase in PHASES]


def _pods(state: RunState) -> Samples:
    return [
        ({"role": name, "state": kind}, number)
        for name, role in state.roles.items()
        for kind, number in (("wanted", role.wanted), ("running", role.running))
    ]


def _count(numbers: Mapping[str, int], incidents: Sequence[Incident]) -> Dict[str, int]:
    counted = dict(numbers)
    for incident in incidents:
        counted[incident.cause] = counted.get(incident.cause, 0) + 1
    return counted


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
            print_line(f"no metrics: port {port} cannot be used: {err}")

    def _render(self, query: str) -> str:
        assert self._view is not None
        return render_metrics(self._release, self._view)
