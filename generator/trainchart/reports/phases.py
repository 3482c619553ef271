"""Says the phase of a run as its pods have it now, where they contradict what decided it. Pure."""

from __future__ import annotations

from trainchart.reports.report import BACKING_OFF, FROM_PODS, PENDING, Report
from trainchart_runtime.run.state import FAILED


def describe_phase(report: Report) -> str:
    """Return the phase; Pending where the record says that the run goes on, but its leading pod was not started."""
    return PENDING if report.waits_for_pods else report.phase


def find_phase_start(report: Report) -> float:
    """Return when what describe_phase says began; 0 where it is not known."""
    if not report.waits_for_pods:
        return report.since
    return next((pod.created for pod in report.pods or () if pod.label == report.leading_task), 0.0)


def describe_restart(report: Report) -> str:
    """Return that the pod of a failure that only pods show is started again; "" where it is not."""
    outcome = report.outcome
    if outcome is None or outcome.result != FAILED or report.source != FROM_PODS:
        return ""
    state = next((pod.state for pod in report.pods or () if pod.name == outcome.pod), "")
    if state == BACKING_OFF:
        return f", but Kubernetes starts {outcome.pod} again and again ({BACKING_OFF})"
    return f", but {outcome.pod} was started again" if state == "Running" else ""
