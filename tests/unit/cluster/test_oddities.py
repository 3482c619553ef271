"""What is odd about a training that has not failed: briefly in `list`, and as a whole in `why`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_controller_pod,
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
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.list_table import list_lines
from trainchart.reports.log_line import LogLine
from trainchart.reports.report import Report, TrainingKey
from trainchart.reports.text import describe_time
from trainchart.reports.why import why_lines
from trainchart_runtime import causes

TMP_FULL = 'Usage of EmptyDir volume "tmp" exceeds the limit "48Mi".'


def look(state: Any, *, is_over: bool = False, logs: Any = None, sets: Any = None, pods: Any = None) -> Report:
    record = make_record(state, logs=json.dumps(logs) if logs else None)
    seen = Snapshot(
        now=NOW,
        sets=tuple(sets or make_sets(0 if is_over else None)),
        pods=() if is_over else tuple(pods or make_pods()),
        records=(record,),
        jobs=(make_job("Complete" if is_over else ""),),
    )
    return diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)


@pytest.mark.parametrize(
    ("waiting", "words"),
    [
        ({"reason": "ImagePullBackOff", "message": "no such tag"}, "is not running; the training continues without it"),
        (None, ""),
    ],
)
def test_image_of_tensorboard_that_fails_is_remarked(waiting: dict[str, str] | None, words: str) -> None:
    board = make_pod("tensorboard-0")
    board["metadata"]["labels"] |= {"trainchart/training": "", "app.kubernetes.io/component": "tensorboard"}
    if waiting:
        board["status"]["containerStatuses"][0]["state"] = {"waiting": waiting}
    seen = Snapshot(now=NOW, sets=tuple(make_sets()), pods=(*make_pods(), board))
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    assert [words in each and "no such tag" in each for each in remarks if "tensorboard" in each] == [True] * bool(
        words
    )


def evict(number: int, pod: str = "exp1-mnist-worker-1") -> list[dict[str, Any]]:
    return [
        {"at": NOW - 120 * each, "pod": pod, "node": "node1", "cause": "evicted", "action": "", "error": TMP_FULL}
        for each in range(number, 0, -1)
    ]


def test_pod_that_is_evicted_again_and_again_is_remarked() -> None:
    step = {"at": NOW - 5, "attempt": 1, "step": 70, "bestStep": 70}
    report = look(make_state("Running", progress=step, incidents=evict(5)))
    words = f"worker-1 was evicted 5 times since {describe_time(NOW - 600)}"
    assert list_lines([report])[1].endswith(f"  {words}")
    text = "\n".join(why_lines(report))
    assert (
        f"{words}: the reason each time was: {TMP_FULL[:-1]}. The pod is recreated" in text
        and text.count("Raise tmpSize") == 1
    )
    assert not look(make_state("Running", progress=step, incidents=evict(1))).remarks
    drained = [*evict(1), *evict(1, "exp1-mnist-worker-0")]
    assert not look(make_state("Running", progress=step, incidents=drained)).remarks


def test_advice_about_pods_taken_away_is_given_once() -> None:
    step = {"at": NOW - 5, "attempt": 1, "step": 70, "bestStep": 70}
    both = [*evict(5), *evict(4, "exp1-mnist-worker-0")]
    remarks = look(make_state("Running", progress=step, incidents=both)).remarks
    assert ["Raise tmpSize of the role" in remark for remark in remarks] == [True, False]
    assert remarks[1].endswith("The pod is recreated, and the run continues")


def test_advice_of_a_companion_is_not_that_of_pods_again() -> None:
    board, worker = make_pod("tensorboard-0"), make_pod("worker-0")
    board["metadata"]["labels"] |= {"trainchart/training": "", "app.kubernetes.io/component": "tensorboard"}
    for pod in (board, worker):
        waiting = {"reason": "ImagePullBackOff", "message": "no such tag"}
        pod["status"]["containerStatuses"][0]["state"] = {"waiting": waiting}
    lines = why_lines(look(make_state("Starting"), pods=[board, *make_pods(worker_0=worker)]))
    assert sum("Check the image's name, tag" in line for line in lines) == 1


def test_how_many_more_fruitless_starts_end_the_run_is_said() -> None:
    step = {"at": NOW - 5, "attempt": 1, "step": None, "bestStep": None, "fruitlessRestarts": 4}
    text = "\n".join(why_lines(look(make_state("Running", progress=step, incidents=evict(4)))))
    assert "The pod is recreated, and the run continues, until 2 more starts have brought no new highest step. " in text


def test_pods_deleted_again_and_again_are_explained_once() -> None:
    step = {"at": NOW - 5, "attempt": 1, "step": 70, "bestStep": 70}
    deleted = [each | {"cause": "pod-deleted", "error": ""} for each in evict(5)]
    state = make_state("Running", progress=step, incidents=deleted)
    (remark,) = look(state).remarks
    assert remark.startswith("worker-1 was deleted 5 times since ")
    assert "Find out who or what keeps deleting it" in remark
    sets = make_sets()
    fields = {"f:metadata": {"f:annotations": {"f:downscaler/original-replicas": {}}}}
    entry = {"manager": "kube-downscaler", "operation": "Update", "time": stamp(NOW), "fieldsV1": fields}
    sets[0]["metadata"]["managedFields"] = [entry]
    (remark,) = look(state, sets=sets).remarks
    assert remark.startswith("kube-downscaler scales ")


def test_run_that_waits_for_its_evaluator_says_until_when() -> None:
    sets = [*make_sets(), make_set("worker", 1, wanted=1)]
    sets[-1]["metadata"]["name"] = "exp1-mnist-evaluator"
    sets[-1]["metadata"]["labels"]["app.kubernetes.io/component"] = "evaluator"
    for each in sets:
        each["metadata"]["annotations"]["trainchart/evaluator-grace-seconds"] = "86400"
    success = make_verdict("Succeeded", causes.SUCCEEDED, error="", step=500)
    state = make_state("Finishing", pendingVerdict=success, succeeded={"chief-0": NOW - 120})
    report = look(state, sets=sets)
    words = f"waits for evaluator-0 until {describe_time(NOW - 120 + 86400)}"
    assert list_lines([report])[1].endswith(f"  {words}")
    text = "\n".join(why_lines(report))
    assert f"{words}: chief-0 has succeeded at step 500, and the pods keep what they hold" in text
    assert "trainchart stop exp1 -n team-a, or helm upgrade with a shorter run.evaluatorGrace" in text
    assert "An evaluator ends once it has evaluated the checkpoint of the last step" in text
    done = state | {"succeeded": {"chief-0": NOW - 120, "evaluator-0": NOW - 1}}
    assert not any("waits for" in remark for remark in look(done, sets=sets).remarks)


@pytest.mark.parametrize(
    ("step", "first", "line", "is_remarked"),
    [
        (None, None, "restored epoch 15 from /checkpoints/ckpt-15", True),
        (945, 945, "Resuming from step 945", True),
        (60, 60, "restored step 60 from /checkpoints/ckpt-60", True),
        (None, None, "nothing left to do: step 60 in /checkpoints is the end of the training", True),
        (80, 80, "restored step 40 from /checkpoints/ckpt-40", False),
        (80, 80, f"restored step {'9' * 5000}", True),
        (945, 3, "restored epoch 0", False),
        (945, None, "restored epoch 15", False),
        (None, None, "trained", False),
        (945, 945, "trained", False),
        (20, 20, "trainchart-launcher: chief-0: has finished this run; nothing left to do", False),
    ],
)
def test_success_without_a_step_is_remarked(step: int | None, first: int | None, line: str, is_remarked: bool) -> None:
    sets = make_sets(0)
    volume = {"name": "checkpoints", "persistentVolumeClaim": {"claimName": "digits"}}
    sets[0]["spec"]["template"]["spec"]["volumes"] = [volume]
    verdict = make_verdict(
        "Succeeded", causes.SUCCEEDED, error="", step=step, lines=["done"], pod="exp1-mnist-chief-0", hint=""
    )
    logs = {"exp1-mnist-chief-0": {"at": NOW, "lines": [line, "done"]}}
    state = make_state("Succeeded", verdict=verdict, firstStep=first)
    report = look(state, is_over=True, logs=logs, sets=sets)
    assert list_lines([report])[1].endswith("  succeeded without a step of its own" if is_remarked else "  -")
    text = "\n".join(why_lines(report))
    assert (
        f"its log says: {line}. What an earlier run left in the claim digits was already finished" in text
    ) == is_remarked


@pytest.mark.parametrize(
    ("cause", "message", "is_named"),
    [
        (causes.PEER_MISSING, "pods that run and cannot be reached from this one: {}:2222 (does not answer)", True),
        (causes.PEER_UNRESOLVABLE, "names that do not resolve in this pod, though their pods run: {}:2222", False),
        (causes.PEER_LOST, "lost a peer 3 times. The last error: DNS resolution failed for {}:2222", False),
    ],
)
def test_network_is_not_blamed_for_names_without_address(cause: causes.Cause, message: str, is_named: bool) -> None:
    message = message.format("exp1-mnist-ps-0.exp1-mnist")
    problem = {"subject": "exp1-mnist-worker-1", "node": "node1", "cause": cause.name, "message": message, "since": NOW}
    report = look(make_state("Running", problems=[problem]))
    assert any("the errors name ps-0" in each for each in report.remarks) == is_named


def test_a_pod_with_the_labels_of_the_training_is_named() -> None:
    copy = make_pod("exp1-mnist-worker-0")
    copy["metadata"] |= {"name": "worker-debug", "uid": "other", "ownerReferences": []}
    copy["spec"] |= {"hostname": "exp1-mnist-worker-0", "subdomain": "exp1-mnist"}
    key = TrainingKey(NAMESPACE, "exp1", "mnist")
    sets, pods = make_sets(), make_pods()
    for each in sets:
        each["metadata"]["uid"] = each["metadata"]["name"]
    for pod in pods:
        owner = pod["metadata"]["name"][:-2]
        pod["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": owner, "uid": owner, "controller": True}]
    pods.append(make_controller_pod())
    record = make_record(make_state("Running"))
    seen = Snapshot(now=NOW, sets=tuple(sets), pods=(*pods, copy), records=(record,), jobs=(make_job(),))
    (remark,) = diagnose(key, seen).remarks
    assert remark.startswith("the pod worker-debug has the labels of the training's pods, but is not one of them")
    assert "the name exp1-mnist-worker-0.exp1-mnist stands for its address, too" in remark
    assert remark.endswith(f"kubectl delete pod worker-debug -n {NAMESPACE}")
    for gone in (replace(seen, sets=()), replace(seen, pods=(*pods, copy | {"status": {"phase": "Failed"}}))):
        assert "worker-debug" not in "".join(diagnose(key, gone).remarks)


def test_run_without_a_first_step_shows_its_pods_last_lines() -> None:
    young = look(make_state("Running", since=NOW - 100, progress={"at": NOW - 100, "attempt": 1, "step": None}))
    assert young.awaits_first_step and not young.seems_to_hang
    line = LogLine(stamp(NOW - 90), "worker-1", "reading 0 of 1 files")
    text = "\n".join(why_lines(replace(young, last_lines=(line,))))
    assert "Nothing has failed.\nIt has run for 1 min without reporting a step.\nThe last line of each pod:\n" in text
    assert text.count("reading 0 of 1 files") == 1 and "hangs" not in text
    assert not look(make_state("Running", since=NOW - 30, progress={"at": NOW - 30, "attempt": 1})).awaits_first_step


@pytest.mark.parametrize(
    ("reason", "message", "words"),
    [
        ("FailedPostStartHook", "PostStartHook failed", "the postStart hook of its container failed; nothing says why"),
        ("Unhealthy", "Liveness probe failed: HTTP probe failed with statuscode: 500", "Liveness probe failed: HTTP"),
        ("Unhealthy", "Startup probe errored: rpc error", "Startup probe errored"),
        ("Unhealthy", "Readiness probe failed: no", ""),
        ("BackOff", "Back-off restarting failed container", ""),
    ],
)
def test_reason_of_the_kubelet_for_a_stop_is_told(reason: str, message: str, words: str) -> None:
    death = {**evict(1)[0], "cause": "probe-failed"}
    for pod, expected in (("exp1-mnist-worker-1", words), ("exp1-mnist-worker-0", "")):
        events = (make_event("Pod", pod, reason, message), make_event("Pod", pod, reason, f"{message} again"))
        seen = Snapshot(
            now=NOW,
            sets=tuple(make_sets()),
            pods=tuple(make_pods()),
            records=(make_record(make_state("Running", incidents=[death])),),
            jobs=(make_job(),),
            events=events,
        )
        remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
        told = [each for each in remarks if each.startswith(f"the kubelet stopped the container of {pod}: ")]
        assert len(told) == bool(expected)
        assert expected in " ".join(told)


def test_a_hook_failure_that_was_recorded_is_told_once() -> None:
    error = "the kubelet stopped the container, because its postStart hook failed: exited with 3: no disk"
    death = {**evict(1)[0], "cause": "probe-failed", "error": error}
    seen = Snapshot(
        now=NOW,
        sets=tuple(make_sets()),
        pods=tuple(make_pods()),
        records=(make_record(make_state("Running", incidents=[death])),),
        jobs=(make_job(),),
        events=(make_event("Pod", "exp1-mnist-worker-1", "FailedPostStartHook", "PostStartHook failed"),),
    )
    report = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen)
    assert not any("postStart" in remark for remark in report.remarks)
    assert any(error in line for line in why_lines(report))


@pytest.mark.parametrize("wrong", [-1, "1E", [-1], {"a": -1}, None])
def test_fields_of_wrong_types_are_passed_over(wrong: Any) -> None:
    (chief, *others), job = make_sets(), make_job()
    chief["spec"]["template"]["spec"]["containers"] = wrong
    others[0]["spec"]["template"]["spec"]["containers"][0]["env"] = wrong
    job["status"]["conditions"] = wrong
    pods = make_pods()
    seen = Snapshot(now=NOW, sets=(chief, *others), pods=tuple(pods), jobs=(job,))
    found = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).pods
    assert found is not None
    assert len(found) == len(pods)
