"""The lines about what keeps pods from running: what was read comes first, advice once and with all known names."""

from __future__ import annotations

import dataclasses

import pytest

from tests.small_cluster.cluster_objects import NOW
from trainchart.reports.hints import fill_in
from trainchart.reports.report import Report, ReportedProblem, TrainingKey
from trainchart.reports.report_json import describe_report
from trainchart.reports.text import status_lines
from trainchart.reports.why import why_lines
from trainchart_runtime.causes import BUS_ERROR, DISK_FULL
from trainchart_runtime.pod_causes import (
    ADMISSION_REFUSED,
    CONFIG_MISSING,
    IMAGE_PULL,
    INIT_FAILED,
    NO_NODE_MATCHES,
    NODE_LOST,
    QUOTA_EXCEEDED,
    UNSCHEDULABLE,
)
from trainchart_runtime.run.state import FAILED, STARTING, Verdict
from trainchart_runtime.running_causes import CPU_THROTTLED

KEY = TrainingKey("team-a", "exp1", "mnist")
JOB = "Job exp1-mnist-controller-1"
CHIEF, WORKER = "exp1-mnist-chief-0", "exp1-mnist-worker-0"
NOTE = f"{WORKER} may run only on nodes with pool=a100 (nodeSelector)"


def report_of(*problems: ReportedProblem, remarks: tuple[str, ...] = ()) -> Report:
    return Report(KEY, NOW, STARTING, "record", since=NOW - 60, problems=problems, remarks=remarks)


def lines_with(lines: list[str], words: str) -> list[int]:
    return [number for number, line in enumerate(lines) if words in line]


def test_note_that_was_read_precedes_general_advice() -> None:
    report = report_of(ReportedProblem(WORKER, NO_NODE_MATCHES.name, "0/2 nodes are available"), remarks=(NOTE,))
    for lines in (why_lines(report), status_lines(report)):
        [message], [note], [advice] = (lines_with(lines, words) for words in ("0/2", NOTE, "next: "))
        assert message < note < advice


def test_note_stands_below_the_problem_of_its_pod() -> None:
    other = "its Job was changed"
    problems = (
        ReportedProblem(CHIEF, IMAGE_PULL.name, "not found"),
        ReportedProblem(WORKER, NO_NODE_MATCHES.name, "0/2 nodes are available"),
    )
    lines = why_lines(report_of(*problems, remarks=(other, NOTE)))
    [second], [note], [last] = (lines_with(lines, words) for words in (f"problem: {WORKER}", NOTE, other))
    assert second < note < lines_with(lines, "next: ")[1] < last == len(lines) - 1


def test_advice_of_one_cause_is_printed_once() -> None:
    problems = (
        ReportedProblem(JOB, QUOTA_EXCEEDED.name, "exceeded quota: q, requested: pods=1"),
        ReportedProblem(CHIEF, QUOTA_EXCEEDED.name, "exceeded quota: q, requested: cpu=1"),
        ReportedProblem(WORKER, QUOTA_EXCEEDED.name, "exceeded quota: q, requested: cpu=2"),
    )
    lines = why_lines(report_of(*problems))
    assert len(lines_with(lines, "problem: ")) == 3
    assert len(lines_with(lines, "next: ")) == len(lines_with(lines, "Request less, stop or delete")) == 1


def test_advice_names_every_owner_whose_pods_are_refused() -> None:
    problems = [ReportedProblem(name, ADMISSION_REFUSED.name, f"denied {name}") for name in (JOB, CHIEF, WORKER)]
    [advice] = [line for line in why_lines(report_of(*problems)) if line.startswith("  next: ")]
    assert (
        "kubectl annotate statefulset/exp1-mnist-chief statefulset/exp1-mnist-worker job/exp1-mnist-controller-1 "
        "retry=now --overwrite"
    ) in advice
    [advice] = [line for line in why_lines(report_of(problems[0])) if line.startswith("  next: ")]
    assert "the Job may take minutes" in advice and "annotate job/exp1-mnist-controller-1 retry=now" in advice


def test_pod_of_a_job_is_named_by_its_job() -> None:
    hint = "kubectl get pod POD -o yaml; kubectl logs POD -c CONTAINER"
    filled = fill_in(hint, "exp1 -n team-a", JOB)
    assert filled.startswith("kubectl get pod -l job-name=exp1-mnist-controller-1 -o yaml; ")
    assert filled.endswith("kubectl logs job/exp1-mnist-controller-1 -c CONTAINER")


