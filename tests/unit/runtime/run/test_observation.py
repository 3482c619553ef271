"""Pod objects as the API server gives them, reduced to what the rules need."""

from __future__ import annotations

import copy

import pytest

from trainchart_runtime import causes
from trainchart_runtime.cluster import PARAMETER_SERVER, Cluster, Role, Task
from trainchart_runtime.image_builds import Build
from trainchart_runtime.pod_problems import Problem, parse_time
from trainchart_runtime.run.observation import (
    ContainerEnd,
    LauncherReport,
    SetView,
    find_task,
    parse_pod,
    parse_report,
    parse_set,
)
from trainchart_runtime.run.problems import count_deaths, name_death, word_death
from trainchart_runtime.termination import Termination, dump_termination

CLUSTER = Cluster(PARAMETER_SERVER, "exp1", 2222, 2223, {"chief": Role("exp1-chief", 1), "worker": Role("exp1-w", 12)})
WORDS = Termination(causes.SUCCEEDED.name, 0, "worker", 11, "run-1", step=800, lines=("done",))
POD = {
    "metadata": {"name": "exp1-w-11", "uid": "0c6e"},
    "spec": {
        "nodeName": "node-2",
        "containers": [
            {"name": "proxy", "env": [{"name": "TRAINCHART_RUN_ID", "value": "no"}]},
            {"name": "training", "env": [{"name": "OTHER"}, {"name": "TRAINCHART_RUN_ID", "value": "run-1"}]},
        ],
    },
    "status": {
        "phase": "Running",
        "containerStatuses": [
            {"name": "proxy", "restartCount": 9, "state": {"waiting": {"reason": "CrashLoopBackOff"}}},
            {
                "name": "training",
                "restartCount": 1,
                "state": {"running": {"startedAt": "2026-11-21T10:00:00Z"}},
                "lastState": {
                    "terminated": {
                        "exitCode": 0,
                        "reason": "Completed",
                        "finishedAt": "2026-11-21T09:59:59Z",
                        "message": dump_termination(WORDS).decode(),
                    }
                },
            },
        ],
    },
}


def test_a_parked_pod():
    view = parse_pod(CLUSTER, POD)
    assert (view.name, view.task, view.uid, view.node) == ("exp1-w-11", Task("worker", 11), "0c6e", "node-2")
    assert (view.run_id, view.is_running, view.is_deleting, view.problem) == ("run-1", True, False, None)
    assert (view.restarts, view.deaths) == (1, 1)
    assert view.last_start == parse_time("2026-11-21T10:00:00Z")
    assert view.ends == (ContainerEnd(0, "Completed", "", WORDS, 1795255199.0),)
    assert view.ends[0].succeeded


@pytest.mark.parametrize("told", [-1e308, 0.0, 1795255000.0, 1795255201.0, 1e308])
def test_a_program_ends_when_its_container_does(told):
    """The program can write another time into the message, to be taken for the first that failed, or the last."""
    pod = copy.deepcopy(POD)
    ended = pod["status"]["containerStatuses"][1]["lastState"]["terminated"]
    ended["startedAt"] = "2026-11-21T09:59:00Z"
    ended["message"] = dump_termination(WORDS._replace(finished_at=told)).decode()
    (found,) = parse_pod(CLUSTER, pod).ends
    assert found.termination.finished_at == found.finished_at == 1795255199.0
    ended["message"] = dump_termination(WORDS._replace(finished_at=1795255199.5)).decode()
    (found,) = parse_pod(CLUSTER, pod).ends
    assert found.termination.finished_at == 1795255199.5


def test_build_of_the_training_container_is_kept():
    pod = copy.deepcopy(POD)
    pod["spec"]["containers"][1]["image"] = "ml/mnist:1"
    pod["status"]["containerStatuses"][1]["imageID"] = f"docker-pullable://ml/mnist@sha256:{'a' * 64}"
    assert parse_pod(CLUSTER, pod).build == Build("ml/mnist:1", "ml/mnist", "a" * 64)
    assert parse_pod(CLUSTER, POD).build is None


OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "exp1-w", "uid": "5e70", "controller": True}


@pytest.mark.parametrize(
    ("owners", "uid"),
    [
        ([OWNER], "5e70"),
        ([{**OWNER, "controller": False, "uid": "0"}, OWNER], "5e70"),
        ([{**OWNER, "kind": "ReplicaSet"}], ""),
        ([{**OWNER, "apiVersion": "example.com/v1"}], ""),
        ([{**OWNER, "controller": None}], ""),
        ([{**OWNER, "uid": "u" * 99_999}], "u" * 64),
        (None, ""),
    ],
)
def test_owner_is_the_stateful_set_that_controls_a_pod(owners, uid):
    metadata = {"name": "exp1-w-11", "ownerReferences": owners}
    assert parse_pod(CLUSTER, {**POD, "metadata": metadata}).owner_uid == uid


