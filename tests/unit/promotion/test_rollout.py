"""How far a rollout is, when it has failed, and which requests count as failed."""

from __future__ import annotations

from typing import Any

import pytest

from trainchart.promotion.record import Model
from trainchart.promotion.rollout import Requests, count_requests, read_rollout

MODEL = Model(41, "sha256:abc", "exp-7-mnist-checkpoints", "saved_model")
OLD = Model(40, "sha256:abc", "exp-7-mnist-checkpoints", "saved_model")


def template(model: Model) -> dict[str, Any]:
    volumes = [{"name": "models", "emptyDir": {}}]
    volumes += [{"name": "source", "persistentVolumeClaim": {"claimName": model.claim}}] if model.claim else []
    annotations = {"trainchart/version": str(model.version), "trainchart/content": model.content}
    return {"metadata": {"annotations": annotations}, "spec": {"volumes": volumes}}


def deployment(model: Model = MODEL, generation: int = 3, **status: Any) -> dict[str, Any]:
    numbers = {"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, **status}
    return {
        "metadata": {"name": "digits", "generation": generation},
        "spec": {"replicas": 2, "template": template(model)},
        "status": numbers,
    }


def pod(name: str, model: Model = MODEL, *, ready: bool = True, **status: Any) -> dict[str, Any]:
    made = template(model)
    made["metadata"] = {**made["metadata"], "name": name}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {**made, "status": {"phase": "Running" if ready else "Pending", "conditions": conditions, **status}}


def test_a_rollout_is_done_when_only_new_pods_are_left() -> None:
    done = read_rollout(deployment(), [pod("a"), pod("b")], MODEL)
    assert (done.is_done, done.ready, done.pods, done.failure) == (True, 2, ("a", "b"), "")
    assert not read_rollout(deployment(replicas=3), [pod("a"), pod("b")], MODEL).is_done
    # The Deployment's controller has not seen the upgrade yet.
    assert not read_rollout(deployment(generation=4), [pod("a"), pod("b")], MODEL).is_done
    assert not read_rollout(deployment(OLD), [pod("a", OLD), pod("b", OLD)], MODEL).is_done


def test_pods_of_another_claim_are_not_the_new_ones() -> None:
    elsewhere = Model(MODEL.version, MODEL.content, "exp-8-mnist-checkpoints", "saved_model")
    found = read_rollout(deployment(updatedReplicas=1), [pod("a"), pod("b", elsewhere), pod("c", OLD)], MODEL)
    assert (found.pods, found.ready, found.is_done) == (("a",), 1, False)
    assert read_rollout(deployment(), [pod("a", elsewhere)], Model(41, "sha256:abc", "", "gs://b/x")).pods == ()


@pytest.mark.parametrize("kind", ["initContainerStatuses", "containerStatuses"])
def test_a_container_that_was_started_again_is_a_failure(kind: str) -> None:
    last = {"terminated": {"exitCode": 1, "message": "trace\nerror: the files differ from SHA256SUMS\n"}}
    status = {"name": "fetch", "restartCount": 1, "lastState": last, "state": {"waiting": {"reason": "x"}}}
    pods = [pod("a", OLD), pod("b", ready=False, **{kind: [status]})]
    found = read_rollout(deployment(updatedReplicas=1), pods, MODEL)
    assert found.failure == "fetch of b ended with exit code 1: error: the files differ from SHA256SUMS"
    # Of the pods before, it says nothing about the new model.
    assert not read_rollout(deployment(), [pod("a", OLD, **{kind: [status]}), pod("b")], MODEL).failure


def test_the_deadline_of_the_deployment_is_a_failure() -> None:
    late = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"}
    assert read_rollout(deployment(updatedReplicas=1, conditions=[late]), [], MODEL).failure == "timed out"
    # It may be left from the rollout before.
    assert not read_rollout(deployment(generation=4, conditions=[late]), [], MODEL).failure


def test_what_a_pod_waits_for_is_named() -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes fit"}
    found = read_rollout(deployment(), [pod("a", ready=False, conditions=[scheduled])], MODEL)
    assert found.waiting == "unschedulable: 0/2 nodes fit"


PAGE = """\
# TYPE trainchart_serving_requests_total counter
trainchart_serving_requests_total{protocol="rest",method="predict",code="OK"} 97.0
trainchart_serving_requests_total{code="INTERNAL",method="predict",protocol="grpc"} 2.0
trainchart_serving_requests_total{protocol="rest",method="predict",code="INVALID_ARGUMENT"} 1.0
trainchart_serving_request_duration_seconds_count{protocol="rest",method="predict"} 100.0
:tensorflow:serving:request_count{model_name="digits",status="UNAVAILABLE"} 3
"""


def test_requests_that_the_server_failed_are_counted() -> None:
    assert count_requests(PAGE) == Requests(103, 5)
    assert Requests(100, 1).error_rate == 0.01
    assert (Requests() + Requests(2, 1)).error_rate == 0.5
    assert count_requests("").error_rate == 0.0


@pytest.mark.parametrize("count", ["-1", "NaN", "+Inf", "-Inf", "1e308", "9.3e18", "nonsense"])
def test_a_pod_with_an_impossible_count_is_unknown(count: str) -> None:
    line = f'trainchart_serving_requests_total{{code="INTERNAL"}} {count}\n'
    assert count_requests(PAGE + line) == Requests(unknown=1)
    assert Requests(4, 1) + Requests(unknown=1) == Requests(4, 1, unknown=1)