def test_advice_names_role_and_container() -> None:
    message = "init container fetch ended with exit code 1: no"
    [advice] = [
        line for line in why_lines(report_of(ReportedProblem(WORKER, INIT_FAILED.name, message))) if "next: " in line
    ]
    assert f"kubectl logs {WORKER} -c fetch" in advice
    [document] = describe_report(report_of(ReportedProblem(WORKER, INIT_FAILED.name, message)))["problems"]
    assert f"  next: {document['hint']}" == advice
    for cause in (BUS_ERROR, DISK_FULL):
        outcome = Verdict(FAILED, NOW, cause.name, cause.sentence, cause.hint, pod=WORKER)
        report = dataclasses.replace(report_of(), phase=FAILED, outcome=outcome)
        [advice] = [line for line in why_lines(report) if line.startswith("What to do next: ")]
        assert "roles.worker.shmSize" in advice and "ROLE" not in advice


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ('secret "keys" not found', "The pod refers to the Secret keys, which does not exist."),
        (
            'MountVolume.SetUp failed for volume "c" : configmap "team.conf" not found',
            "The pod refers to the ConfigMap team.conf, which does not exist.",
        ),
        (
            "couldn't find key token in Secret team-a/keys",
            "The pod refers to the key token, which the Secret keys does not have.",
        ),
        (
            "couldn't find key rate.txt in ConfigMap team-a/settings",
            "The pod refers to the key rate.txt, which the ConfigMap settings does not have.",
        ),
        (
            'MountVolume.SetUp failed for volume "c" : references non-existent secret key: token',
            "The pod refers to the key token, which its Secret does not have.",
        ),
        (
            'MountVolume.SetUp failed for volume "c" : references non-existent config key: rate.txt',
            "The pod refers to the key rate.txt, which its ConfigMap does not have.",
        ),
        (
            'pods "x" is forbidden: error looking up service account team-a/train: serviceaccount "train" not found',
            "The pod refers to the ServiceAccount train, which does not exist.",
        ),
        ("failed to generate spec", "The container cannot be created as the pod describes it."),
    ],
)
def test_missing_object_or_key_is_named(message: str, sentence: str) -> None:
    problem = ReportedProblem(WORKER, CONFIG_MISSING.name, message)
    assert f"problem: {WORKER}: {sentence} [config-missing]" in why_lines(report_of(problem))


def test_notes_precede_what_to_do_about_a_failure() -> None:
    outcome = Verdict(FAILED, NOW, "killed", "It was killed.", "Read on.", pod=WORKER)
    lines = why_lines(dataclasses.replace(report_of(remarks=(NOTE,)), phase=FAILED, outcome=outcome))
    assert lines_with(lines, NOTE) < lines_with(lines, "What to do next: ")


def test_throttled_pods_are_named_with_the_value_to_raise() -> None:
    words = "throttled for more than half of the last minute: its CPU limit is 20m"
    report = report_of(ReportedProblem(WORKER, CPU_THROTTLED.name, words))
    for lines in (why_lines(report), status_lines(report)):
        [head], [message], [advice] = (lines_with(lines, part) for part in ("[cpu-throttled]", words, "  next: "))
        assert head < message < advice
        assert "raise roles.worker.cpuLimit, or roles.worker.cpu where that is empty" in lines[advice]


def test_who_holds_the_nodes_is_not_advised_to_be_looked_up() -> None:
    waits = ReportedProblem(WORKER, UNSCHEDULABLE.name, "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    plain = why_lines(report_of(waits))
    told = why_lines(report_of(waits, remarks=("nvidia.com/gpu of the nodes is held by release exp-b (2)",)))
    assert lines_with(plain, "trainchart list -A") and not lines_with(told, "trainchart list -A")
    assert lines_with(told, "  next: Free some of the resources that others hold")


def test_closed_nodes_that_a_note_names_are_to_be_opened() -> None:
    waits = ReportedProblem(WORKER, NO_NODE_MATCHES.name, "0/2 nodes are available: 1 node(s) were unschedulable.")
    note = f"{WORKER} can run only on node2 (nodeSelector pool=a): node2 is cordoned (kubectl uncordon node2)"
    assert lines_with(why_lines(report_of(waits)), "kubectl get nodes --show-labels")
    told = why_lines(report_of(waits, remarks=(note,)))
    assert lines_with(told, "  next: Have an administrator make one of the named nodes available again")
    assert not lines_with(told, "kubectl get nodes --show-labels")


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        ("exp1-mnist-checkpoints", "  next: If the chart created the claim, it was deleted"),
        ("team-models", "  next: The chart does not create the claim team-models: it was deleted, or existingClaim"),
    ],
)
def test_who_creates_a_missing_claim_decides_the_advice(claim: str, words: str) -> None:
    message = f'0/2 nodes are available: persistentvolumeclaim "{claim}" not found'
    (line,) = (
        each for each in why_lines(report_of(ReportedProblem(WORKER, "claim-missing", message))) if words in each
    )
    assert ("recreates the claim, empty" in line) == (claim != "team-models")
    assert "If existingClaim" not in line


def test_node_of_several_pods_with_one_problem_is_named() -> None:
    lost = [ReportedProblem(name, NODE_LOST.name, "Kubelet stopped posting", "node2") for name in (CHIEF, WORKER)]
    elsewhere = dataclasses.replace(lost[1], node="node1")
    assert lines_with(why_lines(report_of(*lost)), f"{CHIEF}, {WORKER} on node2: ")
    assert not lines_with(why_lines(report_of(lost[0], elsewhere)), "on node")
