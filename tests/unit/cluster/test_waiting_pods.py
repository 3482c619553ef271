"""What status and why say of a run whose pods are not in the state that its phase suggests."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_controller_pod,
    make_end,
    make_job,
    make_pod,
    make_pods,
    make_record,
    make_sets,
    make_state,
    stamp,
    unschedulable,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.list_table import describe_row
from trainchart.reports.report import Report, TrainingKey
from trainchart.reports.report_json import describe_report
from trainchart.reports.text import headline
from trainchart.reports.why import why_lines
from trainchart_runtime import causes

SILENT = {"at": NOW - 900, "attempt": 1, "step": None, "metrics": {}}


def look(pods: list[dict[str, Any]], **fields: Any) -> Report:
    """Diagnose exp1, whose record says that it runs and has reported no step."""
    state = make_state("Running", **{"since": NOW - 900, "progress": SILENT, **fields})
    seen = Snapshot(
        now=NOW,
        sets=tuple(make_sets()),
        pods=(*pods, make_controller_pod()),
        records=(make_record(state),),
        jobs=(make_job(),),
    )
    return diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)


def image_pulls() -> dict[str, Any]:
    pod = make_pod("chief-0")
    pod["status"]["phase"] = "Pending"
    pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}
    return pod


@pytest.mark.parametrize(
    "chief", [make_pod("chief-0", node=""), make_pod("chief-0", node="", conditions=[unschedulable()]), image_pulls()]
)
def test_pending_leading_pod_is_not_a_run_that_hangs(chief: dict[str, Any]) -> None:
    report = look(make_pods(chief_0=chief))
    assert headline(report) == "exp1 (team-a, mnist-0.1.0): Pending (waiting for pods) for 10 min"
    assert (describe_row(report).phase, describe_row(report).phase_for) == ("Pending", "10 min")
    text = "\n".join(why_lines(report))
    assert "No step" not in text and "no step" not in text and "hangs" not in text
    assert "chief-0" in text
    assert (describe_report(report)["phase"], describe_report(report)["waitsForPods"]) == ("Running", True)


def test_missing_leading_pod_is_waited_for() -> None:
    report = look([pod for pod in make_pods() if "chief-0" not in str(pod)])
    assert headline(report) == "exp1 (team-a, mnist-0.1.0): Pending (waiting for pods)"
    assert "Not every pod is running yet: chief lacks 1 pod." in why_lines(report)


def test_run_whose_other_pods_wait_still_runs() -> None:
    report = look(make_pods(worker_1=make_pod("worker-1", node="")))
    assert headline(report) == "exp1 (team-a, mnist-0.1.0): Running for 15 min"
    assert not describe_report(report)["waitsForPods"]


def test_finished_leading_pod_is_not_waited_for() -> None:
    report = look(make_pods(chief_0=make_pod("chief-0", node="")), succeeded={"chief-0": NOW - 20})
    assert "Running for" in headline(report)


@pytest.mark.parametrize("words", [None, causes.PROGRAM_ERROR])
@pytest.mark.parametrize(
    ("state", "said"),
    [
        (
            {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}},
            ", but Kubernetes starts exp1-mnist-worker-1 again and again (CrashLoopBackOff)",
        ),
        ({"running": {"startedAt": stamp(NOW - 10)}}, ", but exp1-mnist-worker-1 was started again"),
        (None, ""),
    ],
)
def test_failure_seen_by_pods_says_that_they_restart(state: Any, said: str, words: Any) -> None:
    end = make_end(words, 1)
    pod = make_pod("worker-1", ended=end, restarts=3)
    if state:
        pod = make_pod("worker-1", last=end, restarts=3)
        pod["status"]["containerStatuses"][0]["state"] = state
    seen = Snapshot(now=NOW, sets=tuple(make_sets()), pods=tuple(make_pods(worker_1=pod)))
    report = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)
    begin = f"exp1 (team-a, mnist-0.1.0): Failed 1 min ago{said}"
    assert headline(report) == f"{begin} (by its pods: no record could be read)"
    states = {pod.label: pod.state for pod in report.pods or ()}
    assert states["worker-1"] == ("CrashLoopBackOff" if "Crash" in said else "Running" if said else "Ended")
