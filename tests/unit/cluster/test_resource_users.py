"""Quotas that a release exceeds alone, whoever else uses them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_job, make_sets
from trainchart.cluster.resource_users import find_hopeless_quotas
from trainchart.reports.hints import choose_problem_hint
from trainchart.reports.report import Report, ReportedProblem, TrainingKey


def find(message: str, *, job: str = "", cpu: Any = "750m", cause: str = "quota-exceeded") -> list[str]:
    """Return what is said of exp1, whose four pods have a limit of CPU each, and its run controller 500m."""
    owners = [*make_sets(), make_job(job)]
    for each in owners:
        amounts = {"limits": {"cpu": cpu if "spec" in each else "500m", "memory": "1Gi"}}
        spec = {"containers": [{"name": "training", "resources": amounts}]}
        each["spec"] = {**each.get("spec", {}), "template": {"spec": spec}}
    problem = ReportedProblem("exp1-mnist-worker-1", cause, f"exceeded quota: team, {message}")
    report = Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, "Starting", "record", problems=(problem, problem))
    return list(find_hopeless_quotas(report, owners))


def refuse(resource: str, hard: str) -> str:
    return f"requested: {resource}=1, used: {resource}=2500m, limited: {resource}={hard}"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (refuse("limits.cpu", "3"), "needs 3.5 of 3 limits.cpu in the quota team: waiting, or stopping others, cannot"),
        (refuse("limits.cpu", "3500m"), ""),
        (refuse("requests.memory", "4Gi"), "needs 5.0Gi of 4.0Gi requests.memory in the quota team"),
        (refuse("pods", "4"), "needs 5 of 4 pods in the quota team"),
        (refuse("count/pods", "5"), ""),
        (refuse("requests.storage", "1Gi"), ""),
        (refuse("limits.cpu", "odd"), ""),
        ("no quota", ""),
    ],
)
def test_a_quota_below_what_the_release_needs_is_named(message: str, words: str) -> None:
    found = find(message)
    assert len(found) == bool(words) and all(words in each for each in found)


def test_ended_jobs_and_odd_amounts_count_for_nothing() -> None:
    assert not find(refuse("limits.cpu", "3"), job="Complete")
    assert not find(refuse("limits.cpu", "3"), cpu=["odd"])


def test_program_output_is_not_read_as_a_quota() -> None:
    assert find(refuse("limits.cpu", "3"))
    assert not find(refuse("limits.cpu", "3"), cause="storage-silent")
    words = f"exceeded quota: team, {refuse('count/pods', '9')}"
    told, forged = (ReportedProblem("w", cause, words) for cause in ("quota-exceeded", "storage-silent"))
    assert choose_problem_hint([told], ()).startswith("Delete finished pods")
    assert choose_problem_hint([forged], ()) == forged.hint
