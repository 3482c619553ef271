"""What is concluded from one look at a release: with a record, without one, with things hidden, and from junk."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.small_cluster.cluster_objects import (
    GPU,
    NAMESPACE,
    NOW,
    make_controller_pod,
    make_end,
    make_event,
    make_job,
    make_pod,
    make_pods,
    make_record,
    make_set,
    make_sets,
    make_state,
    make_verdict,
    stamp,
    unschedulable,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.gpus import count_gpus
from trainchart.cluster.snapshot import Snapshot, Unreadable, find_trainings
from trainchart.reports.list_table import list_lines
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import Report, TrainingKey
from trainchart.reports.report_json import describe_report
from trainchart.reports.text import describe_time, status_lines
from trainchart.reports.why import why_lines
from trainchart_runtime import causes
from trainchart_runtime.cluster import MAX_REPLICAS
from trainchart_runtime.contract import HALTED, PROCESSES_DIED, UNREAD_PIPE

KEY = TrainingKey(NAMESPACE, "exp1", "mnist")
PODS_HIDDEN = Unreadable("pods", "forbidden", "User may not")
INCIDENT = {
    "at": NOW - 200,
    "pod": "exp1-mnist-ps-0",
    "node": "node1",
    "cause": "killed",
    "action": "started again",
    "exitCode": 137,
    "error": "",
}
CONTROLLED: dict[str, Any] = {"jobs": (make_job(),), "records": (make_record(make_state("Running")),)}


def look(**seen: Any) -> Report:
    """Diagnose exp1: four pods that run, without a controller, unless told otherwise."""
    seen = {"sets": make_sets(), "pods": make_pods(), **seen}
    tuples = {key: value if isinstance(value, Unreadable) else tuple(value) for key, value in seen.items()}
    snapshot = Snapshot(now=NOW, **tuples)
    assert not listed_strangers(snapshot)
    return diagnose(KEY, find_trainings(snapshot).get(KEY, snapshot))


def listed_strangers(seen: Snapshot) -> list[TrainingKey]:
    return [key for key in find_trainings(seen) if key != KEY]


def test_selector_only_the_pod_has_is_named_where_no_node_fits() -> None:
    waits = make_pod("worker-1", node="", conditions=[unschedulable()])
    waits["spec"]["nodeSelector"] = {"pool": "a100"}
    placed = make_pod("worker-0")
    placed["spec"]["nodeSelector"] = {"pool": "a100"}
    [remark] = [each for each in look(pods=make_pods(worker_1=waits, worker_0=placed)).remarks if "pool" in each]
    assert remark.startswith("exp1-mnist-worker-1 must run on nodes with pool=a100, which the chart does not ask for")


def test_a_running_training_holds_its_gpus_since_they_were_given() -> None:
    report = look()
    assert (report.phase, report.source, report.controller) == ("Running", "pods", "none")
    assert report.since == NOW - 300
    assert (report.gpus, report.gpus_since) == ({GPU: 2}, NOW - 500)
    assert [(role.role, role.running, role.wanted) for role in report.roles] == [
        ("chief", 1, 1),
        ("worker", 2, 2),
        ("ps", 1, 1),
    ]
    assert not report.remarks
    assert not report.unknown


def test_a_record_says_phase_attempt_and_progress() -> None:
    progress = {"at": NOW - 5, "attempt": 1, "step": 700, "examplesPerSecond": 12.5, "metrics": {"loss": 0.5}}
    state = make_state("Running", attempt=3, progress=progress)
    report = look(records=[make_record(state)], jobs=[make_job()], pods=[*make_pods(), make_controller_pod()])
    assert (report.phase, report.source, report.attempt, report.controller) == ("Running", "record", 3, "running")
    assert (report.progress.step, report.progress.examples_per_second) == (700, 12.5)
    assert not report.remarks


@pytest.mark.parametrize(
    ("phase", "fields", "gives_up_at"),
    [
        ("Starting", {"since": NOW - 60}, NOW + 1740),
        ("Running", {"missingSince": NOW - 30}, NOW + 1770),
        ("Running", {}, 0.0),
        ("Restarting", {}, 0.0),
    ],
)
def test_run_without_all_pods_says_when_it_fails(phase: str, fields: dict[str, Any], gives_up_at: float) -> None:
    sets = make_sets()
    for each in sets:
        each["metadata"]["annotations"]["trainchart/start-deadline-seconds"] = "1800"
    waits = make_pod("worker-1", node="", conditions=[unschedulable()])
    pods = [*make_pods(worker_1=waits), make_controller_pod()]
    report = look(sets=sets, pods=pods, records=[make_record(make_state(phase, **fields))], jobs=[make_job()])
    assert report.gives_up_at == gives_up_at
    words = f"The run fails if not all of its pods are running by {describe_time(gives_up_at)} (run.startDeadline)."
    assert (words in why_lines(report)) == bool(gives_up_at)
    assert look(sets=sets, pods=pods[:4]).gives_up_at == 0.0, "no run controller ends it"


@pytest.mark.parametrize("record", [None, make_state("Starting"), make_state("Running")])
@pytest.mark.parametrize("role", ["chief", "worker"])
def test_no_number_of_pods_in_an_annotation_fills_memory(role: str, record: dict[str, Any] | None) -> None:
    sets = make_sets()
    (changed,) = (each for each in sets if each["metadata"]["name"].endswith(f"-{role}"))
    changed["metadata"]["annotations"]["trainchart/replicas"] = "1000000000"
    changed["spec"]["replicas"] = 2**31 - 1
    report = look(sets=sets, records=[make_record(record)] if record else [], jobs=[make_job()])
    assert {each.role: each.wanted for each in report.roles}[role] == MAX_REPLICAS
    assert status_lines(report) and why_lines(report)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_how_the_run_before_has_ended_is_not_how_this_one_does(phase: str) -> None:
    sets = make_sets(0)
    for each in sets:
        each["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] = "2026-11-22-030000"
    record = make_record(make_state(phase, verdict=make_verdict(phase)))
    report = look(sets=sets, pods=[], records=[record], jobs=[make_job()])
    assert (report.phase, report.is_over, report.outcome) == ("Starting", False, None)
    assert (report.run_id, report.source) == ("2026-11-22-030000", "record")
    assert any(f"of the previous run, '' ({phase})" in remark for remark in report.remarks)


def test_record_of_a_release_with_a_long_name_has_a_hash() -> None:
    record = make_record(make_state("Running"))
    record["metadata"] |= {
        "name": "exp1-of-a-team-with-a-name-that-does-not-4098c9ba",
        "annotations": {"trainchart/plan": "b3f6"},
    }
    report = look(records=[record], jobs=[make_job()])
    assert (report.source, report.remarks) == ("record", ())


def test_the_day_after_the_record_tells_everything() -> None:
    state = make_state("Failed", verdict=make_verdict(), incidents=[INCIDENT])
    report = look(sets=make_sets(0), pods=[], records=[make_record(state)], jobs=[make_job("Failed")])
    assert report.outcome is not None
    assert (report.outcome.pod, report.outcome.node, report.outcome.exit_code) == ("exp1-mnist-worker-1", "node2", 1)
    assert report.gpus == {}
    assert not report.remarks
    text = "\n".join(why_lines(report))
    for words in ("exp1-mnist-worker-1 on node2", "ValueError: no data today", "at step 1200", "started again",
                  "trainchart rerun exp1 -n team-a", "| starting"):  # fmt: skip
        assert words in text


@pytest.mark.parametrize(
    ("replaced", "pod", "cause", "error"),
    [
        (  # The worker's failure is an echo of the parameter server's, although it was said first.
            {
                "worker_0": make_pod(
                    "worker-0", ended=make_end(causes.PEER_LOST, 75, at=NOW - 61, error="UNAVAILABLE"), restarts=1
                ),
                "ps_0": make_pod(
                    "ps-0", ended=make_end(causes.PROGRAM_ERROR, 1, error="ValueError: no"), restarts=1
                ),
            },
            "exp1-mnist-ps-0",
            "program-error",
            "ValueError: no",
        ),
        (  # A container without last words counts once it died more often than run.maxRestarts allows.
            {"worker_1": make_pod("worker-1", ended=make_end(None, 137, reason="OOMKilled"), restarts=2)},
            "exp1-mnist-worker-1",
            "out-of-memory",
            "OOMKilled",
        ),
    ],
)  # fmt: skip
def test_without_a_controller_the_first_failure_is_found(replaced: Any, pod: str, cause: str, error: str) -> None:
    report = look(pods=make_pods(**replaced))
    assert report.phase == "Failed"
    assert report.outcome is not None
    assert (report.outcome.pod, report.outcome.cause, report.outcome.error) == (pod, cause, error)
    assert report.outcome.at == NOW - 60
    assert any("helm uninstall" in remark for remark in report.remarks)


def test_what_a_program_printed_cannot_write_on_the_terminal() -> None:
    state = make_state("Failed", verdict=make_verdict(error="\x1b[2JValueError: \x07no", lines=["a\rb\x9b1m"]))
    report = look(sets=make_sets(0), pods=[], records=[make_record(state)], jobs=[make_job("Failed")])
    text = "\n".join([*why_lines(report), *status_lines(report), *list_lines([report])])
    assert "ValueError: no" in text
    assert not set(text) & {"\x1b", "\x07", "\r", "\x9b"}


def test_one_death_without_words_is_no_failure_yet() -> None:
    died = make_pod("worker-1", last=make_end(None, 137, reason="OOMKilled"), restarts=1)
    report = look(pods=make_pods(worker_1=died))
    assert report.phase == "Running"
    assert [(each.pod, each.cause, each.exit_code) for each in report.incidents] == [
        ("exp1-mnist-worker-1", "out-of-memory", 137)
    ]


def test_without_a_controller_a_parked_chief_has_succeeded() -> None:
    parked = make_pod("chief-0", last=make_end(causes.SUCCEEDED, 0, reason="Completed", step=300), restarts=1)
    report = look(pods=make_pods(chief_0=parked))
    assert (report.phase, report.progress.step) == ("Succeeded", 300)
    assert report.gpus == {GPU: 2}
    assert any("keep what they hold" in remark for remark in report.remarks)


@pytest.mark.parametrize(("owner", "phase"), [("uid-chief", "Succeeded"), ("", "Starting"), ("uid-before", "Starting")])
def test_pod_that_no_set_made_shows_nothing(owner: str, phase: str) -> None:
    sets = make_sets()
    sets[0]["metadata"]["uid"] = "uid-chief"
    parked = make_pod("chief-0", last=make_end(causes.SUCCEEDED, 0, reason="Completed"), restarts=1)
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "exp1-mnist-chief", "uid": owner}
    parked["metadata"]["ownerReferences"] = [{**reference, "controller": True}] if owner else []
    report = look(sets=sets, pods=make_pods(chief_0=parked))
    assert report.phase == phase
    assert ("exp1-mnist-chief-0" in [pod.name for pod in report.pods]) is (phase == "Succeeded")


def test_a_pod_without_a_node_is_explained_and_holds_nothing() -> None:
    waits = make_pod("worker-1", node="", conditions=[unschedulable()])
    report = look(pods=make_pods(worker_1=waits))
    assert (report.phase, report.gpus) == ("Starting", {GPU: 1})
    (problem,) = report.problems
    assert (problem.subject, problem.cause) == ("exp1-mnist-worker-1", "unschedulable")
    assert "Insufficient nvidia.com/gpu" in problem.message


def test_refused_pod_shows_by_its_sets_event_while_it_is_missing() -> None:
    events = [make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", "exceeded quota: tests, requested: …")]
    missing = [pod for pod in make_pods() if not pod["metadata"]["name"].endswith("worker-1")]
    report = look(pods=missing, events=events)
    assert [(problem.subject, problem.cause) for problem in report.problems] == [
        ("exp1-mnist-worker-1", "quota-exceeded")
    ]
    assert not look(events=events).problems


def test_events_of_an_earlier_pod_of_that_name_do_not_count() -> None:
    pod = make_pod("worker-1", node="")
    pod["metadata"]["uid"] = "second"
    event = make_event("Pod", "exp1-mnist-worker-1", "FailedMount", "no such claim")
    for uid, problems in (("first", []), ("second", ["volume-error"]), (None, ["volume-error"])):
        event["involvedObject"]["uid"] = uid
        report = look(pods=make_pods(worker_1=pod), events=[event])
        assert [problem.cause for problem in report.problems] == problems


@pytest.mark.parametrize(
    ("seen", "phase", "words"),
    [
        ({"records": [make_record("{not json")], "jobs": [make_job()]}, "Running", "is damaged: it is not JSON"),
        ({"records": [make_record(make_state("Odd"))], "jobs": [make_job()]}, "Running", "is damaged"),
        ({"records": [make_record({"version": 2})], "jobs": [make_job()]}, "Running", "newer version of trainchart"),
        ({"records": [make_record(None)], "jobs": [make_job()]}, "Running", "is empty"),
        ({"jobs": [make_job()]}, "Running", "its record was deleted"),
        ({"records": CONTROLLED["records"]}, "Running", "its run controller no longer exists"),
        (
            {**CONTROLLED, "jobs": [make_job("Complete")]},
            "Running",
            "its run controller has ended, though the run has not",
        ),
        ({**CONTROLLED, "jobs": [make_job("Failed")]}, "Running", "its run controller has given up"),
        ({**CONTROLLED, "sets": []}, "Running", "its StatefulSets no longer exist: the release is partly deleted"),
        (
            {
                "records": [make_record(make_state("Succeeded", verdict=make_verdict("Succeeded")))],
                "jobs": [make_job()],
            },
            "Succeeded",
            "the record says Succeeded, but 4 of its pods are still there",
        ),
        ({"sets": make_sets(0), "pods": []}, "NotRunning", ""),
    ],
)
def test_what_does_not_fit_together_is_said(seen: dict[str, Any], phase: str, words: str) -> None:
    report = look(**seen)
    assert report.phase == phase
    assert words in "; ".join(report.remarks)


@pytest.mark.parametrize(("age", "hangs"), [(20, False), (300, True)])
def test_program_that_prints_without_steps_does_not_hang(age: float, *, hangs: bool) -> None:
    progress = {"attempt": 1, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    line = LogLine(stamp(NOW - age), "chief-0", "step 1 loss 2.3")
    told = " ".join(why_lines(dataclasses.replace(report, last_lines=(line,))))
    words = "Its program has never reported a step, but it prints output (see below), so it does not seem to hang."
    assert (words in told, " hangs" in told) == (not hangs, hangs)
    assert ("the run controller does not see them: kubectl logs -n team-a -l " in told) == (not hangs)


def test_a_run_that_nobody_would_start_is_not_waited_for() -> None:
    assert look(sets=make_sets(0), pods=[]).is_over
    assert not look(sets=make_sets(0), pods=[], jobs=[make_job()], records=[make_record(None)]).is_over


def test_pods_that_are_not_back_yet_are_not_called_dealt_with() -> None:
    record = make_record(make_state("Restarting", incidents=[INCIDENT]))
    text = "\n".join(why_lines(look(records=[record], jobs=[make_job()])))
    assert "the next attempt starts when the last one is gone" in text
    assert "dealt with" not in text


def test_a_controller_whose_image_is_missing_is_named() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    seen = {**CONTROLLED, "jobs": [make_job(ready=0)], "pods": [*make_pods(), make_controller_pod(waiting)]}
    [problem] = look(**seen).problems
    assert (problem.subject, problem.cause) == ("Job exp1-mnist-controller-1", "image-pull")
    assert problem.message == "no such image"


def test_controller_whose_pod_has_ended_says_how() -> None:
    ended = {"terminated": {"exitCode": 77, "message": "401 Unauthorized: the token is no longer accepted"}}
    pod = make_controller_pod()
    pod["status"] = {"phase": "Failed", "containerStatuses": [{"name": "controller", "state": ended}]}
    seen: dict[str, Any] = {**CONTROLLED, "jobs": [make_job(ready=0)], "pods": [*make_pods(), pod]}
    [remark] = look(**seen).remarks
    assert remark.startswith("its run controller is not running, so nothing starts, restarts or ends this run")
    assert remark.endswith("its pod ended with exit code 77: 401 Unauthorized: the token is no longer accepted")
    refusal = 'Error creating: pods "x" is forbidden: error looking up service account team-a/exp1-mnist-controller'
    event = make_event("Job", "exp1-mnist-controller-1", "FailedCreate", refusal)
    [problem] = look(**seen, events=[event]).problems
    assert problem.message == refusal


def test_pod_that_its_set_has_let_go_is_named_with_the_label() -> None:
    sets = make_sets()
    for each in sets:
        each["spec"]["selector"] = {"matchLabels": {"app.kubernetes.io/component": "worker"}}
        each["metadata"]["uid"] = each["metadata"]["name"]
    pods = make_pods()
    for pod in pods:
        owner = {"kind": "StatefulSet", "name": pod["metadata"]["name"][:-2], "controller": True}
        pod["metadata"]["ownerReferences"] = [owner | {"uid": owner["name"]}]
    assert not look(sets=sets, pods=pods).remarks
    pods[1]["metadata"]["ownerReferences"] = []
    pods[1]["metadata"]["labels"]["app.kubernetes.io/component"] = "quarantine"
    [remark] = look(sets=sets, pods=pods).remarks
    assert remark.startswith(
        "exp1-mnist-worker-0 does not belong to the StatefulSet exp1-mnist-worker because a label was changed: "
        "app.kubernetes.io/component is quarantine instead of worker; while it exists, no new pod can take its place"
    )
    pods[1]["metadata"]["deletionTimestamp"] = stamp(NOW)
    assert not look(sets=sets, pods=pods).remarks


@pytest.mark.parametrize(("age", "is_told"), [(10, False), (60, True)])
def test_pod_that_no_scheduler_looks_at_is_named(age: float, is_told: bool) -> None:
    waiting = make_pod("worker-1", node="")
    waiting["metadata"]["creationTimestamp"] = stamp(NOW - age)
    waiting["spec"]["schedulerName"] = "volcano"
    words = "exp1-mnist-worker-1 waits for the scheduler volcano, which has not looked at it for "
    assert any(each.startswith(words) for each in look(pods=make_pods(worker_1=waiting)).remarks) == is_told


@pytest.mark.parametrize(("age", "is_told"), [(800, False), (20, True)])
def test_program_that_goes_on_without_its_controller_is_told(age: float, is_told: bool) -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    lines = (LogLine(stamp(NOW - age), "worker-0", "step 245"),)
    told = why_lines(dataclasses.replace(report, last_lines=lines))
    found = [line for line in told if line.startswith("Yet worker-0 printed after that.")]
    selector = "app.kubernetes.io/instance=exp1,app.kubernetes.io/name=mnist,app.kubernetes.io/component=controller"
    assert [f"kubectl logs -n {NAMESPACE} -l {selector}" in line for line in found] == [True] * is_told


@pytest.mark.parametrize(
    ("step", "text", "is_told"),
    [
        (194, "step 194: have gradients of 1 of 2 workers", False),
        (194, "Global_Step=1,195 loss 0.5", True),
        (194, "[step: 190 of 500] waiting", False),
        (194, "reading shard 7", True),
        (194, "12/500 - 5ms/step - loss: 0.3", True),
    ],
)
def test_line_of_no_later_step_is_not_training_unseen(step: int, text: str, is_told: bool) -> None:
    progress = {"attempt": 1, "at": NOW - 840, "step": step, "bestStep": step}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    told = why_lines(dataclasses.replace(report, last_lines=(LogLine(stamp(NOW - 20), "chief-0", text),)))
    assert any(line.startswith("Yet chief-0 printed after that.") for line in told) == is_told


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        ((), "worker-0, worker-1 run, and nothing listens on port 2222 in them: "),
        (("worker-1",), "The other pods wait for worker-1, which has finished and will not answer any more"),
    ],
)
def test_peers_that_refuse_each_other_are_explained(finished: tuple[str, ...], words: str) -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    pods = tuple(
        dataclasses.replace(pod, state="Finished" if pod.label in finished else "Running") for pod in report.pods or ()
    )
    line = "trainchart-launcher: waiting for 1 peer for 94 s: exp1-mnist-{}.exp1-mnist:2222 (refuses connections)"
    lines = tuple(
        LogLine(stamp(NOW), label, line.format(peer))
        for label, peer in (("worker-0", "worker-1"), ("worker-1", "worker-0"))
        if label not in finished
    )
    told = why_lines(
        dataclasses.replace(report, pods=pods, last_lines=lines, finished=dict.fromkeys(finished, NOW - 900))
    )
    (found,) = [each for each in told if each.startswith(words)]
    again = "Once that is fixed: trainchart stop exp1 -n team-a, then trainchart rerun exp1 -n team-a"
    assert found.endswith(again) == bool(finished)
    assert not any("printed after that" in each or "its tasks hangs" in each for each in told)


_PEER = "quick_execute (tensorflow/python/eager/execute.py:53), called from main (/app/train.py:60)"
_OWN = "wait (threading.py:355), called from next_batch (/app/train.py:41)"


@pytest.mark.parametrize(
    ("waits", "words"),
    [
        ({"chief-0": _PEER, "worker-0": _PEER, "worker-1": _OWN}, "Waiting outside TensorFlow: worker-1. The others"),
        ({"chief-0": _OWN, "worker-0": _PEER, "worker-1": _OWN}, "Waiting outside TensorFlow: chief-0, worker-1. The"),
        ({"chief-0": _PEER, "worker-0": _PEER}, "Not waiting, as far as is known: worker-1. The others"),
        ({"chief-0": _OWN, "worker-0": _OWN, "worker-1": _OWN}, None),
        ({"chief-0": _PEER, "worker-0": _PEER, "worker-1": _PEER}, None),
    ],
)
def test_task_that_waits_outside_tensorflow_is_suspected(waits: dict[str, str], words: str | None) -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    lines = tuple(LogLine(stamp(NOW - 700), label, "step 33") for label in ("chief-0", "worker-0", "worker-1"))
    told = why_lines(
        dataclasses.replace(
            report, last_lines=lines, waits=tuple(LogLine(stamp(NOW), label, text) for label, text in waits.items())
        )
    )
    head = "These programs have printed nothing, made no step and used hardly any CPU time for minutes:"
    assert f"  {stamp(NOW)}  worker-0  {waits['worker-0']}" in told[told.index(head) + 1 :]
    found = [line for line in told if "wait in TensorFlow, as for a peer" in line]
    assert [line.startswith(words or "-") for line in found] == [True] * (words is not None)
    assert any(" the other tasks wait for " in line and "hangs" not in line for line in told) == bool(words)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (
            "wait (subprocess.py:1264), called from main (/app/train.py:9)",
            "it waits for a process that it started.",
        ),
        (
            "wait (threading.py:320), called from map (pool.py:367), called from main (/app/train.py:44)",
            "it waits for a pool of processes, and one of them was killed",
        ),
        (
            "readinto (socket.py:708), called from main (/app/train.py:9)",
            "it waits for an answer over the ",
        ),
        ("_recv (connection.py:378), called from get (queues.py:103)", "it waits for another of its threads"),
        (_OWN, "it waits for another of its threads or processes, which has ended or is waiting, too. "),
        ("<module> (/app/train.py:12)", "it waits at a line of its own code (see the list below)"),
        (
            "lock (/app/train.py:24); another thread is in accept (socket.py:294), called from serve (/app/train.py:8)",
            "it waits at a line of its own code",
        ),
        (
            "lock (/app/train.py:24); another thread is in readinto (socket.py:708), called from f (/app/train.py:8)",
            "it waits at a line of its own code",
        ),
        (
            "join (threading.py:1119), called from main (/app/train.py:24); another thread is in readinto "
            "(socket.py:708), called from f (/app/train.py:8)",
            "it waits for an answer over the ",
        ),
        (
            "join (threading.py:1119), called from main (/app/train.py:24); another thread is in accept "
            "(socket.py:294), called from serve (/app/train.py:8)",
            "it waits for another of its threads",
        ),
        ("quick_execute (tensorflow/python/eager/execute.py:53)", None),
        ("read (other/package.py:5), called from main (/app/train.py:9)", None),
    ],
)
def test_where_a_program_waits_says_what_for(place: str, words: str | None) -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    lines, waits = ((LogLine(stamp(NOW), "worker-0", text),) for text in ("step 33", place))
    told = " ".join(why_lines(dataclasses.replace(report, last_lines=lines, waits=waits)))
    assert (f" the program hangs: {words}" in told) == bool(words)


@pytest.mark.parametrize(
    ("place", "begin"),
    [
        (
            "_shutdown: its main thread has ended; another thread is in serve (a.py:1)",
            "The program hangs: the main ",
        ),
        (
            f"get (queues.py:103); 2 {PROCESSES_DIED} (SIGBUS)",
            "The program hangs: processes that it started died",
        ),
        (
            f"get (queues.py:103); 1 {PROCESSES_DIED} (SIGKILL)",
            "The program hangs: processes that it started have",
        ),
        (f"wait (subprocess.py:1264); its process 9 (score.py) {UNREAD_PIPE}", "The program hangs: it waits "),
    ],
)
def test_wait_that_a_restart_comes_to_again_is_plain(place: str, begin: str) -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    lines, waits = ((LogLine(stamp(NOW), "worker-0", text),) for text in ("step 33", place))
    told = why_lines(dataclasses.replace(report, last_lines=lines, waits=waits))
    assert any(line.startswith(begin) for line in told)
    assert "run.noProgressTimeout" not in " ".join(told)


def test_task_that_computes_while_others_wait_is_named() -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    lines = tuple(LogLine(stamp(NOW - 700), label, "step 33") for label in ("chief-0", "worker-0", "worker-1"))
    waits = tuple(LogLine(stamp(NOW), label, _PEER) for label in ("chief-0", "worker-0"))
    busy = (LogLine(stamp(NOW), "worker-1", "get_next (/app/train.py:32)"),)
    told = why_lines(dataclasses.replace(report, last_lines=lines, waits=waits, busy=busy))
    assert any(
        "the other tasks wait for worker-1, which is busy but completes no step: it may be in an" in line
        for line in told
    )
    head = "This program has printed nothing and made no step for minutes, but kept using CPU time:"
    assert told[told.index(head) + 1] == f"  {stamp(NOW)}  worker-1  get_next (/app/train.py:32)"
    assert "Busy: worker-1. The others wait in TensorFlow, as for a peer: check worker-1 first." in told


def test_only_program_that_computes_without_a_step_may_loop() -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    lines, busy = ((LogLine(stamp(NOW), "worker-0", text),) for text in ("step 33", "f (/app/train.py:32)"))
    told = " ".join(why_lines(dataclasses.replace(report, last_lines=lines, busy=busy)))
    assert "its program is busy but completes no step: it may be in an endless loop, or a filter may drop" in told


def test_program_that_is_halted_is_told_first() -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    line = LogLine(stamp(NOW), "worker-0", f"trainchart-launcher: worker-0: {HALTED}: kubectl exec exp1-mnist-worker-0")
    told = why_lines(dataclasses.replace(report, last_lines=(line,)))
    assert f"worker-0: {HALTED}: kubectl exec exp1-mnist-worker-0" in told
    assert "hangs" not in " ".join(told)


def test_line_without_a_time_is_shown_with_a_dash() -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    lines = (LogLine("", "ps-0", "waiting"), LogLine(stamp(NOW), "worker-0", "step 245"))
    told = why_lines(dataclasses.replace(report, last_lines=lines, warnings=(LogLine("", "ps-0", "ValueError: no"),)))
    assert f"  {'-':20}  ps-0      waiting" in told and f"  {stamp(NOW)}  worker-0  step 245" in told
    assert f"  {'-':20}  ps-0  ValueError: no" in told


def test_controller_that_cannot_be_created_comes_first() -> None:
    words = (
        '(combined from similar events): Error creating: pods "exp1-mnist-controller-1-l49qk" is forbidden: '
        "exceeded quota: team-a, requested: pods=1, used: pods=1, limited: pods=1"
    )
    event = make_event("Job", "exp1-mnist-controller-1", "FailedCreate", words)
    parked = make_pod("chief-0", last=make_end(causes.SUCCEEDED, 0, at=NOW - 90, step=180), restarts=1)
    progress = {"attempt": 1, "step": 64, "bestStep": 64, "at": NOW - 900}
    record = make_record(make_state("Running", progress=progress))
    waits = make_pod("worker-1", node="", conditions=[unschedulable()])
    seen = {"records": [record], "jobs": [make_job(ready=0)], "events": [event]}
    report = look(pods=make_pods(chief_0=parked, worker_1=waits), **seen)
    assert [(each.subject, each.cause) for each in report.problems] == [
        ("Job exp1-mnist-controller-1", "quota-exceeded"),
        ("exp1-mnist-worker-1", "unschedulable"),
    ]
    lines = why_lines(report)
    assert lines[2].startswith("problem: Job exp1-mnist-controller-1: A quota of the namespace does not allow")
    assert lines[3].startswith("  Error creating: pods")
    idle, unheard = report.remarks
    assert idle.endswith(f"; phase and step are as of {describe_time(NOW - 30)}")
    assert unheard.startswith("chief-0 has succeeded, but the record does not say so (step 180, ")
    assert not report.seems_to_hang, "the step that was recorded last says nothing about now"


def test_trouble_of_a_controller_explains_an_unheard_end() -> None:
    parked = make_pod("chief-0", last=make_end(causes.SUCCEEDED, 0, at=NOW - 90, step=180), restarts=1)
    progress = {"attempt": 1, "step": 64, "bestStep": 64, "at": NOW - 900}
    history = [{"phase": "Running", "at": NOW - 999, "message": ""}]
    records = (make_record(make_state("Running", progress=progress, firstStep=1, history=history)),)
    trouble = LogLine("", "", "trainchart-controller: controlling the run: PATCH /a: 500 no; trying again")
    pods = tuple(make_pods(chief_0=parked))
    seen = Snapshot(NOW, tuple(make_sets()), pods, records, jobs=(make_job(),), controller_lines=(trouble,))
    report = diagnose(KEY, seen)
    trouble_words, unheard = report.remarks
    assert trouble_words.startswith("its run controller keeps failing: PATCH /a: 500 no (controlling the run)")
    assert unheard.endswith(
        "the program has finished, and its run controller records it once the problem above is resolved"
    )
    assert not any("If none follow" in line for line in why_lines(report))


def test_problem_says_since_when_it_is_recorded() -> None:
    refused = make_event("StatefulSet", "exp1-mnist-worker", "FailedCreate", "forbidden: by a policy")
    problem = {"subject": "exp1-mnist-worker-1", "node": "", "cause": "admission-refused", "message": "forbidden"}
    state = make_state("Running", problems=[problem | {"since": NOW - 400}])
    pods = [pod for pod in make_pods() if "worker-1" not in str(pod)]
    report = look(records=[make_record(state)], jobs=[make_job()], events=[refused], pods=pods)
    assert [(each.cause, each.since) for each in report.problems] == [("admission-refused", NOW - 400)]
    assert any(line.endswith(f"[admission-refused], since {describe_time(NOW - 400)}") for line in why_lines(report))


def test_lost_peers_are_a_problem_while_their_controller_says_so() -> None:
    message = "lost a peer 69 times; the last error names ps-0 on node1: Connection reset by peer"
    problem = {"subject": "exp1-mnist-worker-0", "node": "node2", "cause": "peer-lost", "message": message}
    progress = {"attempt": 1, "step": 159, "bestStep": 159, "at": NOW - 840}
    state = make_state("Running", problems=[problem | {"since": NOW - 800}], progress=progress)
    report = look(records=[make_record(state)], jobs=[make_job()])
    lines = why_lines(report)
    assert lines[2].startswith("problem: exp1-mnist-worker-0 on node2: The program lost its connection")
    assert "Its last known step is 159, 14 min ago." in lines
    assert not any("one of its tasks hangs" in line for line in lines), "there is a problem that says more"
    assert list_lines([report])[1].endswith("1 problem: peer-lost; no new step for 14 min")
    for cause in ("peer-lost", "peer-missing", "peer-unresolvable"):
        told = make_state("Running", problems=[problem | {"cause": cause, "since": NOW - 800}], progress=progress)
        assert look(records=[make_record(told)], jobs=[make_job()]).lacks_peers
    away = make_pod("worker-0", ended=make_end(causes.KILLED, 137))
    assert not look(records=[make_record(state)], jobs=[make_job()], pods=make_pods(worker_0=away)).problems
    held = look(records=[make_record(state)], jobs=[make_job("Failed")])
    assert "peer-lost" not in [each.cause for each in held.problems]


@pytest.mark.parametrize(("is_dead", "is_named"), [(False, True), (True, False)])
def test_the_peer_that_errors_name_is_pointed_at(*, is_dead: bool, is_named: bool) -> None:
    message = "UnavailableError: failed to connect; last error: ipv4:exp1-mnist-ps-0.exp1-mnist:2222: timed out"
    problem = {"subject": "exp1-mnist-worker-0", "node": "node1", "cause": "peer-lost", "message": message}
    death = {"at": NOW - 60, "pod": "exp1-mnist-ps-0", "node": "node2", "cause": "killed", "action": ""}
    state = make_state("Running", problems=[{**problem, "since": NOW - 100}], incidents=[death] * is_dead)
    report = look(records=[make_record(state)], jobs=[make_job()])
    [pod] = [each for each in report.pods or () if each.label == "ps-0"]
    named = [each for each in report.remarks if f"the errors name ps-0 on {pod.node}, which is running and" in each]
    assert bool(named) == is_named
    assert all("trainchart logs exp1 -n team-a --pod ps-0" in each for each in named)


@pytest.mark.parametrize(("ago", "is_told"), [(30, False), (90, True)])
def test_controller_that_misses_the_success_is_reported(ago: float, is_told: bool) -> None:
    parked = make_pod("chief-0", last=make_end(causes.SUCCEEDED, 0, at=NOW - ago), restarts=1)
    report = look(**{**CONTROLLED, "pods": [*make_pods(chief_0=parked), make_controller_pod()]})
    assert [remark[:21] for remark in report.remarks] == ["chief-0 has succeeded"] * is_told


@pytest.mark.parametrize(("ago", "is_told"), [(10, False), (90, True)])
def test_a_pod_that_does_not_go_is_named(ago: float, is_told: bool) -> None:
    stuck = make_pod("worker-1")
    stuck["metadata"]["deletionTimestamp"] = stamp(NOW - ago)
    restarting = make_record(make_state("Restarting"))
    seen = {**CONTROLLED, "records": [restarting], "pods": [*make_pods(worker_1=stuck), make_controller_pod()]}
    told = (
        "exp1-mnist-worker-1 is stuck terminating: it has no finalizer; check its volumes and its node node1: kubectl "
        "describe pod exp1-mnist-worker-1 -n team-a"
    )
    assert [each.startswith(told) for each in look(**seen).remarks] == [True] * is_told


@pytest.mark.parametrize("hidden", ["sets", "pods", "records", "jobs", "events"])
def test_what_may_not_be_read_is_a_gap_and_nothing_is_made_of_it(hidden: str) -> None:
    seen = {**CONTROLLED, "pods": [*make_pods(), make_controller_pod()], hidden: Unreadable(hidden, "forbidden")}
    report = look(**seen)
    assert report.unknown == (f"could not read {hidden} (forbidden)",)
    assert report.phase == "Running"
    assert not report.remarks


def test_without_pods_and_record_nothing_is_claimed() -> None:
    report = look(pods=PODS_HIDDEN)
    assert (report.phase, report.gpus, report.pods) == ("Unknown", None, None)
    assert report.roles[0].running is None
    assert describe_report(report)["gpus"] is None


def test_a_release_may_hold_several_trainings_and_other_things() -> None:
    other = make_set("worker", release="exp1")
    other["metadata"]["labels"]["app.kubernetes.io/name"] = "digits"
    database = {"metadata": {"name": "db", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/instance": "exp1"}}}
    unwritten = make_record(None)
    unwritten["metadata"]["labels"]["app.kubernetes.io/name"] = "somebody-elses"
    seen = Snapshot(now=NOW, sets=(*make_sets(), other, database), records=(unwritten,))
    assert [str(key) for key in find_trainings(seen)] == ["exp1/digits", "exp1/mnist"]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150)
@given(record=JUNK, logs=st.text(max_size=20), phase=JUNK, verdict=JUNK, problems=JUNK, incidents=JUNK, progress=JUNK)
def test_no_record_that_people_have_edited_ends_in_a_traceback(
    record: Any, logs: str, phase: Any, verdict: Any, problems: Any, incidents: Any, progress: Any
) -> None:
    edited = make_state("Running", problems=problems, incidents=incidents, progress=progress)
    for state in (record, {**edited, "phase": phase}, {**edited, "phase": "Failed", "verdict": verdict}, edited):
        data = make_record(json.dumps(state), logs=logs)
        report = look(records=[data], jobs=[make_job()])
        json.dumps(describe_report(report))
        assert status_lines(report)
        assert why_lines(report)
        assert len(list_lines([report])) == 2


def test_a_run_that_is_over_is_not_guessed_at_without_its_record() -> None:
    hidden = Unreadable("configmaps", "forbidden")
    report = look(sets=make_sets(0), pods=[], jobs=[make_job("Failed")], records=hidden)
    assert (report.phase, report.remarks) == ("Unknown", ())
    assert report.unknown == ("could not read configmaps (forbidden)",)


def test_reports_are_values() -> None:
    report = look()
    assert dataclasses.replace(report, phase="Failed").phase == "Failed"
    assert report == look()


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"suspend": True}, "its Job is suspended (spec.suspend)"),
        ({"parallelism": 0}, "its Job may have no pod (spec.parallelism is 0)"),
        ({"managedBy": "kueue.x-k8s.io/multikueue"}, "its Job is managed by kueue.x-k8s.io/multikueue"),
    ],
)
def test_blocked_controller_is_reported_with_what_to_do(spec: dict[str, Any], why: str) -> None:
    job = {**make_job(ready=0), "spec": spec}
    report = look(records=[make_record(make_state("Running"))], jobs=[job])
    assert report.controller == "held"
    (remark,) = report.remarks
    assert why in remark
    assert "kubectl edit job exp1-mnist-controller-1 -n" in remark
    lines = why_lines(report)
    assert lines[lines.index("No failure is recorded, but:") + 1] == f"note: {remark}"


@pytest.mark.parametrize("job", [{**make_job(ready=0), "spec": {"suspend": True}}, make_job("Failed")])
def test_program_that_is_done_lacks_only_its_verdict(job: dict[str, Any]) -> None:
    done = make_pod("chief-0", last=make_end(causes.SUCCEEDED, 0, at=NOW - 90, step=150), restarts=1)
    remarks = look(records=[make_record(make_state("Running"))], jobs=[job], pods=make_pods(chief_0=done)).remarks
    (remark,) = (each for each in remarks if each.startswith("chief-0 has succeeded"))
    assert "(step 150, " in remark
    assert (
        "the program has finished, and only the verdict is missing; its run controller records it when it runs"
        in remark
    )


def test_a_controller_without_pod_or_event_is_told() -> None:
    report = look(records=[make_record(make_state("Running"))], jobs=[make_job(ready=0)])
    (remark,) = report.remarks
    assert "Kubernetes has not created its Job's pod yet" in remark


def test_a_suspended_run_says_what_it_still_holds() -> None:
    held = look(records=[make_record(make_state("Suspended"))], jobs=[make_job()])
    assert any("4 of its pods have not ended yet, and it waits" in line for line in why_lines(held))
    free = look(sets=make_sets(0), pods=[], records=[make_record(make_state("Suspended"))], jobs=[make_job()])
    assert any("it holds nothing, and it waits" in line for line in why_lines(free))


def test_the_step_of_a_run_that_has_ended_is_that_of_its_verdict() -> None:
    progress = {"at": NOW - 20, "attempt": 1, "step": 2, "metrics": {"loss": 0.5}}
    verdict = make_verdict("Succeeded") | {"step": 100, "metrics": {"loss": 0.1}}
    state = make_state("Succeeded", verdict=verdict, progress=progress)
    report = look(sets=make_sets(0), pods=[], records=[make_record(state)], jobs=[make_job("Complete")])
    assert (report.progress.step, report.progress.metrics) == (100, {"loss": 0.1})


def test_task_that_finished_before_the_run_is_shown_as_finished() -> None:
    state = make_state("Running", succeeded={"worker-1": NOW - 60})
    state["roles"]["worker"] |= {"running": 1, "finished": 1}
    report = look(records=[make_record(state)], pods=[pod for pod in make_pods() if "worker-1" not in str(pod)])
    (workers,) = [role for role in report.roles if role.role == "worker"]
    assert (workers.running, workers.finished) == (1, 1)
    assert any(line.endswith("worker-1") for line in why_lines(report))
    assert not any("Not every pod is running yet" in line for line in why_lines(report))


def test_pods_that_do_not_run_yet_are_named() -> None:
    state = make_state("Starting")
    state["roles"]["worker"]["running"] = 1
    pods = [pod for pod in make_pods(worker_1=make_pod("worker-1", node="")) if "ps-0" not in str(pod)]
    lines = why_lines(look(records=[make_record(state)], pods=pods))
    at = lines.index("Not every pod is running yet: worker-1 (Pending), ps lacks 1 pod. This may be why:")
    assert lines[at + 1].startswith("note: ")


@pytest.mark.parametrize(("seconds", "is_told"), [(59, False), (60, True)])
def test_a_success_that_nobody_records_is_told_after_a_minute(seconds: float, is_told: bool) -> None:
    chief = make_pod("chief-0", ended=make_end(causes.SUCCEEDED, 0, at=NOW - seconds, reason="Completed"))
    remarks = look(pods=make_pods(chief_0=chief), **CONTROLLED).remarks
    assert any("chief-0 has succeeded, but the record does not say so" in each for each in remarks) == is_told


def test_missing_parameter_server_is_named_while_others_train() -> None:
    state = make_state("Running", succeeded={"ps-0": NOW - 60, "worker-1": NOW - 50})
    (remark,) = look(records=[make_record(state)], jobs=[make_job()]).remarks
    assert remark.startswith("ps-0 ended successfully while the training continues")
    assert (
        look(records=[make_record(make_state("Running", succeeded={"worker-1": NOW - 50}))], jobs=[make_job()]).remarks
        == ()
    )


def test_restarts_of_the_program_are_counted_with_its_pod() -> None:
    worker = make_pod("worker-0")
    worker["metadata"]["uid"] = "40be6040"
    for uid, restarts in (("40be6040", "0, program 67"), ("the-pod-before", "0")):
        state = make_state("Running", restarts={"worker-0": {"uid": uid, "earlier": 0, "current": 67}})
        lines = status_lines(look(records=[make_record(state)], jobs=[make_job()], pods=make_pods(worker_0=worker)))
        [row] = [line for line in lines if line.startswith("worker-0 ")]
        assert f"  {restarts}  " in row
        assert ("program" in row) == ("program" in restarts)


def test_finished_tasks_are_told_from_missing_ones() -> None:
    state = make_state("Running", succeeded={"worker-1": NOW - 60})
    state["roles"]["worker"] |= {"running": 1, "finished": 1}
    pods = [pod for pod in make_pods() if "worker-1" not in str(pod)]
    assert " 3/4 (1 finished) " in list_lines([look(records=[make_record(state)], jobs=[make_job()], pods=pods)])[1]


def test_what_a_pod_asks_none_of_is_not_held() -> None:
    container = {"resources": {"limits": {"nvidia.com/gpu": "0", "amd.com/gpu": "2", "cpu": "1", "rdma/hca": "1"}}}
    assert count_gpus({"containers": [container, container]}) == {"amd.com/gpu": 4}


def test_deleted_object_is_a_problem_though_no_pod_shows_it() -> None:
    gone = {"subject": "Service exp1-mnist", "node": "", "cause": "object-missing", "message": "it was deleted"}
    state = make_state("Running", problems=[gone | {"since": NOW - 9}])
    report = look(records=[make_record(state)], jobs=[make_job()])
    assert [(each.subject, each.cause) for each in report.problems] == [("Service exp1-mnist", "object-missing")]
    assert any("helm rollback exp1 REVISION -n team-a, with" in line for line in why_lines(report))


def test_refused_change_is_named_while_the_run_stops() -> None:
    words = "PATCH …/scale: 422 ValidatingAdmissionPolicy 'gitops-only' denied request"
    refused = {"subject": "StatefulSet exp1-mnist-ps", "node": "", "cause": "change-refused", "message": words}
    state = make_state("Stopping", verdict=make_verdict("Succeeded"), problems=[refused | {"since": NOW - 9}])
    lines = why_lines(look(records=[make_record(state)], jobs=[make_job()]))
    assert any("StatefulSet exp1-mnist-ps: The cluster refuses a change" in line for line in lines)
    assert f"  {words}" in lines


@pytest.mark.parametrize("cause", ["not-a-number", "slow-task", "cpu-throttled", "child-killed", "storage-silent"])
def test_what_reports_show_of_running_pods_is_a_problem(cause: str) -> None:
    problem = {"subject": "exp1-mnist-worker-1", "node": "node1", "cause": cause, "message": "NaN: loss", "since": NOW}
    record = make_record(make_state("Running", problems=[problem]))
    report = look(records=[record], jobs=[make_job()], pods=[*make_pods(), make_controller_pod()])
    assert [(each.subject, each.cause) for each in report.problems] == [("exp1-mnist-worker-1", cause)]


def test_how_a_pod_in_trouble_was_changed_is_remarked() -> None:
    sets = make_sets()
    for each in sets:
        each["status"] = {"updateRevision": "r-2"}
        each["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2", "memory": "8Gi"}}

    def remarks(revision: str, limit: str, **ended: Any) -> list[str]:
        pod = make_pod("ps-0", **ended)
        pod["metadata"]["labels"]["controller-revision-hash"] = revision
        pod["spec"]["containers"][0]["resources"]["limits"]["memory"] = limit
        return [each for each in look(sets=sets, pods=make_pods(ps_0=pod)).remarks if "does not ask for" in each]

    killed = {"last": make_end(None, 137, reason="OOMKilled"), "restarts": 1}
    [remark] = remarks("r-2", "1Gi", **killed)
    assert remark.startswith("exp1-mnist-ps-0 has limits.memory 1Gi instead of 8Gi, requests")
    assert not remarks("r-1", "1Gi", **killed), "an upgrade has changed the set since"
    assert not remarks("r-2", "8Gi", **killed)
    assert not remarks("r-2", "1Gi"), "a pod that runs well"


def test_changes_of_the_failed_pod_come_before_the_hint() -> None:
    verdict = make_verdict(cause=causes.OUT_OF_MEMORY, changes="limits.memory 96Mi instead of 256Mi")
    record = make_record(make_state("Failed", verdict=verdict))
    lines = why_lines(look(records=[record], jobs=[make_job("Failed")], sets=make_sets(0), pods=[]))
    assert "  changed    its container got limits.memory 96Mi instead of 256Mi" in lines
    [advice] = [line for line in lines if line.startswith("What to do next")]
    assert advice.startswith("What to do next: The pod differed from its StatefulSet")


def test_build_of_the_failed_pod_comes_before_the_hint() -> None:
    words = (
        "sha256:ce5aa261d4d7 of ml/mnist:1 on node2; under the same tag, other pods ran sha256:97e7fa046a24 on node1"
    )
    verdict = make_verdict(cause=causes.PROGRAM_MISSING, build=words)
    record = make_record(make_state("Failed", verdict=verdict))
    lines = why_lines(look(records=[record], jobs=[make_job("Failed")], sets=make_sets(0), pods=[]))
    assert f"  build      {words}" in lines
    [advice] = [line for line in lines if line.startswith("What to do next")]
    assert advice.startswith("What to do next: The pods ran different builds under one tag, see above.")
    assert "push the intended build under a new tag and set image.tag, or set image.digest" in advice
    assert "Otherwise: Check the command" in advice


def test_what_no_node_offers_is_named_with_the_pod() -> None:
    words = (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint."
    )
    waits = make_pod("worker-1", node="", conditions=[unschedulable(words)])
    waits["spec"]["nodeSelector"] = {"pool": "a100"}
    sets = make_sets()
    sets[1]["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "a100"}
    lines = why_lines(look(pods=make_pods(worker_1=waits), sets=sets))
    assert "  note: exp1-mnist-worker-1 may run only on nodes with pool=a100 (nodeSelector)" in lines
    assert any("next: kubectl get pod exp1-mnist-worker-1 -o yaml" in line for line in lines)


def test_how_it_ended_is_said_beside_a_refused_change() -> None:
    refused = {"subject": "StatefulSet exp1-mnist-ps", "node": "", "cause": "change-refused", "message": "422"}
    state = make_state("Stopping", verdict=make_verdict("Succeeded", step=200), problems=[refused | {"since": NOW}])
    assert any("at step 200" in line for line in why_lines(look(records=[make_record(state)], jobs=[make_job()])))


def test_advice_about_the_death_before_the_wait_is_given() -> None:
    taken = INCIDENT | {"pod": "exp1-mnist-worker-1", "node": "node2", "cause": "evicted", "exitCode": None}
    record = make_record(make_state("Running", incidents=[taken]))
    waits = make_pod("worker-1", node="", conditions=[unschedulable()])
    lines = why_lines(look(records=[record], jobs=[make_job()], pods=make_pods(worker_1=waits)))
    [advice] = [line for line in lines if line.startswith("  next: If the message says that it exceeded its limit")]
    assert "kubectl describe node node2" in advice
    lines = why_lines(look(records=[record], jobs=[make_job()]))
    assert not any(line.startswith("  next: ") for line in lines), "the pod runs again"


def test_pods_that_stay_long_after_the_end_are_remarked() -> None:
    def remarks(since: float, **pods: Any) -> list[str]:
        state = make_state("Stopping", verdict=make_verdict("Succeeded"), since=since)
        found = look(records=[make_record(state)], jobs=[make_job()], pods=make_pods(**pods)).remarks
        return [each for each in found if "was not scaled to zero" in each]

    [remark] = remarks(NOW - 300)
    assert remark.startswith("the run is over, but exp1-mnist-chief-0, ")
    assert not remarks(NOW - 60)


def test_metrics_of_a_run_that_goes_on_are_shown() -> None:
    progress = {"attempt": 1, "step": 700, "at": NOW - 5, "metrics": {"loss": 2.3026, "accuracy": 0.098}}
    lines = why_lines(look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()]))
    assert "Its last known step is 700, 5 s ago, loss 2.3026, accuracy 0.098." in lines


def test_deleted_object_is_still_named_when_the_run_is_over() -> None:
    gone = {"subject": "Service exp1-mnist", "node": "", "cause": "object-missing", "message": "it was deleted"}
    pulled = {"subject": "exp1-mnist-worker-0", "node": "", "cause": "image-pull", "message": "not found"}
    problems = [each | {"since": NOW - 9} for each in (gone, pulled)]
    record = make_record(make_state("Failed", verdict=make_verdict(), problems=problems))
    report = look(records=[record], jobs=[make_job("Failed")], sets=make_sets(0), pods=[])
    lines = why_lines(report)
    start = lines.index("What was wrong when it ended:")
    assert lines[start + 1].startswith("  problem: Service exp1-mnist: An object of the release")
    assert not any("image-pull" in line for line in lines), "that pod is gone, and so is what kept it from running"
    assert any(line.startswith("What to do next: First fix what was wrong") for line in lines)


def test_error_that_came_twice_is_not_cured_by_a_rerun() -> None:
    def advice(earlier: float) -> str:
        verdict = make_verdict(error="ValueError: NaN", pod="exp1-mnist-worker-2")
        incident = {
            "at": earlier,
            "pod": "exp1-mnist-worker-2",
            "cause": "program-error",
            "node": "node1",
            "action": "",
            "exitCode": 1,
            "error": "ValueError: NaN",
        }
        record = make_record(make_state("Failed", verdict=verdict, incidents=[incident]))
        report = look(records=[record], jobs=[make_job("Failed")], sets=make_sets(0), pods=[])
        return next(line for line in why_lines(report) if line.startswith("What to do next"))

    assert "occurred more than once" in advice(NOW - 500)
    assert "occurred more than once" not in advice(NOW - 121), "that is the death that the verdict is about"


def test_task_that_stands_elsewhere_is_named() -> None:
    progress = {"attempt": 1, "step": 39, "bestStep": 39, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    pods = tuple(dataclasses.replace(report.pods[0], label=f"worker-{number}", role="worker") for number in range(3))

    def named(*texts: str) -> bool:
        lines = tuple(LogLine("2026-11-26T10:00:00", f"worker-{number}", text) for number, text in enumerate(texts))
        words = why_lines(dataclasses.replace(report, pods=pods, last_lines=lines))
        return any("The last line of worker-1 alone differs" in line for line in words)

    assert named("step 39", "reading shard 7", "step 39")
    assert not named("step 39", "step 39", "step 39")
    assert not named("a", "b", "c")
    assert named("part-177 is decoded", "opened part-166", "part-179 is decoded")
    assert named("step 39, 12:00:01", "step 39, reading", "step 39, 12:00:02")
    assert not named("step 39", "step 38", "step 37")
    assert not named("step 39", "reading shard 7")


def test_run_without_steps_for_long_is_remarked() -> None:
    def state(at: float) -> dict[str, Any]:
        return make_state("Running", progress={"attempt": 1, "step": 39, "bestStep": 39, "at": at})

    quick, slow = (look(records=[make_record(state(NOW - age))], jobs=[make_job()]) for age in (60, 840))
    assert not quick.seems_to_hang and list_lines([quick])[1].endswith("39    -")
    assert slow.seems_to_hang and list_lines([slow])[1].endswith("no new step for 14 min")
    assert any("one of its tasks hangs" in line for line in why_lines(slow))
    alone = look(records=[make_record(state(NOW - 840))], jobs=[make_job()], sets=[make_set("chief")], pods=make_pods())
    [advice] = [line for line in why_lines(alone) if line.startswith("If its steps do not take that long")]
    assert "its program hangs" in advice and "peers" not in advice and "NetworkPolicy" not in advice
    ended = make_pod("worker-0", last=make_end(causes.SUCCEEDED, 0))
    parked = look(records=[make_record(state(NOW - 840))], jobs=[make_job()], pods=make_pods(worker_0=ended))
    assert not parked.seems_to_hang
    known = make_record(state(NOW - 840) | {"succeeded": {"worker-0": NOW - 860}})
    assert look(records=[known], jobs=[make_job()], pods=make_pods(worker_0=ended)).seems_to_hang


@pytest.mark.parametrize(("before", "is_named"), [(-20, True), (1.3, True), (61, False), (-61, False)])
def test_task_that_finished_with_the_last_step_is_named(before: float, is_named: bool) -> None:
    progress = {"attempt": 1, "step": 63, "bestStep": 63, "at": NOW - 840}
    finished = {
        "succeeded": {"worker-1": NOW - 840 - before},
        "finalLines": {"worker-1": "end of shard after 62 batches"},
    }
    pods = [pod for pod in make_pods() if "worker-1" not in str(pod)]
    record = make_record(make_state("Running", progress=progress, **finished))
    report = look(records=[record], jobs=[make_job()], pods=pods)
    lines = why_lines(report)
    assert any(line.startswith("worker-1 finished at about that time") for line in lines) == is_named
    assert ("The last line of worker-1: end of shard after 62 batches" in lines) == is_named
    assert any("one of its tasks hangs" in line for line in lines) != is_named
    assert list_lines([report])[1].endswith("no new step for 14 min, since worker-1 finished") == is_named


@pytest.mark.parametrize(
    ("argument", "silence", "is_named"),
    [
        ("--ps-hosts=taste-mnist-ps-0.taste-mnist:2222", 840.0, True),
        ("--ps-hosts=taste-mnist-ps-0.taste-mnist:2222", 20.0, False),
        ("--ps-hosts=exp1-mnist-ps-0.exp1-mnist:2222", 840.0, False),
        ("--data=https://mirror-0.example.com/mnist", 840.0, False),
    ],
)
def test_address_of_another_releases_task_is_named(argument: str, silence: float, is_named: bool) -> None:
    worker = make_pod("worker-0")
    worker["spec"]["containers"][0]["args"] = ["--", "python", "/code/train.py", argument]
    progress = {"attempt": 1, "step": 1, "bestStep": 1, "at": NOW - silence}
    record = make_record(make_state("Running", progress=progress))
    report = look(records=[record], jobs=[make_job()], pods=make_pods(worker_0=worker))
    words = "exp1-mnist-worker-0 is started with the address of taste-mnist-ps-0, which is not a pod of this release"
    assert any(remark.startswith(words) for remark in report.remarks) == is_named
    assert not (is_named and any("NetworkPolicy" in line for line in why_lines(report)))


@pytest.mark.parametrize(("requested", "ready", "is_named"), [(1, 0, True), (2, 0, False), (1, 1, False)])
def test_pods_that_wait_for_the_run_controller_are_named(requested: int, ready: int, is_named: bool) -> None:
    words = (
        "Error creating: exceeded quota: objects, requested: count/pods=1, used: count/pods=9, limited: count/pods=9"
    )
    event = make_event("Job", "exp1-mnist-controller-1", "FailedCreate", words)
    sets = [make_set("chief"), make_set("ps"), make_set("worker", requested, wanted=2)]
    pods = [pod for pod in make_pods() if not pod["metadata"]["name"].endswith("worker-1")]
    report = look(sets=sets, jobs=[make_job(ready=ready)], pods=pods, events=[] if ready else [event])
    remark = "exp1-mnist-worker-1 has not been requested yet: the run controller does that when it runs"
    assert (remark in report.remarks) == is_named


def test_partly_scheduled_release_gets_a_hint_about_gang_queues() -> None:
    lacking = make_pod("worker-1", conditions=[unschedulable()], node="")
    lacking["status"]["containerStatuses"] = []
    report = look(records=[make_record(make_state("Starting"))], jobs=[make_job()], pods=make_pods(worker_1=lacking))
    (remark,) = report.remarks
    assert remark.startswith("3 of its pods hold their place while 1 waits for room")


def test_gang_queues_are_no_cure_for_pods_that_must_stand_apart() -> None:
    words = (
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
    )
    lacking = make_pod("worker-1", conditions=[{**unschedulable(), "message": words}], node="")
    lacking["status"]["containerStatuses"] = []
    report = look(records=[make_record(make_state("Starting"))], jobs=[make_job()], pods=make_pods(worker_1=lacking))
    assert not report.remarks
    assert [(each.subject, each.cause) for each in report.problems] == [("exp1-mnist-worker-1", "placement-rules")]
    assert not any("which resource is short" in line for line in why_lines(report))


@pytest.mark.parametrize("replicas", ["2000000000", "9" * 400])
def test_any_number_of_replicas_is_looked_at_at_once(replicas: str) -> None:
    sets = make_sets()
    sets[1]["metadata"]["annotations"] |= {
        "trainchart/replicas": replicas,
        "trainchart/start-deadline-seconds": replicas,
        "trainchart/evaluator-grace-seconds": replicas,
    }
    sets[1]["spec"]["replicas"] = 2_000_000_000
    began = time.process_time()
    assert why_lines(look(sets=sets, records=[make_record(make_state("Finishing"))], jobs=[make_job()]))
    assert time.process_time() - began < 60, "such a number takes minutes if each is named"


@pytest.mark.parametrize("key", ["step", "firstStep"])
def test_record_with_huge_numbers_is_damaged(key: str) -> None:
    progress = {"attempt": 1, "step": 5, "at": NOW - 5}
    state = make_state("Running", progress=progress, firstStep=1)
    (progress if key == "step" else state)[key] = 10**400
    report = look(records=[make_record(state)], jobs=[make_job()])
    assert any("is not a number of up to 64 bits" in each for each in report.remarks)


def test_run_that_finishes_without_its_leading_set_is_described() -> None:
    sets = [make_set("evaluator", 1, wanted=1)]
    pending = make_verdict("Succeeded")
    state = make_state("Finishing", pendingVerdict=pending)
    assert why_lines(look(sets=sets, records=[make_record(state)], jobs=[make_job()]))


def test_step_of_thousands_of_digits_is_no_error() -> None:
    progress = {"attempt": 1, "step": 33, "bestStep": 33, "at": NOW - 840}
    report = look(records=[make_record(make_state("Running", progress=progress))], jobs=[make_job()])
    line = LogLine(stamp(NOW - 20), "chief-0", f"step {'9' * 5000}")
    assert why_lines(dataclasses.replace(report, last_lines=(line,)))
