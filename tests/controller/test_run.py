"""Whole runs under the controller: from the first scale to its exit code, and what it leaves behind."""

from __future__ import annotations

import json
import signal

import pytest

from tests.controller.fake_api import JOB_PATH, RUN_SETTINGS, make_metadata, make_pod
from trainchart_controller.settings import read_settings
from trainchart_runtime import causes

CHIEF, WORKER, PS = "exp1-mnist-chief", "exp1-mnist-worker", "exp1-mnist-ps"

UNSELECTIVE = json.dumps({**RUN_SETTINGS, "selector": {}})


def writes(api):
    """Return what was written to the record and the sets, in this order."""
    paths = [path for method, path in api.requests if method == "PATCH" and "/jobs/" not in path]
    return [path.rpartition("statefulsets/")[2] for path in paths]


def test_a_run_from_start_to_success(api, start, run_to_phase):
    controller = start(patient=True)
    run_to_phase("Running")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED, step=800, metrics={"accuracy": 0.96}))
    assert controller.wait() == 0
    state = api.state()
    assert (state["phase"], state["runId"], state["roles"]["worker"]["wanted"]) == ("Succeeded", "run-1", 2)
    assert (state["verdict"]["step"], state["verdict"]["metrics"]) == (800, {"accuracy": 0.96})
    assert api.replicas == {CHIEF: 0, WORKER: 0, PS: 0}
    state_path = next(path for path in writes(api) if "configmaps" in path)
    scales = [path.partition("/")[0] for path in writes(api) if path != state_path]
    assert scales == [WORKER, CHIEF, WORKER, PS]
    assert writes(api)[0] == state_path, "recorded before anything is scaled"
    reasons = [event["reason"] for event in api.events]
    assert reasons == ["RunStarting", "RunRunning", "RunFinishing", "RunStopping", "RunSucceeded"]
    assert {event["involvedObject"]["uid"] for event in api.events} == {"5a3e"}
    assert "RunSucceeded: every pod is gone" in controller.log and "Traceback" not in controller.log