def test_newest_end_comes_first_with_foreign_text_as_detail():
    pod = copy.deepcopy(POD)
    training = pod["status"]["containerStatuses"][1]
    training["state"] = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "runc: no python3"}}
    view = parse_pod(CLUSTER, pod)
    assert [(end.exit_code, end.detail) for end in view.ends] == [(128, "runc: no python3"), (0, "")]
    assert (view.is_running, view.deaths) == (False, 2)


def test_of_a_killed_program_the_last_line_is_the_detail():
    pod = copy.deepcopy(POD)
    log = "ss 2.2109\nstep 18 loss 2.1\rstep 19 loss 2.0 Bearer tk-4411\n\n"
    pod["status"]["containerStatuses"][1]["state"] = {"terminated": {"exitCode": 137, "message": log}}
    assert parse_pod(CLUSTER, pod).ends[0].detail == "step 19 loss 2.0 Bearer ***"
    ended = "trainchart-launcher: worker-0: attempt 1 ended after 0.2 s, killed (signal 9)"
    pod["status"]["containerStatuses"][1]["state"]["terminated"]["message"] = f"step 1\n{ended}\nstep 1\n"
    assert parse_pod(CLUSTER, pod).ends[0].detail == ended
    python = "Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding"
    log = f"Python runtime state: core initialized\n{python}\n\nCurrent thread 0x7f (most recent call first):\n  <no>\n"
    pod["status"]["containerStatuses"][1]["state"]["terminated"]["message"] = log
    assert parse_pod(CLUSTER, pod).ends[0].detail == python


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            'Exec lifecycle hook ([sh -c echo no scratch disk >&2; exit 3]) for Container "training" in Pod '
            "\"exp1_team(31e2e862-1c90)\" failed - error: command 'sh -c echo no scratch disk >&2; exit 3' exited "
            'with 3: no scratch disk\n, message: "no scratch disk\\n"',
            "command 'sh -c echo no scratch disk >&2; exit 3' exited with 3: no scratch disk",
        ),
        ("Http lifecycle hook failed", "Http lifecycle hook failed"),
        ("", "PostStartHookError"),
        (None, "PostStartHookError"),
    ],
)
def test_a_failed_hook_is_why_a_container_was_stopped(message, words):
    item = copy.deepcopy(POD)
    training = item["status"]["containerStatuses"][1]
    training["state"] = {"waiting": {"reason": "PostStartHookError", "message": message}}
    training["lastState"]["terminated"] = {"exitCode": 137, "reason": "Error"}
    view = parse_pod(CLUSTER, item)
    assert (view.ends[0].failed_hook, view.is_backing_off, view.is_held) == (words, True, False)
    assert name_death(view.ends[0]) is causes.PROBE_FAILED
    assert word_death(view.ends[0]).endswith(f"because its postStart hook failed: {words}")


