"""What is said of init containers that keep pods from starting."""

from __future__ import annotations

from typing import Any

import pytest

from tests.small_cluster.cluster_objects import (
    NAMESPACE,
    NOW,
    make_pod,
    make_pods,
    make_record,
    make_sets,
    make_state,
    stamp,
)
from trainchart.cluster.diagnosis import diagnose
from trainchart.cluster.snapshot import Snapshot
from trainchart.reports.report import TrainingKey

OWN = {"metadata": {"name": "exp1-mnist"}}
LOOP = "until wget -qO- http://features:8080/ready; do sleep 2; done"


def make_waiting(task: str, *, seconds: float = 80, started: bool = True, **container: Any) -> dict[str, Any]:
    pod = make_pod(task)
    pod["spec"]["initContainers"] = [{"name": "fetch", **container}]
    running = {"running": {"startedAt": stamp(NOW - seconds)}}
    statuses = [{"name": "fetch", "state": running, "started": started}]
    pod["status"] |= {"containerStatuses": [], "initContainerStatuses": statuses}
    return pod


def find_remarks(*waiting: dict[str, Any], services: Any = (OWN,), **more: Any) -> list[str]:
    pods = make_pods(**dict(zip(("worker_1", "worker_0"), waiting, strict=False)))
    seen = Snapshot(now=NOW, sets=tuple(make_sets()), pods=tuple(pods), services=services, **more)
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    return [each for each in remarks if "not start" in each]


@pytest.mark.parametrize(
    ("seconds", "policy", "started", "words"),
    [
        (59, "", True, ""),
        (60, "", True, "its init container fetch has run for 1 min. To see what it waits for: kubectl logs "),
        (600, "Always", True, ""),
        (
            600,
            "Always",
            False,
            "its sidecar fetch has run for 10 min and has not started yet. To see what it waits for: ",
        ),
    ],
)
def test_init_container_that_goes_on_is_named(seconds: float, policy: str, started: bool, words: str) -> None:
    settings = {"restartPolicy": policy} if policy else {}
    remarks = find_remarks(make_waiting("worker-1", seconds=seconds, started=started, **settings))
    assert [words in each for each in remarks] == [True] * bool(words)


def test_last_line_or_command_of_an_init_container_is_shown() -> None:
    waits = make_waiting("worker-1", command=["sh", "-c", f"{LOOP} || curl http://me:pass@proxy/"])
    (remark,) = find_remarks(waits)
    assert f". Its command: sh -c {LOOP} || curl ***@proxy/." in remark
    (remark,) = find_remarks(make_waiting("worker-1", args=["--api-token=abc", "8080"]))
    assert ". Its command: --api-token=*** 8080." in remark
    (remark,) = find_remarks(waits, init_lines={"exp1-mnist-worker-1": "no answer of features"})
    assert ". Its last line: no answer of features." in remark and LOOP not in remark


def test_pods_that_wait_for_the_same_are_named_once() -> None:
    first, second = (make_waiting(task, command=["sh", "-c", LOOP]) for task in ("worker-1", "worker-0"))
    (remark,) = find_remarks(first, second)
    assert remark.startswith("exp1-mnist-worker-0, exp1-mnist-worker-1 do not start: their init container fetch has ")


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        (LOOP, "features"),
        ("nc -z db:5432", "db"),
        ("ping tiles.team-a.svc.cluster.local", "tiles"),
        ("ping exp1-mnist-ps-0.exp1-mnist.team-a.svc", ""),
        ("ping tiles.team-b.svc", ""),
        ("nc exp1-mnist:2222; nc localhost:80; nc cache:6379", ""),
        ("curl https://example.com:443 me:1234@host /data/file:10 $HOST:8080 registry/app:2024", ""),
    ],
)
def test_service_that_a_command_names_and_is_absent_is_named(command: str, absent: str) -> None:
    waits = make_waiting("worker-1", args=[command])
    waits["spec"]["hostAliases"] = [{"ip": "10.0.0.1", "hostnames": ["cache"]}]
    words = f" It names {absent}, and team-a has no such Service."
    assert [words in each for each in find_remarks(waits)] == [bool(absent)]
    assert not absent or "no such Service" not in find_remarks(waits, services=())[0]


@pytest.mark.parametrize(("name", "is_added"), [("fetch", False), ("other", True)])
def test_container_that_the_chart_does_not_have_is_told(name: str, is_added: bool) -> None:
    sets = make_sets()
    for each in sets:
        each["spec"]["template"]["spec"] |= {"containers": [{"name": "training"}], "initContainers": [{"name": name}]}
    seen = Snapshot(now=NOW, sets=tuple(sets), pods=tuple(make_pods(worker_1=make_waiting("worker-1"))))
    remarks = diagnose(TrainingKey(NAMESPACE, "exp1", "mnist"), seen).remarks
    (remark,) = [each for each in remarks if "not start" in each]
    assert ("The chart does not have this container" in remark) == is_added


def test_log_of_a_silent_init_container_is_not_named() -> None:
    waits = make_waiting("worker-1", command=["python3", "/code/prepare.py"])
    (remark,) = find_remarks(waits, init_lines={"exp1-mnist-worker-1": ""})
    assert ". Its command: python3 /code/prepare.py. It has printed nothing. To see what it waits for: its" in remark
    assert "kubectl logs" not in remark


@pytest.mark.parametrize(("phase", "is_told"), [("Starting", True), ("Running", False)])
def test_pod_that_ended_during_its_start_may_have_left_a_lock(phase: str, *, is_told: bool) -> None:
    death = {"at": NOW - 700, "pod": "exp1-mnist-worker-1", "node": "node1", "cause": "pod-deleted", "action": ""}
    history = [{"at": NOW - 900, "phase": phase, "message": ""}]
    record = make_record(make_state("Starting", incidents=[death], history=history))
    (remark,) = find_remarks(make_waiting("worker-1"), records=(record,))
    words = (
        "The pod exp1-mnist-worker-1 before this one ended at 2027-01-15 07:48:20 UTC (pod-deleted), during its start"
    )
    assert (words in remark) == is_told
