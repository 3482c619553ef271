"""Which policy or webhook that refuses pods came, or was changed, during the run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, stamp
from trainchart.cluster.admission import describe_new_refusers, find_refusers
from trainchart.cluster.snapshot import Unreadable
from trainchart.reports.report import Report, ReportedProblem, TrainingKey

POLICY = "ValidatingAdmissionPolicy 'labels' with binding 'all' denied request: label cost-center is missing"
WEBHOOK = 'admission webhook "pods.labels.example.com" denied the request: label cost-center is missing'
END = "after the run began: existing pods continue, and every new one is refused"


def report_of(message: str, cause: str = "admission-refused") -> Report:
    problems = (ReportedProblem("exp1-mnist-worker-1", cause, message),)
    return Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Running", "record", problems=problems)


def make_policy(name: str, age: float, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "creationTimestamp": stamp(NOW - age), **fields}}


@pytest.mark.parametrize("message", [POLICY, WEBHOOK])
def test_policy_that_came_during_the_run_is_told(message: str) -> None:
    webhooks = make_policy("team-labels", 60) | {"webhooks": [{"name": "pods.labels.example.com"}]}
    name = "labels" if message == POLICY else "team-labels"
    found = list(describe_new_refusers(report_of(message), (make_policy("labels", 60), webhooks), NOW - 600))
    assert found == [f"{name}, which refuses the pods, was created at 2027-01-15 07:59:00 UTC, {END}"]


def test_change_of_a_policy_is_told_but_not_of_its_status() -> None:
    edits = [{"time": stamp(NOW - 60)}, {"time": stamp(NOW - 5), "subresource": "status"}]
    (told,) = describe_new_refusers(report_of(POLICY), (make_policy("labels", 9000, managedFields=edits),), NOW - 600)
    assert told.startswith("labels, which refuses the pods, was changed at 2027-01-15 07:59:00 UTC")
    assert not list(
        describe_new_refusers(report_of(POLICY), (make_policy("labels", 9000, managedFields=edits[1:]),), NOW - 600)
    )


def test_policy_of_others_or_from_before_is_not_told() -> None:
    assert find_refusers(report_of(POLICY, "unschedulable")) == set()
    assert not list(describe_new_refusers(report_of(POLICY), (make_policy("other", 60),), NOW - 600))
    assert not list(describe_new_refusers(report_of(POLICY), Unreadable("policies", "forbidden"), NOW - 600))
