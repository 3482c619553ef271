"""What the controller does to a release in trouble, or that people change: deletes, restarts, holds, explains."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from fake_api import RUN_SETTINGS, make_metadata, make_pod
from trainchart_controller.launchers import fetch_logs
from trainchart_runtime import causes
from trainchart_runtime.cluster import PARAMETER_SERVER, Cluster, Role, Task

CHIEF, WORKER, PS = "exp1-mnist-chief", "exp1-mnist-worker", "exp1-mnist-ps"


def make_waiting(task, restarts):
    """A pod whose container died and that the kubelet lets wait."""
    pod = make_pod(task)
    pod["status"]["containerStatuses"][0].update(
        restartCount=restarts,
        state={"waiting": {"reason": "CrashLoopBackOff"}},
        lastState={"terminated": {"exitCode": 137, "reason": "Error"}},
    )
    return pod


def test_a_pod_that_the_kubelet_lets_wait_is_deleted_once(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    api.put_pod(make_waiting("ps-0", 1))
    api.wait_for(lambda: api.deleted, "the pod deleted")
    api.put_pod({**make_pod("ps-0"), "metadata": make_metadata("ps-0", uid="new")})
    api.wait_for(lambda: api.state()["deaths"]["ps-0"] == {"uid": "new", "earlier": 2, "current": 0}, "counted on")
    assert api.deleted == [(f"{PS}-0", None)]
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    (incident,) = api.state()["incidents"]
    assert (incident["pod"], incident["cause"], incident["exitCode"]) == (f"{PS}-0", "killed", 137)


def test_a_run_of_which_no_pod_was_ever_made_ends(api, start):
    for role in (CHIEF, WORKER, PS):
        api.remove_pod(f"{role}-0")
    controller = start(settings={**RUN_SETTINGS, "startDeadlineSeconds": 1})
    assert controller.wait() == 42
    assert api.state()["phase"] == "Failed" and set(api.replicas.values()) == {0}


def test_a_pod_of_a_lost_node_is_deleted_by_force_where_the_values_allow_it(api, start, run_to_phase):
    start(settings={**RUN_SETTINGS, "forceDeleteLostPods": True})
    run_to_phase("Running")
    lost = make_pod("ps-0")
    lost["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    lost["status"]["conditions"] = [disruption]
    api.put_pod(lost)
    api.wait_for(lambda: api.deleted == [(f"{PS}-0", 0)], "the pod deleted by force")


def test_a_pod_that_is_gone_as_soon_as_it_is_evicted_is_told_all_the_same(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    evicted = make_pod("worker-1")
    evicted["status"] = {"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"}
    with api.lock:
        api.put_pod(evicted)
        api.remove_pod(f"{WORKER}-1")
        api.put_pod({**make_pod("worker-1"), "metadata": make_metadata("worker-1", uid="another")})
    api.wait_for(lambda: api.state()["incidents"], "an incident")
    (incident,) = api.state()["incidents"]
    assert (incident["cause"], incident["pod"]) == ("evicted", f"{WORKER}-1")
    assert controller.process.poll() is None


NEARBY = """
import os, sys
from trainchart_controller import launchers
from trainchart_runtime.cluster import Cluster
launchers.POLL_SECONDS = 0.1
Cluster.address = lambda self, task, port: os.environ["LAUNCHER"]
exec(sys.argv[2])
"""
"""The controller of `start`, which finds the launchers' answers at one address."""


@pytest.mark.parametrize("launchers", [json.dumps({"attempt": 7, "step": 900}).encode()], indirect=True)
def test_the_starts_in_a_former_pod_are_not_those_of_the_one_that_takes_its_place(api, start, run_to_phase, launchers):
    controller = start(flags=("-c", NEARBY), LAUNCHER=launchers.address(Task("chief", 0), launchers.status_port))
    run_to_phase("Running")
    api.wait_for(lambda: (api.state()["progress"] or {}).get("attempt") == 7, "what the launcher says")
    with api.lock:
        api.remove_pod(f"{CHIEF}-0")
        api.put_pod({**make_pod("chief-0"), "metadata": make_metadata("chief-0", uid="another")})
    api.wait_for(lambda: api.state()["progress"]["uid"] == "another", "the other pod noticed")
    progress = api.state()["progress"]
    assert (progress["attempt"], progress["bestStep"], progress["fruitlessRestarts"]) == (1, 900, 1)
    assert controller.process.poll() is None
    assert api.state()["phase"] == "Running"
    assert "Bearer uid-chief-0" in launchers.asked
    api.put_pod(make_pod("worker-1", causes.SYNTAX_ERROR))
    assert controller.wait() == 42
    assert {f"Bearer uid-{name}" for name in ("worker-0", "worker-1")} <= set(launchers.asked)


