"""The run controller and the Workload of its run: made once, followed, given back, and never lost."""

from __future__ import annotations

import pytest

from tests.controller.fake_api import RUN_SETTINGS, make_pod
from trainchart_runtime import causes
from trainchart_runtime.contract import QUEUE_GATE

SETTINGS = {**RUN_SETTINGS, "queue": "team-a", "queuePriorityClass": "", "workload": "exp1-mnist-queue"}
FLAVOR = {"nodeLabels": {"pool": "a100"}, "tolerations": [{"key": "gpu", "operator": "Exists"}]}
TASKS = ("chief-0", "worker-0", "worker-1", "ps-0")


def gate(task):
    pod = make_pod(task)
    pod["status"] = {"phase": "Pending"}
    pod["spec"].update(nodeName="", schedulingGates=[{"name": QUEUE_GATE}], tolerations=[{"key": "a"}])
    return pod


@pytest.fixture
def queued(api, start):
    """Start a controller whose run waits, with the pods that Kubernetes made before it came."""

    def queued(**settings):
        with api.lock:
            for pod in ("chief-0", "worker-0", "ps-0"):
                api.put_pod(gate(pod))
        controller = start(settings={**SETTINGS, **settings})
        api.wait_for(lambda: api.queue.workload and set(api.replicas.values()) == {0}, "waiting")
        return controller

    return queued


def start_pods(api, flavor="default"):
    """Admit the run, let its pods come, and wait until it runs."""
    api.queue.admit(flavor)
    api.wait_for(lambda: api.replicas["exp1-mnist-worker"] == 2, "scaled up")
    for task in TASKS:
        api.put_pod(gate(task))
    api.wait_for(lambda: len(api.admitted) >= len(TASKS), "admitted")
    for task in TASKS:
        api.put_pod(make_pod(task))
    api.wait_for(lambda: api.state().get("phase") == "Running", "Running")


def test_queued_run_from_start_to_success(api, queued):
    controller = queued()
    assert api.state()["phase"] == "Queued"
    spec = api.queue.workload["spec"]
    assert (spec["queueName"], spec["priority"]) == ("team-a", 0) and "priorityClassRef" not in spec
    assert [(each["name"], each["count"]) for each in spec["podSets"]] == [("chief", 1), ("worker", 2), ("ps", 1)]
    owners = api.queue.workload["metadata"]["ownerReferences"]
    assert {each["uid"] for each in owners} == {f"uid-exp1-mnist-{role}" for role in ("chief", "worker", "ps")}
    start_pods(api)
    api.wait_for(lambda: api.queue.conditions().get("PodsReady") == "True", "ready")
    api.put_pod(make_pod("chief-0", causes.SUCCEEDED))
    assert controller.wait() == 0
    (finished,) = (each for each in api.queue.workload["status"]["conditions"] if each["type"] == "Finished")
    assert (finished["status"], finished["reason"]) == ("True", "Succeeded")
    assert api.queue.made == 1


def test_admitted_pods_go_where_their_flavor_is(api, queued):
    api.queue.flavors["a100"] = FLAVOR
    queued()
    start_pods(api, "a100")
    assert set(api.admitted) == {f"exp1-mnist-{task}" for task in TASKS}
    spec = api.admitted["exp1-mnist-chief-0"]["spec"]
    assert (spec["schedulingGates"], spec["nodeSelector"]) == ([], {"pool": "a100"})
    assert spec["tolerations"] == [{"key": "a"}, *FLAVOR["tolerations"]]


def test_flavor_that_may_not_be_read_holds_the_run(api, queued):
    api.fail("GET", "/resourceflavors/", 403, times=1)
    queued()
    api.queue.admit()
    api.wait_for(lambda: api.state().get("problems"), "a problem")
    (problem,) = api.state()["problems"]
    assert (problem["subject"], problem["cause"]) == ("queue team-a", "queue-unusable")
    assert "403" in problem["message"] and api.state()["phase"] == "Queued"


def test_preempted_run_gives_its_quota_back_and_waits(api, queued):
    controller = queued()
    start_pods(api)
    api.queue.preempt()
    api.wait_for(lambda: api.queue.conditions().get("QuotaReserved") == "False", "given back")
    assert set(api.replicas.values()) == {0} and "admission" not in api.queue.workload["status"]
    assert api.queue.conditions()["Requeued"] == "True"
    assert (api.state()["phase"], api.state()["attempt"]) == ("Queued", 2)
    api.admitted.clear()
    start_pods(api)
    assert api.state()["attempt"] == 2 and api.queue.made == 1
    assert controller.process.poll() is None


def test_another_controller_finds_the_workload(api, queued, start):
    first = queued()
    first.process.kill()
    first.wait()
    start(settings=SETTINGS)
    start_pods(api)
    assert api.queue.made == 1


def test_deleted_workload_is_created_again(api, queued):
    queued()
    start_pods(api)
    api.queue.delete()
    api.wait_for(lambda: api.queue.workload, "created again")
    assert api.queue.made == 2 and api.state()["attempt"] == 2


def test_priority_class_is_taken_over(api, queued):
    queued(queuePriorityClass="high")
    spec = api.queue.workload["spec"]
    assert (spec["priority"], spec["priorityClassRef"]["name"]) == (100, "high")


def test_missing_priority_class_is_named(api, start):
    start(settings={**SETTINGS, "queuePriorityClass": "urgent"})
    api.wait_for(lambda: api.state().get("problems"), "a problem")
    assert "workloadpriorityclasses/urgent: 404" in api.state()["problems"][0]["message"]
    assert api.queue.workload is None


def test_cluster_without_kueue_is_named(api, start):
    api.queue.is_installed = False
    start(settings=SETTINGS)
    api.wait_for(lambda: api.state().get("problems"), "a problem")
    (problem,) = api.state()["problems"]
    assert (problem["cause"], problem["message"]) == (
        "queue-unusable", "the cluster does not know Kueue's Workloads (v1beta2)",
    )  # fmt: skip
    api.queue.is_installed = True
    api.wait_for(lambda: api.queue.workload, "created once Kueue is there")
