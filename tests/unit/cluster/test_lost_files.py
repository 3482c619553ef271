"""Which claim a missing file lies in, and who else mounts it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import NAMESPACE, NOW, make_pods, make_sets, stamp
from trainchart.cluster.lost_files import describe_lost_files, loses_files
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import Progress, Report, TrainingKey
from trainchart.reports.why import why_lines
from trainchart_runtime.run.state import FAILED, RUNNING, Incident, Setback, Verdict

ERROR = "FileNotFoundError: [Errno 2] No such file or directory: '/checkpoints/weights/step-600.bin'"
POD = "exp1-mnist-chief-0"


def fail(step: int | None, cause: str = "file-missing", error: str = ERROR) -> Report:
    outcome = Verdict(FAILED, NOW, cause, hint="The error names it.", pod=POD, error=error, step=step)
    return Report(TrainingKey(NAMESPACE, "exp1", "mnist"), NOW, FAILED, "record", outcome=outcome)


def make_user(name: str, claim: str) -> dict[str, Any]:
    owner = {"kind": "Job", "name": "tidy-1", "controller": True}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
    metadata = {"name": name, "creationTimestamp": stamp(NOW - 60), "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {"volumes": [volume]}, "status": {"phase": "Succeeded"}}


def look(report: Report, *others: dict[str, Any]) -> list[str]:
    sets = make_sets()
    volume = {"name": "ckpt", "persistentVolumeClaim": {"claimName": "exp1-ckpt"}}
    for each in sets:
        each["spec"]["template"]["spec"] = {
            "volumes": [volume],
            "containers": [{"name": "training", "volumeMounts": [{"name": "ckpt", "mountPath": "/checkpoints"}]}],
        }
    seen = Snapshot(NOW, tuple(sets), tuple(make_pods()))
    return list(describe_lost_files(report, seen, others))


def test_pods_that_mount_the_claim_of_a_lost_file_are_named() -> None:
    report = fail(600)
    (words,) = look(report, make_user("tidy-1-x", "exp1-ckpt"), make_user("other", "else"))
    assert words.startswith("The missing or damaged file belongs to the claim exp1-ckpt. The program had already")
    assert "mount it: pod tidy-1-x (of Job tidy-1, since 2027-01-15 07:59:00 UTC). Check whether" in words
    (alone,) = look(report)
    assert alone.endswith("Check for Jobs or users that clean up there.")


@pytest.mark.parametrize(
    "report",
    [fail(None), fail(600, "program-error"), fail(600, error="FileNotFoundError: '/data/a.npz'")],
)
def test_other_missing_files_are_of_no_claim(report: Report) -> None:
    assert not look(report, make_user("tidy-1-x", "exp1-ckpt"))


def test_lost_file_comes_before_the_general_advice() -> None:
    report = fail(600)
    assert loses_files(report)
    (lead,) = look(report)
    (advice,) = (each for each in why_lines(replace(report, leads=(lead,))) if each.startswith("What to do next"))
    assert advice.startswith(f"What to do next: {lead} If that is not the cause: The error names it.")


@pytest.mark.parametrize(("step_at", "is_told"), [(NOW - 90, True), (NOW - 10, False)])
def test_lost_file_of_a_run_that_goes_on_is_of_the_past(step_at: float, *, is_told: bool) -> None:
    death = Incident(at=NOW - 60, pod=POD, cause="file-missing", node="node1", action="", exit_code=1, error=ERROR)
    progress = Progress(600, at=step_at)
    report = replace(fail(600), phase=RUNNING, outcome=None, incidents=(death,), progress=progress)
    assert loses_files(report) == is_told
    assert len(look(report)) == is_told
    setback = Setback(at=NOW - 50, attempt=1, pod=POD, reached=600, resumed=3)
    assert loses_files(replace(report, setbacks=(setback,)))