def test_an_upgrade_that_changes_pods_is_another_attempt(api, start, run_to_phase):
    start()
    run_to_phase("Running")
    # As Helm does: the set changes, and with the plan the controller.
    api.revisions[WORKER] = f"{WORKER}-2"
    api.put_plan("plan-2")
    start(TRAINCHART_PLAN_ID="plan-2")
    api.wait_for(lambda: api.state()["attempt"] == 2 and api.replicas == {CHIEF: 1, WORKER: 2, PS: 1}, "attempt 2")
    phases = [entry["phase"] for entry in api.state()["history"]]
    assert phases == ["Starting", "Running", "Restarting", "Starting"]


def test_a_run_is_held_and_goes_on(api, start, run_to_phase):
    start()
    run_to_phase("Running")
    api.put_plan("held")
    start(settings={**RUN_SETTINGS, "desiredState": "suspended"}, TRAINCHART_PLAN_ID="held")
    api.wait_for(lambda: set(api.replicas.values()) == {0}, "everything freed")
    assert api.state()["phase"] == "Suspended"
    api.put_plan("again")
    start(TRAINCHART_PLAN_ID="again")
    api.wait_for(lambda: api.replicas == {CHIEF: 1, WORKER: 2, PS: 1}, "scaled up again")


def test_why_a_pod_was_not_created_is_asked_of_the_events(api, start):
    api.warnings = [
        {
            "involvedObject": {"kind": "StatefulSet", "name": WORKER},
            "reason": "FailedCreate",
            "message": "is forbidden: exceeded quota: gpus",
            "lastTimestamp": "2026-01-01T00:00:00Z",
        }
    ]
    controller = start(settings={**RUN_SETTINGS, "startDeadlineSeconds": 5})
    assert controller.wait() == 42
    verdict = api.state()["verdict"]
    assert (verdict["cause"], verdict["pod"]) == ("quota-exceeded", f"{WORKER}-1")
    assert "exceeded quota: gpus" in verdict["error"]


class _Pods(Cluster):
    """A cluster all of whose pods answer at one address."""

    asked: list  # Authorization of each request.

    def address(self, task: Task, port: int) -> str:
        return f"127.0.0.1:{port}" if task.task_type != "ps" else "127.0.0.1:1"


@pytest.fixture
def launchers(request):
    log = getattr(request, "param", b"step 1\nstep 2\n")
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get("Authorization"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(log)

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    roles = {role: Role(f"exp1-{role}", number) for role, number in {"chief": 1, "worker": 2, "ps": 1}.items()}
    pods = _Pods(PARAMETER_SERVER, "exp1", 2222, server.server_address[1], roles)
    pods.asked = asked
    yield pods
    server.shutdown()
    server.server_close()


def test_the_last_lines_of_each_role_are_kept_and_who_is_silent_is_left_out(launchers):
    logs = fetch_logs(launchers, [Task("worker", 1)])
    assert set(logs) == {"exp1-chief-0", "exp1-worker-0", "exp1-worker-1"}
    assert logs["exp1-chief-0"]["lines"] == ["step 1", "step 2"]
    assert json.dumps(logs)


def test_each_pod_is_shown_its_own_uid(launchers):
    fetch_logs(launchers, uids={"exp1-chief-0": "uid-1", "exp1-worker-1": "uid-2"})
    assert sorted(launchers.asked, key=str) == ["Bearer uid-1", None]


@pytest.mark.parametrize("launchers", [("шаг\x1b\n" + 199 * ("ш" * 1999 + "\n") + "the error").encode()], indirect=True)
def test_of_long_logs_the_end_is_kept_and_the_record_has_room_for_it(launchers):
    lines = fetch_logs(launchers)["exp1-chief-0"]["lines"]
    assert lines[-1] == "the error" and len(lines) > 1
    assert len(json.dumps(lines)) <= 40_000