def test_why_a_container_does_not_run():
    waiting = {"name": "training", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
    view = parse_pod(CLUSTER, {"metadata": {"name": "exp1-chief-0"}, "status": {"containerStatuses": [waiting]}})
    assert view.problem == Problem("image-pull", "not found")
    assert (view.run_id, view.is_running, view.ends, view.deaths) == (None, False, (), 0)
    assert (view.is_held, view.is_backing_off) == (True, False)


def test_a_container_that_the_kubelet_lets_wait():
    waiting = {"name": "training", "restartCount": 2, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    labels = {"controller-revision-hash": "exp1-w-7d9"}
    pod = {"metadata": {"name": "exp1-w-0", "labels": labels}, "status": {"containerStatuses": [waiting]}}
    view = parse_pod(CLUSTER, pod)
    assert (view.is_backing_off, view.is_held, view.problem, view.revision) == (True, False, None, "exp1-w-7d9")


def test_a_pod_that_is_going():
    pod = {**POD, "metadata": {"name": "exp1-chief-0", "deletionTimestamp": "2026-11-21T10:00:00Z"}}
    view = parse_pod(CLUSTER, pod)
    assert (view.is_deleting, view.gone_by) == (True, 1795255200.0)
    assert not view.is_lost(view.gone_by + 29)
    assert view.is_lost(view.gone_by + 30)


@pytest.mark.parametrize(
    ("generation", "status", "view"),
    [
        (2, {"observedGeneration": 2, "updateRevision": "exp1-w-7d9"}, SetView(3, "exp1-w-7d9")),
        (2, {"observedGeneration": 1, "updateRevision": "exp1-w-old"}, SetView(3, "")),
        (1, {}, SetView(3, "")),
    ],
)
def test_a_set_has_a_revision_once_kubernetes_has_looked_at_it(generation, status, view):
    assert parse_set({"metadata": {"generation": generation}, "spec": {"replicas": 3}, "status": status}) == view


def test_a_set_without_replicas_leaves_the_number_out():
    assert parse_set({"spec": {}}).replicas == 0


def test_uid_of_a_set_is_kept():
    assert parse_set({"metadata": {"uid": "5e70"}}).uid == "5e70"


@pytest.mark.parametrize(
    ("manager", "owned", "who"),
    [
        ("kubectl", {"f:spec": {"f:replicas": {}}}, "kubectl"),
        ("trainchart-controller", {"f:spec": {"f:replicas": {}}}, ""),
        ("argocd", {"f:spec": {"f:replicas": {}, "f:selector": {}}}, ""),
        ("kubectl", {"f:spec": {"f:template": {}}}, ""),
        ("kubectl", None, ""),
    ],
)
def test_who_has_scaled_a_set_is_seen(manager, owned, who):
    fields = [{"manager": manager, "subresource": "scale", "fieldsV1": owned}]
    assert parse_set({"metadata": {"managedFields": fields}, "spec": {"replicas": 1}}).scaled_by == who


def test_what_the_leader_reports():
    document = {"attempt": 2, "ownFailures": 1, "step": 40, "metrics": {"loss": 0.5}, "lastCause": "killed"}
    assert parse_report(document) == LauncherReport(2, 0, 40, None, {"loss": 0.5})
    for junk in (None, [], "x", {}, {"attempt": "one"}, {"attempt": float("nan")}):
        assert parse_report(junk) is None


@pytest.mark.parametrize(
    ("variable", "run_id"),
    [({}, ""), ({"value": ""}, ""), ({"value": "7"}, "7"), ({"valueFrom": {"fieldRef": {}}}, None)],
)
def test_an_empty_run_id_is_an_identity_too(variable, run_id):
    environment = [{"name": "TRAINCHART_RUN_ID", **variable}]
    spec = {"containers": [{"name": "training", "env": environment}]}
    assert parse_pod(CLUSTER, {"metadata": {"name": "exp1-w-0"}, "spec": spec}).run_id == run_id


@pytest.mark.parametrize(
    ("name", "task"),
    [("exp1-w-0", Task("worker", 0)), ("exp1-controller-ab12c-x9", None), ("exp1-w", None), ("exp1-w-x", None),
     ("exp1-tensorboard-6d5f-0", None), ("exp1-w-²", None), ("", None)],
)  # fmt: skip
def test_only_training_pods_are_seen(name, task):
    assert find_task(CLUSTER, name) == task
    assert (parse_pod(CLUSTER, {"metadata": {"name": name}}) is None) == (task is None)


def test_whole_message_of_a_kubelet_is_read():
    pod = copy.deepcopy(POD)
    words = WORDS._replace(error="e" * 700, lines=("l" * 300,) * 20)
    ended = pod["status"]["containerStatuses"][1]["lastState"]["terminated"]
    ended["message"] = dump_termination(words).decode().ljust(4096)
    assert parse_pod(CLUSTER, pod).ends[0].termination.lines[-1] == "l" * 300
    ended["message"] = "first" + "\n" * 10_000 + "last"
    assert parse_pod(CLUSTER, pod).ends[0].detail == "first"


def test_message_of_another_run_is_ignored():
    """A program that writes them before it is killed could otherwise keep dying, and no death would count."""
    pod = copy.deepcopy(POD)
    words = WORDS._replace(cause=causes.PROGRAM_ERROR.name, exit_code=1, run_id="run-0")
    training = pod["status"]["containerStatuses"][1]
    training["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    training["lastState"]["terminated"] = {
        "exitCode": 137,
        "reason": "OOMKilled",
        "message": dump_termination(words).decode(),
    }
    view = parse_pod(CLUSTER, pod)
    assert view.ends == (ContainerEnd(137, "OOMKilled"),) and count_deaths(view) == 2


def test_texts_of_a_large_pod_are_cut():
    pod = copy.deepcopy(POD)
    pod["spec"]["containers"][1]["env"][1]["value"] = "r" * 1_000_000
    pod["spec"]["containers"][1]["resources"] = {"limits": {f"example.com/{number}": "1" for number in range(20_000)}}
    pod["spec"]["volumes"] = [{"persistentVolumeClaim": {"claimName": f"c-{number}"}} for number in range(20_000)]
    pod["spec"]["schedulingGates"] = [{"name": f"g-{number}"} for number in range(20_000)]
    pod["spec"]["tolerations"] = [{"key": f"t-{number}"} for number in range(20_000)]
    view = parse_pod(CLUSTER, pod)
    assert len(view.run_id) == 300 and len(view.settings) == 200
    assert (len(view.claims), len(view.gates), len(view.tolerations)) == (100, 100, 100)
