"""API servers that are away, slow, forbidding or forgetful, and connections that break or fall silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.controller.fake_api import FakeApi, make_pod
from trainchart_controller.api import Refused
from trainchart_controller.backoff import LONGEST_ASKED_SECONDS, Backoff
from trainchart_launcher.bundle import build_controller
from trainchart_runtime import causes

PS = "exp1-mnist-ps"

SOURCES = Path(__file__).parents[2] / "training-images"


def finish(api, controller):
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    assert api.state()["phase"] == "Succeeded" and set(api.replicas.values()) == {0}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/pods?", 401),
        ("/pods?", 403),
        ("/configmaps/", 429),
        ("/configmaps/", 403),
        ("/statefulsets/", 500),
        ("/statefulsets/", 503),
    ],
)
def test_an_api_server_that_refuses_for_a_while_only_delays(api, start, run_to_phase, path, status):
    api.fail("GET", path, status, times=3, **({"Retry_After": "0"} if status == 429 else {}))
    controller = start()
    run_to_phase("Running")
    finish(api, controller)
    assert controller.log.count(f" {status} ") == 1 and "works again" in controller.log


def test_controller_whose_token_stays_refused_is_replaced(api, start, run_to_phase):
    first = start()
    run_to_phase("Running")
    old = api.token
    with api.lock:
        api.token = "of the new ServiceAccount"
        api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert first.wait() == 77
    assert "401" in first.log and api.state()["phase"] == "Running" and old != api.token
    api.rotate_token(api.token)
    assert start().wait() == 0
    assert api.state()["phase"] == "Succeeded"


def test_a_throttling_server_is_given_the_time_it_asks_for(api, start):
    api.fail("GET", "/configmaps/", 429, times=1, Retry_After="7")
    start()
    api.wait_for(lambda: api.seen("GET", "/pods") >= 2 and api.seen("GET", "/configmaps/"), "watching")
    assert api.seen("GET", "/configmaps/") == 1


def test_a_server_that_asks_for_years_is_asked_again():
    backoff = Backoff()
    assert backoff.fail(Refused("busy", 503, retry_after=1e9)) == LONGEST_ASKED_SECONDS
    assert backoff.fail(Refused("busy", 503, retry_after=7)) == 7


@pytest.mark.parametrize("asked", ["\u00b2", "soon", "-1", "1.5"])
def test_a_wait_that_is_no_number_is_none(api, start, run_to_phase, asked):
    api.fail("GET", "/configmaps/", 429, times=1, Retry_After=asked)
    controller = start()
    run_to_phase("Running")
    finish(api, controller)


def test_events_that_may_not_be_created_delay_nothing(api, start, run_to_phase):
    api.fail("POST", "/events", 403, times=1000)
    controller = start()
    run_to_phase("Running")
    finish(api, controller)
    assert api.events == [] and controller.log.count("creating Events") == 1


def test_events_that_cannot_be_read_delay_nothing(api, start):
    api.fail("GET", "/events", 503, times=1000)
    controller = start()
    api.wait_for(lambda: api.seen("GET", "/events"), "asked why a worker is missing")
    finish(api, controller)
    assert controller.log.count("reading Events") == 1


def test_a_watch_that_breaks_in_an_event_is_followed_by_a_list(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    lists = api.seen("GET", "limit=")
    api.cut_watches_in_the_middle()
    api.wait_for(lambda: api.seen("GET", "limit=") > lists, "listed again")
    finish(api, controller)
    assert "watching pods: the watch broke off: IncompleteRead" in controller.log


def test_nothing_is_missed_by_a_watch_that_breaks_between_events(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    with api.lock:
        api.break_watches()
        api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    assert api.state()["phase"] == "Succeeded"


def test_a_watch_that_ends_in_order_goes_on_where_it_was(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    lists, watches = api.seen("GET", "limit="), api.seen("GET", "watch=1")
    api.end_watches()
    api.wait_for(lambda: api.seen("GET", "watch=1") > watches and api.open_watches() == 1, "watching again")
    assert api.seen("GET", "limit=") == lists
    finish(api, controller)


def test_a_version_that_is_too_old_is_followed_by_a_list(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    lists = api.seen("GET", "limit=")
    with api.lock:
        api.expire_versions()
        api._watches.clear()
        api.lock.notify_all()
    api.wait_for(lambda: api.seen("GET", "limit=") > lists and api.open_watches() == 1, "listed again")
    finish(api, controller)


def test_a_connection_that_falls_silent_is_noticed(api, start, run_to_phase):
    controller = start(SILENCE="2")
    run_to_phase("Running")
    api.is_mute = True
    finish(api, controller)


def test_a_record_that_somebody_else_has_written_is_read_again(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    reads = api.seen("GET", "/configmaps/")
    api.fail("PATCH", "/configmaps/", 409, times=2)
    finish(api, controller)
    # On a busy machine, a look that took long is followed by another one.
    assert api.seen("GET", "/configmaps/") >= reads + 2


def test_a_new_token_is_used_at_once(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    api.wait_for(lambda: api.events[-1:] and api.events[-1]["reason"] == "RunRunning", "everything said")
    api.rotate_token("second-token")
    finish(api, controller)
    assert " 401 " not in controller.log


def test_many_pods_are_listed_in_pages(api, start, run_to_phase):
    api.page_size = 2
    controller = start()
    run_to_phase("Running")
    assert api.seen("GET", "continue=2") >= 1
    finish(api, controller)


def test_a_server_with_a_foreign_certificate_gets_no_token(api, start, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    FakeApi(other)
    (api.folder / "ca.crt").write_bytes((other / "ca.crt").read_bytes())
    controller = start()
    while "CERTIFICATE_VERIFY_FAILED" not in controller.log:
        assert controller.process.poll() is None
    assert api.requests == []


def test_a_server_that_was_away_at_the_start_is_waited_for(api, start):
    port = api.port
    controller = start(KUBERNETES_SERVICE_PORT="1")
    while "cannot connect to 127.0.0.1:1" not in controller.log:
        assert controller.process.poll() is None
    assert port != 1 and controller.process.poll() is None


def test_controller_that_cannot_read_any_more_is_replaced(api, start, run_to_phase):
    controller = start(patient=True)
    run_to_phase("Running")
    api.put_pod({"metadata": {"name": "exp1-mnist-worker-1"}, "status": "not what Kubernetes promises"})
    assert controller.wait() == 70
    assert "the watch of the pods has failed" in controller.log


def test_replicas_that_vanish_with_their_pods_are_put_right(api, start, run_to_phase):
    start()
    run_to_phase("Running")
    api.replicas["exp1-mnist-worker"] = 1
    api.remove_pod("exp1-mnist-worker-1")
    api.wait_for(lambda: api.replicas["exp1-mnist-worker"] == 2, "scaled again")


def test_the_zipapp_is_the_same_every_time(controller_pyz):
    again = build_controller(SOURCES / "controller", SOURCES / "runtime")
    assert again == controller_pyz.read_bytes() and again.startswith(b"#!/usr/bin/env python3\n")


def test_an_immutable_record_is_told_with_its_cure(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    api.make_state_immutable()
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    api.wait_for(lambda: [each for each in api.events if each["reason"] == "RunStateUnusable"], "an Event")
    (event,) = [each for each in api.events if each["reason"] == "RunStateUnusable"]
    assert "exp1-mnist-state is immutable: delete it" in event["message"]
    api.delete_state()
    assert controller.wait() == 0
    assert api.state()["phase"] == "Succeeded"


@pytest.mark.parametrize("harm", ["deleted", "damaged", "emptied", "without a leader"])
def test_record_damaged_while_controller_runs_is_rewritten(api, start, run_to_phase, harm):
    controller = start()
    run_to_phase("Running")
    before = api.state()
    if harm == "deleted":
        api.delete_state()
    else:
        roles = {f"x{number}": {"wanted": 1} for number in range(1000)}
        roles |= {role: {"wanted": 0} for role in before["roles"]}
        leaderless = json.dumps({**before, "roles": roles})
        api.put_state({"damaged": "{", "emptied": "", "without a leader": leaderless}[harm])
    api.wait_for(lambda: api.seen("APPLY", "/configmaps/"), "the record made anew")
    api.wait_for(lambda: api.state() == before, "the record as it was")
    api.wait_for(lambda: [event for event in api.events if event["reason"] == "RunRecordRestored"], "an Event")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    assert api.state()["phase"] == "Succeeded"


def test_record_that_others_fill_is_written_without_their_keys(api, start, run_to_phase):
    controller = start()
    run_to_phase("Running")
    api.fill_state()
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    assert api.state()["phase"] == "Succeeded"
    assert "junk" not in api.record_keys()


@pytest.mark.parametrize("job_uid", ["", "of-another-release"])
def test_a_controller_whose_release_is_removed_makes_no_record(api, start, run_to_phase, job_uid):
    controller = start()
    run_to_phase("Running")
    with api.lock:
        api.job_uid = job_uid
        api.delete_state()
    assert controller.wait() == 0
    assert not api.state()


@pytest.mark.parametrize(
    ("change", "words"),
    [({"app.kubernetes.io/version": "2"}, "no pod has app.kubernetes.io/version=2"), ({}, "nothing")],
)
def test_a_service_that_finds_no_pod_any_more_is_named(api, start, run_to_phase, change, words):
    start()
    run_to_phase("Running")
    with api.lock:
        api.service_selector = {**api.service_selector, **change} if change else {}
    api.wait_for(lambda: api.state()["problems"], "named")
    [problem] = api.state()["problems"]
    assert (problem["subject"], problem["cause"]) == ("Service exp1-mnist", "object-missing")
    assert problem["message"].endswith(words)


@pytest.mark.parametrize("status", [403, 422])
def test_a_scale_that_a_policy_refuses_is_recorded(api, start, run_to_phase, status):
    controller = start()
    run_to_phase("Running")
    api.fail("PATCH", "/scale", status, times=10_000)
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    api.wait_for(lambda: api.state()["problems"], "named")
    [problem] = api.state()["problems"]
    assert (problem["subject"], problem["cause"]) == ("StatefulSet exp1-mnist-chief", "change-refused")
    assert f"/scale: {status} " in problem["message"]
    assert api.state()["phase"] == "Stopping"
    with api.lock:
        api.faults.clear()
    assert controller.wait() == 0
    assert (api.state()["phase"], api.state()["problems"]) == ("Succeeded", [])


def test_deleted_objects_are_named_until_they_are_back(api, start, run_to_phase):
    start()
    run_to_phase("Running")
    with api.lock:
        api.has_service = False
        replicas = api.replicas.pop(PS)
        api.remove_pod(f"{PS}-0")
    api.wait_for(lambda: len(api.state()["problems"]) == 2, "both named")
    named = {each["subject"]: (each["cause"], each["message"]) for each in api.state()["problems"]}
    assert named == {
        "Service exp1-mnist": ("object-missing", "it was deleted"),
        f"{PS}-0": ("object-missing", f"its StatefulSet {PS} is gone"),
    }
    with api.lock:
        api.has_service, api.replicas[PS] = True, replicas
        api.put_pod(make_pod("ps-0"))
    api.wait_for(lambda: not api.state()["problems"], "nothing missing")
