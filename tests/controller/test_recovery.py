"""What the controller does to a release in trouble, or that people change: deletes, restarts, holds, explains."""

from __future__ import annotations

import json
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.controller.fake_api import RUN_SETTINGS, make_metadata, make_pod
from trainchart_runtime import causes

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


def test_pod_of_a_lost_node_is_force_deleted_if_values_allow_it(api, start, run_to_phase):
    start(settings={**RUN_SETTINGS, "forceDeleteLostPods": True})
    run_to_phase("Running")
    lost = make_pod("ps-0")
    lost["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    lost["status"]["conditions"] = [disruption]
    api.put_pod(lost)
    api.wait_for(lambda: api.deleted == [(f"{PS}-0", 0)], "the pod deleted by force")


def test_pod_gone_right_after_its_eviction_is_reported(api, start, run_to_phase):
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


OFTEN = """
import sys
from trainchart_controller import launchers
launchers.POLL_SECONDS = 0.1
exec(sys.argv[2])
"""
"""The controller of `start`, which asks the launchers ten times a second."""


@pytest.fixture
def say():
    """Answer for launchers at 127.0.0.2, .3, ...: by address, what each says; gives the port of all of them."""
    answers = {}
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.connection.getsockname()[0])
            asked.append(self.headers["Authorization"])
            self.send_response(200 if answer else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield answers, server.server_address[1]
    assert set(asked) <= {f"Bearer {uid}" for uid in ("uid-chief-0", "uid-ps-0", "uid-worker-0", "another")}
    server.shutdown()
    server.server_close()


def at(ip, pod, uid=""):
    """Return a pod with an address, and maybe another uid."""
    pod["status"]["podIP"] = ip
    pod["metadata"]["uid"] = uid or pod["metadata"]["uid"]
    return pod


def test_starts_in_a_former_pod_do_not_count_for_its_successor(api, start, run_to_phase, say):
    answers, port = say
    answers["127.0.0.2"] = {"attempt": 7, "step": 900}
    api.put_pod(at("127.0.0.2", make_pod("chief-0")))
    controller = start(flags=("-c", OFTEN), status_port=port)
    run_to_phase("Running")
    api.wait_for(lambda: (api.state()["progress"] or {}).get("attempt") == 7, "what the launcher says")
    with api.lock:
        api.remove_pod(f"{CHIEF}-0")
        api.put_pod(at("127.0.0.3", make_pod("chief-0"), "another"))
    api.wait_for(lambda: api.state()["progress"]["uid"] == "another", "the other pod noticed")
    progress = api.state()["progress"]
    assert (progress["attempt"], progress["bestStep"], progress["fruitlessRestarts"]) == (1, 900, 1)
    assert controller.process.poll() is None
    assert api.state()["phase"] == "Running"


def test_program_deaths_are_separate_incidents_in_order(api, start, run_to_phase, say):
    """Also of ps and workers, and though the leader, which only noticed, has told it first."""
    answers, port = say
    now = int(time.time())
    killed = {"cause": "killed", "exitCode": 137, "error": ""}
    echo = {"cause": "peer-lost", "exitCode": 1, "error": "UnavailableError: no ps"}
    answers["127.0.0.2"] = {"attempt": 2, "step": 9, "ended": 1, "failures": [{"number": 1, "at": now - 0.5, **echo}]}
    answers["127.0.0.3"] = {
        "attempt": 3,
        "ended": 2,
        "failures": [{"number": n, "at": now - 3.0 + n, **killed} for n in (1, 2)],
    }
    answers["127.0.0.4"] = {"attempt": 2, "ended": 1, "failures": [{"number": 1, "at": now - 0.4, **echo}]}
    for ip, task in (("127.0.0.2", "chief-0"), ("127.0.0.3", "ps-0"), ("127.0.0.4", "worker-0")):
        api.put_pod(at(ip, make_pod(task)))
    start(flags=("-c", OFTEN), status_port=port)
    run_to_phase("Running")
    api.wait_for(lambda: api.state()["roles"]["worker"]["failures"] == 1, "the worker's end counted")
    api.wait_for(lambda: len(api.state()["incidents"]) == 3, "every death told")
    told = [(each["pod"], each["cause"], each["at"]) for each in api.state()["incidents"]]
    assert told == [
        (f"{PS}-0", "killed", now - 2),
        (f"{PS}-0", "killed", now - 1),
        (f"{CHIEF}-0", "peer-lost", now - 0.5),
    ]
    assert {role: each["failures"] for role, each in api.state()["roles"].items()} == {"chief": 1, "ps": 2, "worker": 1}


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


def test_pods_that_show_a_change_by_hand_cost_one_attempt(api, start, run_to_phase):
    def renew(task, attempt):
        pod = {**make_pod(task), "metadata": make_metadata(task, f"{task}-{attempt}")}
        name = pod["metadata"]["name"].rpartition("-")[0]
        pod["metadata"]["labels"] = {"controller-revision-hash": api.revisions.get(name, f"{name}-1")}
        api.put_pod(pod)

    start()
    run_to_phase("Running")
    api.revisions[WORKER] = f"{WORKER}-2"
    with api.lock:
        api.remove_pod(f"{WORKER}-0")
        renew("worker-0", 1)
    again = {CHIEF: 1, WORKER: 2, PS: 1}
    api.wait_for(lambda: api.state()["phase"] == "Starting" and api.replicas == again, "another attempt")
    for task in ("chief-0", "worker-0", "worker-1", "ps-0"):
        renew(task, 2)
    api.wait_for(lambda: api.state()["phase"] == "Running", "Running")
    assert api.state()["attempt"] == 2


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