def test_failed_run_frees_everything_and_sets_its_exit_code(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    api.put_pod(make_pod("worker-1", causes.MODULE_MISSING, error="ModuleNotFoundError: No module named 'tensorboard'"))
    assert controller.wait() == 42
    verdict = api.state()["verdict"]
    assert (verdict["result"], verdict["cause"], verdict["pod"]) == ("Failed", "module-missing", f"{WORKER}-1")
    assert verdict["error"].startswith("ModuleNotFoundError")
    assert set(api.replicas.values()) == {0}
    assert [event["reason"] for event in api.events if event["type"] == "Warning"] == ["RunStopping", "RunFailed"]


def test_verdict_is_recorded_even_if_scaling_fails(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    api.fail("PATCH", "/scale", 403, times=3)
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    assert api.state()["phase"] == "Succeeded" and set(api.replicas.values()) == {0}
    reasons = [event["reason"] for event in api.events]
    assert reasons[-3:] == ["RunFinishing", "RunStopping", "RunSucceeded"], "told once, after the scale"
    assert controller.log.count(" 403 ") == 1, "one line for one kind of trouble"


FOREIGN_OWNERS = {
    "none": [],
    "a set of that name before": [{"uid": "uid-of-an-earlier-set"}],
    "another role's set": [{"uid": "uid-exp1-mnist-worker"}],
    "not its controller": [{"uid": "uid-exp1-mnist-chief", "controller": False}],
    "another kind": [{"uid": "uid-exp1-mnist-chief", "kind": "ReplicaSet"}],
}


@pytest.mark.parametrize("owners", FOREIGN_OWNERS.values(), ids=FOREIGN_OWNERS)
def test_pod_that_no_set_made_decides_nothing(api, start, run_to_phase, owners):
    controller = start()
    run_to_phase("Running")
    forged = make_pod("chief-0", causes.SUCCEEDED)
    known = forged["metadata"]["ownerReferences"][0]
    forged["metadata"] = {
        **make_metadata("chief-0", uid="forged"),
        "ownerReferences": [known | each for each in owners],
    }
    with api.lock:
        api.remove_pod(f"{CHIEF}-0")
        api.put_pod(forged)
        api.remove_pod(f"{CHIEF}-0")
        api.put_pod(forged)
    api.wait_for(lambda: api.state()["roles"]["chief"]["running"] == 0, "the chief counted as gone")
    api.put_pod(make_pod("worker-1", causes.SYNTAX_ERROR))
    assert controller.wait() == 42
    assert (api.state()["verdict"]["result"], api.deleted) == ("Failed", [])
    assert controller.log.count(f"pod {CHIEF}-0 is ignored") == 1


def test_pods_that_do_not_go_are_waited_for(api, start, run_to_phase):
    api.removes_pods = False
    controller = start()
    run_to_phase("Running")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    api.wait_for(lambda: set(api.replicas.values()) == {0}, "scaled to 0")
    for pod in (f"{CHIEF}-0", f"{WORKER}-0", f"{WORKER}-1"):
        api.remove_pod(pod)
    assert api.state()["phase"] == "Stopping" and controller.process.poll() is None
    api.remove_pod(f"{PS}-0")
    assert controller.wait() == 0


@pytest.mark.parametrize("phase", ["Starting", "Running"])
def test_a_killed_controller_is_followed_by_one_that_goes_on(api, start, run_to_phase, phase):
    first = start()
    api.wait_for(lambda: api.state().get("phase") == "Starting", "started")
    if phase == "Running":
        run_to_phase("Running")
    first.process.kill()
    first.wait()
    since = api.state()["since"]
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    second = start()
    assert second.wait() == 0
    assert api.state()["phase"] == "Succeeded" and api.state()["attempt"] == 1
    assert api.state()["history"][0]["at"] <= since
    assert [entry["phase"] for entry in api.state()["history"]].count("Starting") == 1


@pytest.mark.parametrize("cause", [causes.SUCCEEDED, causes.SYNTAX_ERROR], ids=lambda cause: cause.name)
def test_a_finished_run_stays_finished_through_an_upgrade(api, start, cause):
    api.put_pod(make_pod("chief-0", cause))
    code = start().wait()
    verdict = api.state()["verdict"]
    api.replicas[WORKER] = 1
    api.put_pod(make_pod("worker-0"))
    assert start().wait() == code == (0 if cause is causes.SUCCEEDED else 42)
    assert api.replicas[WORKER] == 0 and api.state()["verdict"] == verdict


def test_controller_may_crash_often_and_its_job_fails_with_run(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    assert api.backoff_limits == [1000]
    api.failed_controllers = 3
    api.put_pod(make_pod("chief-0", causes.SYNTAX_ERROR))
    assert controller.wait() == 42
    # One failure more than there were, and not fewer: that would end the Job before this controller has ended.
    assert api.backoff_limits[-1] == 3


def test_the_job_of_a_run_that_succeeds_keeps_its_patience(api, start):
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert start().wait() == 0
    assert api.backoff_limits == [1000]


@pytest.mark.parametrize("variables", [{}, {"TRAINCHART_JOB_NAME": ""}], ids=["forbidden", "not named by the chart"])
def test_controller_that_cannot_patch_its_job_does_the_rest(api, start, variables):
    api.fail("PATCH", "/jobs/", 403, times=99)
    api.put_pod(make_pod("chief-0", causes.SYNTAX_ERROR))
    controller = start(**variables)
    assert controller.wait() == 42
    assert api.state()["phase"] == "Failed" and api.backoff_limits == []
    assert ("changing the controller's Job" in controller.log) is (not variables)


def test_a_new_run_id_starts_a_new_run(api, start):
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert start().wait() == 0
    api.put_plan("plan-2")
    start(TRAINCHART_RUN_ID="run-2", TRAINCHART_PLAN_ID="plan-2")
    api.wait_for(lambda: api.replicas == {CHIEF: 1, WORKER: 2, PS: 1}, "scaled up")
    assert (api.state()["runId"], api.state()["phase"], api.state()["verdict"]) == ("run-2", "Starting", None)


def test_a_wiped_record_starts_nothing(api, start):
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert start().wait() == 0
    api.put_state("")
    second = start()
    assert second.wait() == 0
    assert api.state()["phase"] == "StateLost" and set(api.replicas.values()) == {0}
    assert "RunStateLost: the record of this run was deleted" in second.log


def test_a_damaged_record_stops_everything_until_it_is_repaired(api, start, run_to_phase):
    first = start()
    run_to_phase("Running")
    first.process.kill()
    first.wait()
    good = api.state()
    api.put_state(json.dumps({**good, "version": 9}))
    second = start()
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    api.wait_for(lambda: api.events[-1]["reason"] == "RunStateUnusable", "told")
    assert set(api.replicas.values()) == {1, 2} and "its version is 9" in api.events[-1]["message"]
    api.put_state(json.dumps(good))
    assert second.wait() == 0


def test_controller_of_a_superseded_plan_exits_without_acting(api, start, run_to_phase):
    old = start()
    run_to_phase("Running")
    api.put_plan("plan-2")
    before = dict(api.replicas)
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert old.wait() == 0
    assert api.replicas == before and api.state()["phase"] == "Running"
    assert "plan plan-2 has replaced plan plan-1" in old.log


def start_and_replace(api, start, run_to_phase, seconds):
    """Return a controller that has run, and now waits for a rollback to its plan, for so many seconds."""
    old = start(ROLLBACK=seconds)
    run_to_phase("Running")
    api.put_plan("plan-2")
    api.wait_for(lambda: "does nothing unless a rollback returns to its plan" in old.log, "told")
    return old


def test_controller_continues_after_a_rollback_to_its_plan(api, start, run_to_phase):
    old = start_and_replace(api, start, run_to_phase, "600")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert api.state()["phase"] == "Running" and old.process.poll() is None
    api.put_plan("plan-1")
    assert old.wait() == 0
    assert api.state()["phase"] == "Succeeded"
    assert "the release has this controller's plan again, so the controller continues" in old.log


def test_controller_that_starts_with_a_replaced_plan_waits_too(api, start, run_to_phase):
    api.put_plan("plan-2")
    early = start(ROLLBACK="600")
    api.wait_for(lambda: "does nothing unless a rollback returns to its plan" in early.log, "told")
    api.put_plan("plan-1")
    run_to_phase("Running")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert early.wait() == 0
    assert "Traceback" not in early.log


def test_controller_whose_release_goes_away_meanwhile_ends(api, start, run_to_phase):
    old = start_and_replace(api, start, run_to_phase, "600")
    api.delete_state()
    api.job_uid = ""
    assert old.wait() == 0


def test_a_record_that_was_deleted_comes_back_with_a_rollback(api, start, run_to_phase):
    old = start_and_replace(api, start, run_to_phase, "20")
    api.delete_state()
    seen = len(api.requests)
    api.wait_for(lambda: ("GET", JOB_PATH) in api.requests[seen:], "the Job is read")
    assert old.process.poll() is None
    api.put_chart_record("plan-1")
    api.wait_for(lambda: api.state().get("phase") == "Running", "the record is restored")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert old.wait() == 0
    assert api.state()["phase"] == "Succeeded"


@pytest.mark.parametrize("text", ["", "{"], ids=["empty", "damaged"])
def test_a_controller_without_its_job_restores_no_record(api, start, run_to_phase, text):
    old = start(ROLLBACK="600")
    run_to_phase("Running")
    api.job_uid = ""
    api.put_state(text)
    assert old.wait() == 0
    assert "this controller's Job is gone, so the controller has nothing left to do" in old.log
    assert not api.state()


def test_a_record_is_restored_where_the_job_cannot_be_changed(api, start, run_to_phase):
    api.fail("PATCH", "/jobs/", 403, times=99)
    old = start(ROLLBACK="600")
    run_to_phase("Running")
    api.put_state("")
    api.wait_for(lambda: api.state().get("phase") == "Running", "the record is restored")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert old.wait() == 0


def test_a_second_controller_of_the_same_run_does_no_harm(api, start, run_to_phase):
    first, second = start(), start()
    api.wait_for(lambda: api.state() and api.replicas["exp1-mnist-worker"] == 2, "workers scaled")
    api.put_pod(make_pod("worker-1"))
    api.wait_for(lambda: api.state()["phase"] == "Running", "running")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert (first.wait(), second.wait()) == (0, 0)
    assert [entry["phase"] for entry in api.state()["history"]] == [
        "Starting", "Running", "Finishing", "Stopping", "Succeeded",
    ]  # fmt: skip


def test_sigterm_ends_it_at_once_and_changes_nothing(api, start, run_to_phase):
    controller = start(patient=True)
    run_to_phase("Running")
    before = (dict(api.replicas), api.state(), len(writes(api)))
    controller.process.send_signal(signal.SIGTERM)
    assert controller.wait() == 143
    assert (dict(api.replicas), api.state(), len(writes(api))) == before


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("TRAINCHART_NAMESPACE", "", "the variable TRAINCHART_NAMESPACE is not set"),
        ("TRAINCHART_CLUSTER_FILE", "/none/cluster.json", "cannot read /none/cluster.json"),
        ("TRAINCHART_RUN_SETTINGS", "{", "TRAINCHART_RUN_SETTINGS is not JSON"),
        ("TRAINCHART_RUN_SETTINGS", "{}", "needs 'maxRestarts' as a number of at least 0, not None"),
        ("TRAINCHART_RUN_SETTINGS", UNSELECTIVE, "needs 'selector' as an object of labels"),
        (
            "TRAINCHART_RUN_SETTINGS",
            json.dumps({**RUN_SETTINGS, "desiredState": "paused"}),
            "needs 'desiredState' as one of running, suspended, stopped, not 'paused'",
        ),
    ],
)
def test_a_chart_that_does_not_fit_is_explained(start, api, variable, value, problem):
    controller = start(patient=True, **{variable: value})
    assert controller.wait() == 78
    assert problem in controller.log and api.requests == []


def test_releases_that_block_each_other_give_up_one_by_one(tmp_path):
    roles = {"chief": {"name": "exp1-mnist-chief", "replicas": 1}}
    cluster = {"strategy": "parameter-server", "service": "exp1", "port": 2222, "statusPort": 2223, "roles": roles}
    (tmp_path / "cluster.json").write_text(json.dumps(cluster))

    def read(release):
        environ = {
            "TRAINCHART_CLUSTER_FILE": str(tmp_path / "cluster.json"),
            "TRAINCHART_RUN_SETTINGS": json.dumps(RUN_SETTINGS),
            "TRAINCHART_PLAN_ID": "p1",
            "TRAINCHART_RELEASE": release,
            "TRAINCHART_NAMESPACE": "team-a",
            "TRAINCHART_POD_NAME": "c",
            "TRAINCHART_STATE_NAME": "s",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": "1",
        }
        return read_settings(environ).plan.start_deadline_seconds

    deadlines = [read(f"exp-{number}") for number in range(20)]
    assert len(set(deadlines)) == 20
    assert all(1800 <= each <= 1.25 * 1800 for each in deadlines)
    assert read("exp-1") == deadlines[1]
